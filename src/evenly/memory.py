"""How much memory is free, and whether an error means that it ran out."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import torch

from evenly.errors import SetupError

#: The share of free memory that a computation may plan to use; the rest is for what it cannot foresee.
SHARE = 0.6


def free(device: torch.device | str) -> int | None:
    """Bytes that can still be allocated on the device; None where the system does not say.

    >>> (free("cpu") or 1) > 0
    True
    """
    device = torch.device(device)
    if device.type == "cpu":
        return _free_on_host()
    if device.type == "mps":
        return int(torch.mps.recommended_max_memory() - torch.mps.driver_allocated_memory())
    module = torch.get_device_module(device)
    if not hasattr(module, "mem_get_info"):
        return None
    # Memory that torch has cached is free for torch, though not for other programs.
    return int(module.mem_get_info(device)[0] + module.memory_reserved(device) - module.memory_allocated(device))


def budget(device: torch.device | str) -> int:
    """Bytes that a computation may plan to use: `EVENLY_MEMORY` (in GB) if set, else a share of free memory.

    >>> os.environ["EVENLY_MEMORY"] = "2"
    >>> budget("cpu")
    2000000000
    >>> del os.environ["EVENLY_MEMORY"]
    """
    if given := os.environ.get("EVENLY_MEMORY"):
        return int(float(given) * 1e9)
    left = free(device)
    return 1 << 62 if left is None else int(SHARE * left)


def require(num_bytes: int, what: str, advice: str, *, device: torch.device | str = "cpu", verb: str = "needs") -> None:
    """Refuse what needs more memory than is free, before it is allocated.

    >>> require(10**15, "num_train = 10**12", "Give fewer.")
    Traceback (most recent call last):
    evenly.errors.SetupError: num_train = 10**12 needs 1,000 TB of memory, and cpu has ... GB free. Give fewer.
    """
    left = free(device)
    if left is not None and num_bytes > left:
        # Whole numbers: those of a mistyped setting may be too large for a float.
        needed = f"{num_bytes // 10**12:,} TB" if num_bytes >= 10**13 else f"{num_bytes / 1e12:.2g} TB"
        needed = needed if num_bytes >= 10**12 else f"{num_bytes / 1e9:.3g} GB"
        raise SetupError(f"{what} {verb} {needed} of memory, and {device} has {left / 1e9:.3g} GB free. {advice}")


def is_out(error: BaseException) -> bool:
    """Whether the error says that memory has run out, on any device.

    >>> is_out(torch.OutOfMemoryError("CUDA out of memory.")), is_out(RuntimeError("shapes do not match"))
    (True, False)
    """
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(
        words in str(error) for words in ("out of memory", "not enough memory", "can't allocate memory")
    )


@contextlib.contextmanager
def explain(device: torch.device | str, advice: str) -> Iterator[None]:
    """Within the context, running out of memory raises a `SetupError` that names the device and what to try.

    >>> with explain("cuda:0", "Try --examples 500."):
    ...     raise torch.OutOfMemoryError("CUDA out of memory.")
    Traceback (most recent call last):
    evenly.errors.SetupError: cuda:0 ran out of memory. Try --examples 500.
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not is_out(error):
            raise
        raise SetupError(f"{device} ran out of memory. {advice}") from error


def _free_on_host() -> int | None:
    """The memory that Linux reports as available, within the limit of the process's control group."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        left = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration):
        return None
    try:
        group = Path("/sys/fs/cgroup")
        most, used = (group / "memory.max").read_text().strip(), (group / "memory.current").read_text()
        return left if most == "max" else max(0, min(left, int(most) - int(used)))
    except (OSError, ValueError):
        return left
