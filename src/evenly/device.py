"""Devices: which device a name refers to, what it can do, and how to keep float32 exact.

Everything that depends on the kind of device is here; no other module mentions `cuda` by name.
"""

import contextlib
import functools
import os
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor

from evenly.errors import SetupError, UsageError

_NAMES = "cpu, cuda, cuda:1, mps or auto"


def choose_device(name: str = "auto", *, local: int = 0) -> torch.device:
    """The device that `name` refers to; `auto` is the accelerator, or the CPU where there is none.

    `local` is the number of this process on its machine: it gets the device of the same number.

    >>> choose_device("cpu")
    device(type='cpu')
    >>> choose_device("warp")
    Traceback (most recent call last):
    evenly.errors.UsageError: --device 'warp' is not a device. Give cpu, cuda, cuda:1, mps or auto.
    """
    kind, count = accelerator()
    if name == "auto":
        if kind is None:
            return torch.device("cpu")
        return _device_number(kind, local, count, f"process {local} of this machine")
    try:
        device = torch.device(name)
    except (RuntimeError, TypeError) as error:
        raise UsageError(f"--device {name!r} is not a device. Give {_NAMES}.") from error
    if device.type == "cpu":
        return torch.device("cpu")
    if device.type != kind:
        seen = "sees no GPU" if kind is None else f"computes on {kind}, not on {device.type}"
        raise SetupError(
            f"--device {name}: this torch {seen}. `evenly doctor` says what it sees; use --device {kind or 'cpu'}."
        )
    return _device_number(kind, local if device.index is None else device.index, count, f"--device {name}")


def _device_number(kind: str, index: int, count: int, who: str) -> torch.device:
    if index < count:
        return torch.device(kind, index)
    have = f"there is only {kind}:0" if count == 1 else f"they are {kind}:0 to {kind}:{count - 1}"
    raise SetupError(f"{who}: there is no {kind}:{index}; {have}. Use one of these, or --device cpu.")


def accelerator() -> tuple[str | None, int]:
    """The kind of accelerator that torch can use on this machine, and how many there are.

    A build of torch for GPUs names its kind even where there is no GPU: only an available one counts.
    """
    current = torch.accelerator.current_accelerator()
    if current is None or not torch.accelerator.is_available():
        return None, 0
    return current.type, torch.accelerator.device_count()


def enter(device: torch.device) -> None:
    """Make `device` torch's current device, for streams, generators and compiled kernels that name none."""
    module = torch.get_device_module(device)
    if device.type != "cpu" and device.index is not None and hasattr(module, "set_device"):
        module.set_device(device)


def has_float64(device: torch.device | str) -> bool:
    """Whether the device computes in float64; Apple's GPUs and some of Intel's do not.

    >>> has_float64("cpu")
    True
    """
    device = torch.device(device)
    return device.type == "cpu" or _has_float64(device.type)


@functools.cache
def _has_float64(kind: str) -> bool:
    try:
        torch.zeros(1, dtype=torch.float64, device=kind)
    except (TypeError, RuntimeError):
        return False
    return True


def in_float64(tensor: Tensor) -> Tensor:
    """The tensor in float64: where it lies, or on the host if its device has no float64.

    >>> in_float64(torch.ones(1)).dtype
    torch.float64
    """
    return tensor.double() if has_float64(tensor.device) else tensor.cpu().double()


def has_bfloat16(device: torch.device | str) -> bool:
    """Whether the device computes in bfloat16 natively: GPUs since Ampere, Apple's since macOS 14, every CPU.

    >>> has_bfloat16("cpu")
    True
    """
    device = torch.device(device)
    if device.type == "cuda":
        return bool(torch.cuda.get_device_capability(device)[0] >= 8) or torch.version.hip is not None
    module = torch.get_device_module(device)
    return bool(module.is_bf16_supported()) if hasattr(module, "is_bf16_supported") else True


def upload(tensor: Tensor, device: torch.device | str) -> Tensor:
    """Copy the tensor to the device, without waiting for the device where pinned memory allows it.

    An asynchronous copy must come from pinned memory: Apple's GPUs read unpinned memory late, when it may already hold
    something else, and the numbers are then wrong without any error.

    >>> upload(torch.ones(2), "cpu")
    tensor([1., 1.])
    """
    device = torch.device(device)
    if not tensor.is_cpu or not pins(device) or not tensor.numel():
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def prefetch(tensors: Iterable[Tensor], device: torch.device | str) -> Iterator[Tensor]:
    """Yield the tensors on the device; where memory can be pinned, each is copied while the previous one is in use.

    The copies have their own stream: on the computation's stream they would queue behind it.

    >>> list(prefetch([torch.ones(1), torch.zeros(1)], "cpu"))
    [tensor([1.]), tensor([0.])]
    """
    device = torch.device(device)
    beside: Any = None
    ahead: tuple[Tensor, Any] | None = None
    for tensor in tensors:
        if not tensor.is_cpu or not pins(device):
            yield tensor.to(device)
            continue
        if beside is None:
            beside = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]  # torch's own
        with torch.cuda.stream(beside):
            sent = upload(tensor, device), beside.record_event()
        if ahead is not None:
            yield _await_copy(*ahead)
        ahead = sent
    if ahead is not None:
        yield _await_copy(*ahead)


def _await_copy(tensor: Tensor, sent: Any) -> Tensor:
    """The tensor, ready for the computations that the device is given from now on."""
    now = torch.cuda.current_stream(tensor.device)
    now.wait_event(sent)
    tensor.record_stream(now)  # its memory must not be reused before the computation has read it
    return tensor


_PINNING = frozenset({"cuda"})


def pins(device: torch.device | str) -> bool:
    """Whether host memory can be pinned for the device, so that copies to it need not wait.

    >>> pins("cpu"), pins("mps")
    (False, False)
    """
    return torch.device(device).type in _PINNING


@contextlib.contextmanager
def exact() -> Iterator[None]:
    """Within the context, float32 is float32: no TF32 or bfloat16 inside products and convolutions.

    By default torch convolves in TF32 on GPUs from Ampere on, with errors of 10⁻³: too coarse for
    any measurement that states its error or compares two ways of computing a number.

    >>> with exact():
    ...     torch.backends.cudnn.allow_tf32
    False
    """
    switches = list(_switches())
    before = [switch.fp32_precision for switch in switches]
    try:
        legacy = torch.get_float32_matmul_precision(), torch.backends.cudnn.allow_tf32
    except RuntimeError:  # once torch's newer switches are used, its older ones raise
        legacy = None
    try:
        if legacy is None:
            for switch in switches:
                switch.fp32_precision = "ieee"
        else:
            torch.set_float32_matmul_precision("highest")
            torch.backends.cudnn.allow_tf32 = False
        yield
    finally:
        if legacy is not None:
            torch.set_float32_matmul_precision(legacy[0])
            torch.backends.cudnn.allow_tf32 = legacy[1]
        for switch, value in zip(switches, before, strict=True):
            switch.fp32_precision = value


def _switches() -> Iterator[Any]:
    """Torch's own switches, one for each kind of operator; none before torch 2.9."""
    for backend, names in (("cuda", ("matmul",)), ("cudnn", ("conv", "rnn")), ("mkldnn", ("matmul", "conv", "rnn"))):
        for name in names:
            switch = getattr(getattr(torch.backends, backend), name, None)
            if hasattr(switch, "fp32_precision"):
                yield switch


@contextlib.contextmanager
def repeatable(deterministic: bool, device: torch.device | str) -> Iterator[None]:
    """Within the context the device uses only algorithms that give the same bits every time, or else the quickest ones.

    Without `deterministic`, cuDNN tries its algorithms on the first batch and keeps the quickest, and a GPU may sum in
    any order: two runs agree up to rounding, not bit for bit. With it, torch refuses operators that have no
    deterministic algorithm, by name. The CPU is always deterministic.

    >>> with repeatable(True, "cpu"):
    ...     torch.are_deterministic_algorithms_enabled()
    False
    """
    if torch.device(device).type != "cuda":
        yield
        return
    if deterministic:
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # read by cuBLAS when it first multiplies
    cudnn = torch.backends.cudnn
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    flags = cudnn.deterministic, cudnn.benchmark
    try:
        if deterministic:
            torch.use_deterministic_algorithms(True)
        cudnn.deterministic, cudnn.benchmark = deterministic or flags[0], not (deterministic or flags[0])
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
        cudnn.deterministic, cudnn.benchmark = flags


def facts(device: torch.device | str) -> dict[str, Any]:
    """What a record says about the device that computed: its name, its libraries, and which shortcuts they may take.

    >>> facts("cpu")["kind"]
    'cpu'
    """
    device = torch.device(device)
    known: dict[str, Any] = {
        "kind": str(device),
        "deterministic": torch.are_deterministic_algorithms_enabled(),
        "float64": has_float64(device),
    }
    if device.type == "cpu":
        return known
    module = torch.get_device_module(device)
    if hasattr(module, "get_device_name"):
        known["name"] = module.get_device_name(device)
    if device.type == "cuda":
        switches = {"tf32_convolutions": ("cudnn", "conv"), "tf32_products": ("cuda", "matmul")}
        known |= {name: _allows_tf32(*where) for name, where in switches.items()}
        known |= {
            "capability": ".".join(map(str, torch.cuda.get_device_capability(device))),
            "memory": torch.cuda.get_device_properties(device).total_memory,
            "cuda": torch.version.cuda or torch.version.hip,
            "cudnn": torch.backends.cudnn.version(),  # type: ignore[no-untyped-call]  # torch's own
            "cudnn_benchmark": torch.backends.cudnn.benchmark,
        }
    return known


def _allows_tf32(backend: str, operator: str) -> bool:
    place: Any = getattr(torch.backends, backend)
    switch: Any = getattr(place, operator, None)
    if hasattr(switch, "fp32_precision"):
        return bool(switch.fp32_precision == "tf32")
    return bool((switch if backend == "cuda" else place).allow_tf32)
