"""Where a result came from: versions, machine, revisions and data, and nothing about the person.

No user names, host names or paths: a stamp can be published with the result.
"""

import functools
import os
import platform
import subprocess
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import evenly

LIBRARIES = ("torch", "numpy", "scikit-learn", "scipy", "pillow", "safetensors", "torchvision")


def stamp(*, data: str | None = None, device: Any = None) -> dict[str, Any]:
    """The environment of this process as plain JSON values; `data` is the fingerprint of the data used.

    If `device`, the one that computed, is given, the stamp includes its name, its libraries, and whether TF32 and
    nondeterministic algorithms were allowed.

    Versions come from the installed packages' metadata, so nothing heavy is imported. `devices`
    and `threads`, which only torch knows, are None unless torch has been imported.

    >>> sorted(stamp(data="0123456789abcdef"))
    ['cpu', 'cpus', 'data', 'device', 'devices', 'evenly', 'libraries', 'machine', 'python', 'source', 'system',
     'threads', 'time', 'usable_cpus', 'working_directory']
    """
    torch = sys.modules.get("torch")
    return {
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
        "evenly": evenly.__version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "system": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cpu": _cpu(),
        "cpus": os.cpu_count(),
        "usable_cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "threads": torch.get_num_threads() if torch else None,
        "devices": _devices(torch) if torch else None,
        "device": _device_facts(device),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "source": _source(),
        "working_directory": _revision(Path.cwd()),
        "data": data,
    }


def difference(was: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """The changes from one stamp to another, one line each, ignoring the time.

    >>> difference({"cpus": 2, "libraries": {"torch": "2.6.0"}}, {"cpus": 2, "libraries": {"torch": "2.13.0"}})
    ['libraries.torch: 2.6.0 → 2.13.0']
    """
    before, after = _flat(was), _flat(now)
    names = [name for name in [*before, *(name for name in after if name not in before)] if name != "time"]
    return [
        f"{name}: {_word(before.get(name))} → {_word(after.get(name))}"
        for name in names
        if before.get(name) != after.get(name)
    ]


def _flat(mapping: Mapping[str, Any], under: str = "") -> dict[str, Any]:
    rows: dict[str, Any] = {}
    for name, value in mapping.items():
        rows |= _flat(value, f"{under}{name}.") if isinstance(value, Mapping) else {under + name: value}
    return rows


def _word(value: Any) -> str:
    return "none" if value is None else ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


@functools.cache
def _cpu() -> str:
    """The processor's name, where the system reports it."""
    facts = Path("/proc/cpuinfo")
    if facts.is_file():
        for line in facts.read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model"):
                return value.strip()
    if sys.platform == "darwin":
        return _output(["sysctl", "-n", "machdep.cpu.brand_string"]) or platform.machine()
    return platform.processor() or platform.machine()


def _devices(torch: Any) -> list[str]:
    """The names of the accelerators that this machine has, in torch's order."""
    from evenly.device import accelerator

    kind, count = accelerator()
    if kind is None:
        return []
    name = getattr(torch.get_device_module(kind), "get_device_name", lambda _: kind)
    return [name(i) for i in range(count)]


def _device_facts(device: Any) -> dict[str, Any] | None:
    """The facts about the device that computed; None if no device is named."""
    if device is None:
        return None
    from evenly.device import facts

    return facts(device)


def _source() -> dict[str, Any] | None:
    """The revision of the checkout that evenly runs from; None for an installed copy."""
    package = Path(evenly.__file__).resolve()
    tracked = _git(package.parent, "ls-files", "--error-unmatch", package.name)
    return None if tracked is None else _revision(package.parent)


def _revision(folder: Path) -> dict[str, Any] | None:
    """The commit, and whether tracked files of the repository differ from it; None where git cannot tell."""
    commit = _git(folder, "rev-parse", "--verify", "HEAD")
    if commit is None:
        return None
    changes = _git(folder, "status", "--porcelain", "--untracked-files=no")
    return {"revision": commit, "dirty": None if changes is None else bool(changes)}


def _git(folder: Path, *arguments: str) -> str | None:
    # Take no lock and start no file-system monitor: reading the revision must leave no trace.
    return _output(["git", "--no-optional-locks", "-c", "core.fsmonitor=false", "-C", str(folder), *arguments])


def _output(command: list[str], *, seconds: float = 5) -> str | None:
    """A program's output; None if it is not installed, fails or takes too long."""
    # Git sets these inside its hooks; they would point it at another repository than the folder's.
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    try:
        result = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=clean, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return result.stdout.strip() if result.returncode == 0 else None
