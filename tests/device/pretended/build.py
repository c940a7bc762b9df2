"""The pretended device as a shared library: compiled once for a machine and a version of torch, then kept."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from importlib import metadata, util
from pathlib import Path

UNAVAILABLE = 77  # the exit code where it cannot be built here
SOURCE = Path(__file__).with_name("device.cpp")


class NoCompilerError(RuntimeError):
    """Why there is no pretended device here."""


def torch_folder() -> Path:
    """Where torch is installed; torch itself is not imported."""
    found = util.find_spec("torch")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent


def library() -> Path:
    """The shared library, compiled if it is not there yet; `NoCompilerError` says why it cannot be."""
    if not sys.platform.startswith("linux"):
        raise NoCompilerError(f"the pretended device is built on Linux only, not on {sys.platform}")
    compiler = shutil.which(os.environ.get("CXX", "g++"))
    if compiler is None:
        raise NoCompilerError("the pretended device needs a C++ compiler: install g++, or name one with CXX")
    key = hashlib.sha256(SOURCE.read_bytes() + f"{metadata.version('torch')} {compiler}".encode()).hexdigest()[:16]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "evenly-tests"
    path = cache / f"pretended-{key}.so"
    if path.exists():
        return path
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / f"{key}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # several test processes may want it at once
        if not path.exists():
            _compile(compiler, path)
    return path


def _compile(compiler: str, path: Path) -> None:
    folder = torch_folder()
    include = folder / "include"
    draft = path.with_suffix(".draft")
    command = [
        compiler, "-O0", "-w", "-std=c++20", "-fPIC", "-shared",
        f"-I{include}", f"-I{include / 'torch/csrc/api/include'}",
        str(SOURCE), "-o", str(draft),
        f"-L{folder / 'lib'}", "-lc10", "-ltorch_cpu", f"-Wl,-rpath,{folder / 'lib'}",
    ]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True)
    if result.returncode:
        first = next((line for line in result.stderr.splitlines() if "error" in line), result.stderr[:200])
        raise NoCompilerError(f"{compiler} cannot compile the pretended device against this torch: {first}")
    draft.rename(path)


if __name__ == "__main__":
    try:
        print(library())
    except NoCompilerError as reason:
        print(reason)
        sys.exit(UNAVAILABLE)
