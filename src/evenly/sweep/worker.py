"""How a process runs one job, on any engine: call it, keep its log, and report its outcome."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, NoReturn

from evenly import atomic
from evenly.errors import EvenlyError, SetupError, Stopped, UsageError
from evenly.records import Run
from evenly.records.lock import Busy
from evenly.sweep.plan import Job

State = Literal["done", "failed", "stopped", "skipped", "lost"]
PATIENCE = 2.0  # seconds before trying again to open a run that another command is training
AT_ONCE = 0.5  # seconds that a job takes at most if it was done before
LAST_LINES = 20
REPORTING = 10.0  # seconds that a process of a failed run leaves the first one to report


@dataclass(frozen=True)
class Outcome:
    """How a job ended: its result, or its error."""

    name: str
    state: State
    result: Any = None
    error: str = ""
    host: str = ""
    log: str = ""
    seconds: float = 0.0
    exit_code: int = 1


def do(job: Job, *, runs: str, log: str, threads: int | None = None, devices: int = 1) -> Outcome:
    """Do one job and return its outcome: in this process, or by torchrun in `devices` processes if that is above 1.

    The output of the job goes to the file `log`. If another command is training the same run, the job waits for it and
    uses its result: nothing is trained twice.
    """
    begun = time.monotonic()
    where: dict[str, Any] = {"host": socket.gethostname(), "log": log}
    try:
        with _log_to(Path(log)):
            try:
                result = _torchrun(job, runs, threads, devices) if devices > 1 else call(job, runs, threads)
            except Exception:
                traceback.print_exc()  # into the log; the user is shown only the message
                raise
        taken = seconds_taken(result, runs, time.monotonic() - begun)
        return Outcome(job.name, "done", result, seconds=taken, **where)
    except (Stopped, KeyboardInterrupt) as error:
        return Outcome(job.name, "stopped", error=str(error), seconds=time.monotonic() - begun, **where)
    except Exception as error:  # a failure of any kind is an outcome, and the other jobs go on
        message = str(error) if isinstance(error, EvenlyError) else f"{type(error).__name__}: {error}"
        code = error.exit_code if isinstance(error, EvenlyError) else 1
        return Outcome(job.name, "failed", error=message, seconds=time.monotonic() - begun, exit_code=code, **where)


def seconds_taken(result: Any, runs: str, elapsed: float) -> float:
    """The seconds that a job took, with those before it was interrupted, if its result names the run that it trained.

    A job that was done before took no time.
    """
    if elapsed <= AT_ONCE or not isinstance(result, Mapping) or not isinstance(result.get("run"), str):
        return elapsed
    try:
        return max(elapsed, float(Run.open(result["run"], runs).summary()["seconds"]))
    except (EvenlyError, OSError, KeyError, TypeError, ValueError):  # of use for an estimate only
        return elapsed


def skip_outcome(job: Job, needed: str) -> Outcome:
    """The outcome of a job that was skipped because a dependency failed."""
    return Outcome(job.name, "skipped", error=f"it needs {needed!r}, which did not end well")


def do_nothing(runs: str, **arguments: Any) -> dict[str, Any]:
    """A job that does nothing, to measure the cost of planning and starting."""
    return dict(arguments)


def call(job: Job, runs: str, threads: int | None) -> Any:
    """Call a job's function in this process; wait while another command is training the same run."""
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
    """Do the job by a torchrun of several processes on this machine; return the result, which the first one writes."""
    order, answer = _exchange_files(Path(runs) / "sweep")
    try:
        atomic.write_json(order, asdict(job))
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={devices}"]
        command += ["-m", "evenly.sweep.worker", str(order), str(answer), runs]
        environment = os.environ | {"OMP_NUM_THREADS": str(threads or 1)}
        code = _wait_for(subprocess.Popen(command, env=environment))
        if not answer.is_file():
            raise SetupError(f"torchrun ended with code {code} and no result. Its log says why.")
        outcome = json.loads(answer.read_text(encoding="utf-8"))
    finally:
        order.unlink(missing_ok=True)
        answer.unlink(missing_ok=True)
    if outcome["state"] == "stopped":
        raise Stopped(outcome["error"])
    if outcome["state"] == "failed":
        error = EvenlyError(outcome["error"])
        error.exit_code = outcome["exit_code"]
        raise error
    return outcome["result"]


def _exchange_files(folder: Path) -> tuple[Path, Path]:
    """Where a torchrun finds its job and puts the result: names that no other process on any machine uses."""
    folder.mkdir(parents=True, exist_ok=True)
    # Not by with_suffix, which would cut the name of a host such as node1.cluster.org, and the numbers after it.
    stem = f".{socket.gethostname()}-{os.getpid()}-{time.monotonic_ns()}"
    return folder / f"{stem}.job", folder / f"{stem}.answer"


def _wait_for(process: "subprocess.Popen[bytes]") -> int:
    """Wait for a torchrun. Signals to this process are forwarded to it, so that its processes save."""
    global _child

    def pass_on(number: int, frame: object) -> None:
        process.terminate()

    numbers = (signal.SIGTERM, signal.SIGINT) if threading.current_thread() is threading.main_thread() else ()
    previous = {number: signal.signal(number, pass_on) for number in numbers}
    _child = process
    try:
        return process.wait()
    finally:
        _child = None
        for number, handler in previous.items():
            signal.signal(number, handler)


_child: "subprocess.Popen[bytes] | None" = None  # the torchrun that this process waits for


def leave() -> NoReturn:
    """End this process at once, and its torchrun with it."""
    if (child := _child) is not None:
        child.terminate()
    os._exit(1)


def limit_threads(threads: int) -> None:
    """Let torch use this many threads in this process."""
    os.environ["OMP_NUM_THREADS"] = str(threads)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    else:
        import torch

        torch.set_num_threads(threads)


@contextlib.contextmanager
def _log_to(path: Path) -> Iterator[None]:
    """Append the output of this process and its children to a file, so that only the parent's bar uses the terminal."""
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
    """The end of a log, for an error message."""
    try:
        lines = Path(log).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    return "\n".join(lines[-LAST_LINES:])


def main(order: str, answer: str, runs: str) -> None:
    """One process of a torchrun: do the job; the first process writes the outcome."""
    given: Mapping[str, Any] = json.loads(Path(order).read_text(encoding="utf-8"))
    report: dict[str, Any]
    try:
        report = {"state": "done", "result": call(Job(given["name"], given["call"], given["arguments"]), runs, None)}
    except (Stopped, KeyboardInterrupt) as error:
        report = {"state": "stopped", "error": str(error)}
    except EvenlyError as error:
        traceback.print_exc()
        report = {"state": "failed", "error": str(error), "exit_code": error.exit_code}
    leads = os.environ.get("RANK", "0") == "0"
    if not leads and report["state"] == "failed":
        # Once one process has ended, torchrun ends the others: the first one must have reported by then.
        _wait_for_file(Path(answer))
    if leads or (report["state"] == "failed" and not Path(answer).exists()):
        atomic.write_json(answer, report)
    if report["state"] == "failed":
        sys.exit(report["exit_code"])  # so that torchrun does not wait for the other processes


def _wait_for_file(path: Path) -> None:
    until = time.monotonic() + REPORTING
    while not path.exists() and time.monotonic() < until:
        time.sleep(0.05)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        raise UsageError("this module is started by torchrun, for `--devices-per-run`.")
    main(*sys.argv[1:])
