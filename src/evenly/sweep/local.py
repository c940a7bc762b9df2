"""Worker processes on this machine: by default as many as the GPUs or cores allow, which are divided among them."""

import multiprocessing
import os
import signal
import socket
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from pathlib import Path

from evenly.errors import SetupError, Stopped
from evenly.sweep.plan import Job, Plan
from evenly.sweep.status import Status
from evenly.sweep.where import Where
from evenly.sweep.worker import Outcome, do, leave, skip_outcome

LOOK = 5.0  # seconds to wait for a worker before the progress display is refreshed


def usable_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(plan: Plan, where: Where, *, runs: Path, logs: Path, status: Status) -> None:
    """Carry out a plan in worker processes on this machine; `status` tracks every job."""
    where = resolve_where(where)
    gpus, each = _gpus() if where.gpus else [], (where.gpus or 0) * where.devices
    at_once = min(where.at_once or 1, len(plan))
    settings = _WorkerSettings(
        runs=str(runs),
        logs=str(logs),
        threads=where.threads or max(1, usable_cores() // (at_once * where.devices)),
        devices=where.devices,
        parent=os.getpid(),
    )
    shares = [",".join(gpus[i * each : (i + 1) * each]) if each else None for i in range(at_once)]
    with _workers([_Worker(settings, share) for share in shares]) as workers:
        _give_out(plan, workers, logs=logs, status=status)


def resolve_where(where: Where, *, memory: int = 0) -> Where:
    """`where` with defaults resolved (one GPU per run, if there are any); an error if it does not fit this machine.

    `memory` is the least number of bytes that a run needs.
    """
    gpus = [] if where.gpus == 0 else _gpus()
    each = (1 if gpus else 0) if where.gpus is None else where.gpus
    most_at_once = len(gpus) // (each * where.devices) if each else max(1, usable_cores() // where.devices)
    wanted = where.at_once or max(1, most_at_once)
    if each and most_at_once < wanted:
        fix = f"--on local:{most_at_once}" if most_at_once else "fewer --devices-per-run"
        raise SetupError(
            f"{wanted} runs at once of {where.devices} x {each} GPUs need {wanted * where.devices * each}, and this "
            f"machine has {len(gpus)}. Give {fix}, or --gpus 0."
        )
    if memory:
        wanted = _runs_that_fit(where, wanted, memory * where.devices)
    return replace(where, at_once=wanted, gpus=each)


def _runs_that_fit(where: Where, wanted: int, memory: int) -> int:
    """The number of runs that fit into the free memory at once; an error if that is less than was requested."""
    from evenly.memory import free

    left = free("cpu")
    fitting = wanted if left is None else left // memory
    if fitting >= wanted:
        return wanted
    if fitting and where.at_once is None:
        return int(fitting)
    fix = f"Give --on local:{fitting}" if fitting else "Close other programs, or take fewer or smaller examples"
    raise SetupError(
        f"--on {where}: {wanted} run{'s' * (wanted > 1)} at once need {wanted * memory / 1e9:.1f} GB of memory at "
        f"least, and {(left or 0) / 1e9:.1f} GB are free. {fix}."
    )


def log_of(logs: str | Path, job: Job) -> str:
    """The path of a job's log: the job's name, made into a file name."""
    return str(Path(logs) / ("".join(c if c.isalnum() or c in "-=." else "_" for c in job.name)[:120] + ".log"))


@dataclass(frozen=True)
class _WorkerSettings:
    """The settings of every worker process."""

    runs: str
    logs: str
    threads: int
    devices: int
    parent: int


class _Worker:
    """A worker process and its connection; restarted if it was killed."""

    def __init__(self, settings: _WorkerSettings, gpus: str | None) -> None:
        self.settings, self.gpus = settings, gpus
        self.job: Job | None = None
        self.process: SpawnProcess | None = None
        self.connection: Connection

    def begin(self, job: Job) -> None:
        """Send a job to the process, which is started if necessary."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.connection, its_end = context.Pipe()
            self.process = context.Process(target=_serve, args=(its_end, self.settings, self.gpus), daemon=False)
            self.process.start()
            its_end.close()
        self.job = job
        self.begun = time.monotonic()
        with suppress(OSError):  # killed while idle: `outcome` reports it
            self.connection.send(job)

    def outcome(self, log: str) -> Outcome:
        """The outcome of its job; call it once the connection is ready."""
        assert self.job is not None
        assert self.process is not None
        name, self.job = self.job.name, None
        try:
            outcome: Outcome = self.connection.recv()
            return outcome
        except (EOFError, OSError):
            self.process.join()
            code, self.process = self.process.exitcode, None
            self.connection.close()
        how = "most likely for want of memory: --on local:1 needs the least" if code == -signal.SIGKILL else ""
        error = f"its process ended with {f'signal {-code}' if code and code < 0 else f'code {code}'}" + (
            f", {how}" if how else ""
        )
        taken = time.monotonic() - self.begun
        lost = {"host": socket.gethostname(), "log": log, "seconds": taken, "exit_code": SetupError.exit_code}
        return Outcome(name, "lost", error=error, **lost)  # type: ignore[arg-type]  # of several kinds


def _give_out(plan: Plan, workers: list[_Worker], *, logs: Path, status: Status) -> None:
    """Start each job once its dependencies are done, in plan order; a failure cancels only its dependants."""
    dependants = plan.dependants()
    missing = {name: len(set(job.needs)) for name, job in plan.items()}
    ready = deque(name for name, count in missing.items() if count == 0)
    failed: dict[str, str] = {}
    while ready or any(each.job for each in workers):
        for worker in workers:
            while worker.job is None and ready:
                job = plan[ready.popleft()]
                if job.name in failed:
                    status.end(skip_outcome(job, failed[job.name]))
                    _release(job.name, dependants, missing, ready, failed, ended_well=False)
                    continue
                status.begin(job)
                worker.begin(job)
        busy = {each.connection: each for each in workers if each.job}
        over = wait(list(busy), timeout=LOOK)
        status.tick()
        for connection in over:
            worker = busy[connection]  # type: ignore[index]  # only connections are waited for
            assert worker.job is not None
            outcome = worker.outcome(log_of(logs, worker.job))
            status.end(outcome)
            _release(outcome.name, dependants, missing, ready, failed, ended_well=outcome.state == "done")


def _release(
    name: str,
    dependants: dict[str, list[str]],
    missing: dict[str, int],
    ready: "deque[str]",
    failed: dict[str, str],
    *,
    ended_well: bool,
) -> None:
    """Make the dependants of an ended job ready if it was the last they needed; if it failed, they will be skipped."""
    for dependant in dict.fromkeys(dependants[name]):
        if not ended_well:
            failed.setdefault(dependant, name)
        missing[dependant] -= 1
        if missing[dependant] == 0:
            ready.append(dependant)


@contextmanager
def _workers(workers: list[_Worker]) -> Iterator[list[_Worker]]:
    """Worker processes that end when the context does.

    The terminal's Ctrl-C does not reach them. If this process is interrupted or receives SIGTERM, each worker is sent
    SIGTERM once, on which training saves a checkpoint and stops; jobs that have not started are dropped.
    """
    try:
        with stoppable():
            yield workers
    except BaseException:
        for process in _processes(workers):
            process.terminate()
        raise
    finally:
        for worker in workers:
            if worker.process is not None:
                worker.connection.close()  # the worker ends after its current job
        try:
            for process in _processes(workers):
                process.join()
        except BaseException:  # a second Ctrl-C: do not wait for checkpoints
            for process in _processes(workers):
                process.kill()
            raise


def _processes(workers: list[_Worker]) -> list[SpawnProcess]:
    return [worker.process for worker in workers if worker.process is not None]


@contextmanager
def stoppable() -> Iterator[None]:
    """Within the context, SIGTERM raises `Stopped` in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: object) -> None:
        raise Stopped("stopped; the same command continues with the rest.")

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _serve(connection: Connection, settings: _WorkerSettings, gpus: str | None) -> None:
    """The main function of a worker process: take its GPUs, leave the terminal, watch the parent, and do jobs."""
    if gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    os.environ["TERM"] = "dumb"  # only the parent shows a bar
    os.setpgrp()
    threading.Thread(target=_leave_with, args=(settings.parent,), daemon=True).start()
    how = {"runs": settings.runs, "threads": settings.threads, "devices": settings.devices}
    with suppress(EOFError, OSError):
        while True:
            job: Job = connection.recv()
            connection.send(do(job, log=log_of(settings.logs, job), **how))  # type: ignore[arg-type]  # of several kinds
    os._exit(0)  # every job has closed its files; taking the libraries apart would keep the command waiting


def _leave_with(parent: int) -> None:
    """Exit if the parent is killed: otherwise this process would hold the lock that the next command needs."""
    while os.getppid() == parent:
        time.sleep(0.2)
    leave()


def _gpus() -> list[str]:
    """The GPUs that this process may use, by their names in CUDA_VISIBLE_DEVICES."""
    import torch

    num = torch.cuda.device_count()
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is None:
        return [str(number) for number in range(num)]
    # A name that is no GPU, such as -1, hides itself and all after it.
    return [each.strip() for each in given.split(",") if each.strip()][:num]
