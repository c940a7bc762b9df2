"""What a process does with one job, wherever it runs: call it, keep its log, and say how it ended."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from evenly import atomic
from evenly.errors import EvenlyError, SetupError, Stopped, UsageError
from evenly.records.lock import Busy
from evenly.sweep.plan import Job

State = Literal["done", "failed", "stopped", "skipped", "lost"]
PATIENCE = 2.0  # seconds between two looks at a run that another command is training
LAST_LINES = 20


@dataclass(frozen=True)
class Outcome:
    """How a job ended: what it returned, or why it did not."""

    name: str
    state: State
    result: Any = None
    error: str = ""
    host: str = ""
    log: str = ""
    seconds: float = 0.0
    exit_code: int = 1


def do(job: Job, *, runs: str, log: str, threads: int | None = None, devices: int = 1) -> Outcome:
    """Do one job in this process (in `devices` processes of torchrun where there are more) and say how it ended.

    What the job prints goes to the file `log`. A run that another command is training is waited for, and then found
    done: nothing is trained twice.
    """
    begun = time.monotonic()
    where: dict[str, Any] = {"host": socket.gethostname(), "log": log}
    try:
        with _logged(Path(log)):
            try:
                result = _torchrun(job, runs, threads, devices) if devices > 1 else call(job, runs, threads)
            except Exception:
                traceback.print_exc()  # into the log; the message alone goes to the person
                raise
        return Outcome(job.name, "done", result, seconds=time.monotonic() - begun, **where)
    except (Stopped, KeyboardInterrupt) as error:
        return Outcome(job.name, "stopped", error=str(error), seconds=time.monotonic() - begun, **where)
    except Exception as error:
        message = str(error) if isinstance(error, EvenlyError) else f"{type(error).__name__}: {error}"
        code = error.exit_code if isinstance(error, EvenlyError) else 1
        return Outcome(job.name, "failed", error=message, seconds=time.monotonic() - begun, exit_code=code, **where)


def skipped(job: Job, needed: str) -> Outcome:
    """What is said of a job that could not begin because a job it needs did not end well."""
    return Outcome(job.name, "skipped", error=f"it needs {needed!r}, which did not end well")


def nothing(runs: str, **arguments: Any) -> dict[str, Any]:
    """A job that does nothing: what planning and starting cost is measured with it."""
    return dict(arguments)


def call(job: Job, runs: str, threads: int | None) -> Any:
    """Call a job's function in this process; a run that another command is training is waited for."""
    if threads is not None:
        limit_threads(threads)
    module, _, name = job.call.partition(":")
    function = getattr(import_module(module), name)
    while True:
        try:
            result = function(runs, **job.arguments)
            json.dumps(result)
            return result
        except Busy:
            time.sleep(PATIENCE)


def _torchrun(job: Job, runs: str, threads: int | None, devices: int) -> Any:
    """The job as a torchrun of several processes on this machine; the first of them says what came of it."""
    folder = Path(runs) / "sweep"
    folder.mkdir(parents=True, exist_ok=True)
    stem = folder / f".{os.getpid()}-{time.monotonic_ns()}"
    order, answer = stem.with_suffix(".job"), stem.with_suffix(".answer")
    try:
        atomic.write_json(order, asdict(job))
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={devices}"]
        command += ["-m", "evenly.sweep.worker", str(order), str(answer), runs]
        environment = os.environ | {"OMP_NUM_THREADS": str(threads or 1)}
        ended = subprocess.run(command, env=environment, check=False)
        if not answer.is_file():
            raise SetupError(f"torchrun ended with code {ended.returncode} and no result. Its log says why.")
        return json.loads(answer.read_text(encoding="utf-8"))["result"]
    finally:
        order.unlink(missing_ok=True)
        answer.unlink(missing_ok=True)


def limit_threads(threads: int) -> None:
    """Let torch use this many threads in this process."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    else:
        import torch

        torch.set_num_threads(threads)


@contextlib.contextmanager
def _logged(path: Path) -> Iterator[None]:
    """Send what this process and its children print to the end of a file, and leave the terminal to the one bar."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.environ["TERM"] = "dumb"
    kept = [os.dup(1), os.dup(2)]
    with open(path, "ab", buffering=0) as file:
        try:
            sys.stdout.flush(), sys.stderr.flush()
            os.dup2(file.fileno(), 1), os.dup2(file.fileno(), 2)
            yield
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os.dup2(kept[0], 1), os.dup2(kept[1], 2)
            for handle in kept:
                os.close(handle)


def last_lines(log: str) -> str:
    """The end of a log, for an error that a person reads."""
    try:
        lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-LAST_LINES:])


def main(order: str, answer: str, runs: str) -> None:
    """One process of a torchrun: do the job, and the first process writes what came of it."""
    given: Mapping[str, Any] = json.loads(Path(order).read_text(encoding="utf-8"))
    result = call(Job(given["name"], given["call"], given["arguments"]), runs, None)
    if os.environ.get("RANK", "0") == "0":
        atomic.write_json(answer, {"result": result})


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise UsageError("this module is started by torchrun, for `--devices-per-run`.")
    main(*sys.argv[1:])
