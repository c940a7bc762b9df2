"""Commands of evenly in processes of their own: forked from this one, where everything is imported, or started anew."""

import contextlib
import ctypes
import gc
import importlib
import math
import os
import pkgutil
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

from soak import ALIKE

ROOT = Path(__file__).resolve().parent.parent
_PR_SET_PDEATHSIG = 1  # of Linux


@dataclass(frozen=True)
class Outcome:
    """How a command ended: its exit code (negative: the signal), what it said, and what it took."""

    code: int
    stdout: str
    stderr: str
    seconds: float
    memory: int  # bytes at the peak, those of the fork server included
    hung: bool = False

    @property
    def traceback(self) -> bool:
        """Whether it ended by a bug: an exception that nobody expected, or a signal that nobody sent."""
        return self.code == 1 or "Traceback (most recent call last)" in self.stderr or (self.code < 0 and not self.hung)


def preload() -> None:
    """Import all of evenly, so that a fork starts at once; no arithmetic is done here, so that no thread is started."""
    import evenly

    for module in pkgutil.walk_packages(evenly.__path__, "evenly."):
        with contextlib.suppress(ImportError):  # of an optional package
            # Integrations import whole frameworks, and no command does.
            if not module.name.endswith("__main__") and not module.name.startswith("evenly.integrations."):
                importlib.import_module(module.name)
    for name in (
        "encodings.cp437",
        "encodings.utf_8_sig",
        "torch._dynamo",
        "jinja2",
        "safetensors.torch",
        "rich._emoji_codes",
        "PIL.PngImagePlugin",
        "PIL.JpegImagePlugin",
        "PIL.PpmImagePlugin",
        "matplotlib.backends.backend_agg",
        "matplotlib.figure",
        "sklearn.cluster",
    ):
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # or every fork would copy what its first collection looks at
    threads = [Path(f"/proc/self/task/{task}/comm").read_text().strip() for task in os.listdir("/proc/self/task")]
    # pyarrow's allocator cleans up in a thread of its own, and knows what to do at a fork.
    if len(busy := [name for name in threads if not name.startswith("jemalloc")]) > 1:
        raise RuntimeError(f"the threads {busy} run after the imports: forks would not be fair stand-ins")


def fork(
    words: Sequence[str],
    *,
    folder: Path,
    prepare: Callable[[], None] = lambda: None,
    seconds: float = 60.0,
    memory: int | None = None,
    kill_after: float | None = None,
) -> Outcome:
    """`evenly WORDS` in a fork, in `folder`; `prepare` is called in it first.

    It is killed after `kill_after` seconds as whoever pulls the plug does it, and taken for hung after `seconds`.
    `memory` bytes beyond what this process has are all it may map.
    """
    said = [folder.parent / f"{folder.name}.{name}" for name in ("stdout", "stderr")]
    for path in said:
        path.touch()
    begun = time.monotonic()
    child = os.fork()
    if child == 0:
        _become(words, folder, said, prepare, memory)
    status, usage, hung = _wait(child, begun, seconds, kill_after)
    texts = [path.read_text(errors="replace") for path in said]
    for path in said:
        path.unlink()
    took = time.monotonic() - begun
    return Outcome(os.waitstatus_to_exitcode(status), *texts, took, usage.ru_maxrss * 1024, hung)


def call(words: Sequence[str], *, folder: Path, seconds: int, memory: int) -> Outcome:
    """The same in this very process, which must be a fork that may die: it does at a limit that is reached."""
    said = [folder.parent / f"{folder.name}.{name}" for name in ("stdout", "stderr")]
    _settle(folder, said, memory)
    limit(resource.RLIMIT_CPU, math.ceil(time.process_time()) + seconds)
    with contextlib.suppress(OSError):  # where the peak cannot be set back, it is that of all calls, and no less
        Path("/proc/self/clear_refs").write_text("5")
    begun = time.monotonic()
    code = run_main(words)
    took = time.monotonic() - begun
    sys.stdout.flush()
    sys.stderr.flush()
    peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    texts = [path.read_text(errors="replace") for path in said]
    for path in said:
        path.unlink()
    return Outcome(code, *texts, took, int(peak.split()[1]) * 1024)


def start(
    words: Sequence[str],
    *,
    folder: Path,
    environment: Mapping[str, str],
    seconds: float = 120.0,
    kill_after: float | None = None,
) -> Outcome:
    """The same as a process of its own, from the interpreter up."""
    begun = time.monotonic()
    process = subprocess.Popen(
        [sys.executable, "-m", "soak.child", *words],
        cwd=folder,
        env={**os.environ, **surroundings(folder), **environment, "PYTHONPATH": _import_path()},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    hung = False
    try:
        stdout, stderr = process.communicate(timeout=kill_after or seconds)
    except subprocess.TimeoutExpired:
        hung = kill_after is None
        end_group(process.pid)
        stdout, stderr = process.communicate()
    end_group(process.pid)
    return Outcome(process.returncode, stdout, stderr, time.monotonic() - begun, 0, hung)


def surroundings(folder: Path) -> dict[str, str]:
    """What a command finds around it: one thread, and a home of its own where it may leave what it remembers."""
    home = folder.parent / f"{folder.name}.home"
    places = {"HOME": "", "XDG_CACHE_HOME": "cache", "XDG_DATA_HOME": "data", "XDG_CONFIG_HOME": "config"}
    places["XDG_STATE_HOME"] = "state"
    import matplotlib  # whose list of fonts takes seconds to make: it is shared

    return (
        ALIKE
        | {
            "no_proxy": "127.0.0.1",
            "EVENLY_DATA": str(folder / "root"),
            "TERM": "dumb",
            "MPLCONFIGDIR": matplotlib.get_cachedir(),
        }
        | {name: str(home / place) for name, place in places.items()}
    )


def run_main(words: Sequence[str]) -> int:
    """What the installed script does: the exit code of `evenly WORDS`, a traceback where that is a bug."""
    from evenly.cli import main

    sys.argv[:] = ["evenly", *words]  # which comparisons keep
    try:
        return main(words)
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1


def _become(
    words: Sequence[str], folder: Path, said: Sequence[Path], prepare: Callable[[], None], memory: int | None
) -> NoReturn:
    code = 1
    try:
        lead_group()
        _settle(folder, said, memory)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        prepare()
        code = run_main(words)
        sys.stdout.flush()
        sys.stderr.flush()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
    finally:
        os._exit(code)


def lead_group() -> None:
    """Have this fork lead a group of processes that ends with its parent."""
    os.setsid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # nobody stays when the soak itself is stopped
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _settle(folder: Path, said: Sequence[Path], memory: int | None) -> None:
    """Go to `folder`, with the files `said` in the place of stdout and stderr, and `memory` bytes still to map."""
    os.chdir(folder)
    for target, path in enumerate((Path(os.devnull), *said)):
        opened = os.open(path, os.O_RDONLY if target == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(opened, target)
        os.close(opened)
    os.environ.update(surroundings(folder))
    if memory is not None:
        mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        limit(resource.RLIMIT_AS, mapped + memory)


def limit(what: int, most: int) -> None:
    """Set a limit of this process, which may be set again: the one that cannot be raised stays."""
    _, hard = resource.getrlimit(what)
    resource.setrlimit(what, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


def _wait(
    child: int, begun: float, seconds: float, kill_after: float | None
) -> tuple[int, resource.struct_rusage, bool]:
    limit = seconds if kill_after is None else kill_after
    hung, pause = False, 0.001
    while True:
        ended, status, usage = os.wait4(child, os.WNOHANG)
        if ended:
            end_group(child)
            return status, usage, hung
        if time.monotonic() - begun > limit:
            hung = kill_after is None
            end_group(child)
            os.kill(child, signal.SIGKILL)
            limit = float("inf")
        time.sleep(pause)
        pause = min(pause * 1.5, 0.02)


def end_group(leader: int) -> None:
    """Nobody is left behind: a command's own processes end with it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def _import_path() -> str:
    import evenly

    package = str(Path(evenly.__file__).resolve().parent.parent)
    return os.pathsep.join(dict.fromkeys([package, str(ROOT)]))
