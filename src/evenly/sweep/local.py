"""Processes of this machine: as many jobs at once as it has devices or cores, each with its share of them."""

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

LOOK = 5.0  # seconds from one line on progress to the next, at most


def usable_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(plan: Plan, where: Where, *, runs: Path, logs: Path, status: Status) -> None:
    """Carry out a plan in processes of this machine; `status` hears of every job."""
    where = checked(where)
    gpus, each = _gpus() if where.gpus else [], (where.gpus or 0) * where.devices
    at_once = min(where.at_once or 1, len(plan))
    orders = _Orders(
        runs=str(runs),
        logs=str(logs),
        threads=where.threads or max(1, usable_cores() // (at_once * where.devices)),
        devices=where.devices,
        parent=os.getpid(),
    )
    shares = [",".join(gpus[i * each : (i + 1) * each]) if each else None for i in range(at_once)]
    with _workers([_Worker(orders, share) for share in shares]) as workers:
        _give_out(plan, workers, logs=logs, status=status)


def checked(where: Where, *, memory: int = 0) -> Where:
    """`where` with what was left open decided, each run with a GPU where there are any; an error if it does not fit.

    `memory` is the number of bytes that a run is known to need at least.
    """
    gpus = [] if where.gpus == 0 else _gpus()
    each = (1 if gpus else 0) if where.gpus is None else where.gpus
    room = len(gpus) // (each * where.devices) if each else max(1, usable_cores() // where.devices)
    wanted = where.at_once or max(1, room)
    if each and room < wanted:
        raise SetupError(
            f"{wanted} runs at once of {where.devices} x {each} GPUs need {wanted * where.devices * each}, and this "
            f"machine has {len(gpus)}. Give {f'--on local:{room}' if room else 'fewer --devices-per-run'}, or --gpus 0."
        )
    if memory:
        wanted = _fitting(where, wanted, memory * where.devices)
    return replace(where, at_once=wanted, gpus=each)


def _fitting(where: Where, wanted: int, memory: int) -> int:
    """How many runs at once the free memory holds; an error if that is less than was asked for."""
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
    """Where a job's output goes: its name, as a file name."""
    return str(Path(logs) / ("".join(c if c.isalnum() or c in "-=." else "_" for c in job.name)[:120] + ".log"))


@dataclass(frozen=True)
class _Orders:
    """What every working process is told."""

    runs: str
    logs: str
    threads: int
    devices: int
    parent: int


class _Worker:
    """A process that does one job after the other, and the line to it; it is started again when it was killed."""

    def __init__(self, orders: _Orders, gpus: str | None) -> None:
        self.orders, self.gpus = orders, gpus
        self.job: Job | None = None
        self.process: SpawnProcess | None = None
        self.line: Connection

    def begin(self, job: Job) -> None:
        """Give it a job."""
        if self.process is None:
            context = multiprocessing.get_context("spawn")
            self.line, its_end = context.Pipe()
            self.process = context.Process(target=_serve, args=(its_end, self.orders, self.gpus), daemon=False)
            self.process.start()
            its_end.close()
        self.job = job
        self.begun = time.monotonic()
        with suppress(OSError):  # killed while it waited: `outcome` says so
            self.line.send(job)

    def outcome(self, log: str) -> Outcome:
        """How its job ended, once the line says something."""
        assert self.job is not None
        assert self.process is not None
        name, self.job = self.job.name, None
        try:
            outcome: Outcome = self.line.recv()
            return outcome
        except (EOFError, OSError):
            self.process.join()
            code, self.process = self.process.exitcode, None
            self.line.close()
        how = "most likely for want of memory: --on local:1 needs the least" if code == -signal.SIGKILL else ""
        error = f"its process ended with {f'signal {-code}' if code and code < 0 else f'code {code}'}" + (
            f", {how}" if how else ""
        )
        taken = time.monotonic() - self.begun
        lost = {"host": socket.gethostname(), "log": log, "seconds": taken, "exit_code": SetupError.exit_code}
        return Outcome(name, "lost", error=error, **lost)  # type: ignore[arg-type]


def _give_out(plan: Plan, workers: list[_Worker], *, logs: Path, status: Status) -> None:
    """Give out each job when what it needs is done, in the order of the plan; a failure ends only what needs it."""
    dependents = plan.dependents()
    missing = {name: len(set(job.needs)) for name, job in plan.items()}
    ready = deque(name for name, count in missing.items() if count == 0)
    failed: dict[str, str] = {}
    while ready or any(each.job for each in workers):
        for worker in workers:
            while worker.job is None and ready:
                job = plan[ready.popleft()]
                if job.name in failed:
                    status.end(skip_outcome(job, failed[job.name]))
                    _release(job.name, dependents, missing, ready, failed, ended_well=False)
                    continue
                status.begin(job)
                worker.begin(job)
        busy = {each.line: each for each in workers if each.job}
        over = wait(list(busy), timeout=LOOK)
        status.tick()
        for line in over:
            worker = busy[line]  # type: ignore[index]
            assert worker.job is not None
            outcome = worker.outcome(log_of(logs, worker.job))
            status.end(outcome)
            _release(outcome.name, dependents, missing, ready, failed, ended_well=outcome.state == "done")


def _release(
    name: str,
    dependents: dict[str, list[str]],
    missing: dict[str, int],
    ready: "deque[str]",
    failed: dict[str, str],
    *,
    ended_well: bool,
) -> None:
    """Make ready what waited for a job, and remember what can no longer begin."""
    for dependent in dict.fromkeys(dependents[name]):
        if not ended_well:
            failed.setdefault(dependent, name)
        missing[dependent] -= 1
        if missing[dependent] == 0:
            ready.append(dependent)


@contextmanager
def _workers(workers: list[_Worker]) -> Iterator[list[_Worker]]:
    """Processes that work for this one and end with it.

    They are out of reach of the terminal's Ctrl-C. When this process is interrupted or gets SIGTERM, each is sent
    SIGTERM once, which training answers by saving where it stands; work that has not begun is dropped.
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
                worker.line.close()  # which ends it, after what it is doing
        try:
            for process in _processes(workers):
                process.join()
        except BaseException:  # Ctrl-C once more: not even to save
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
        raise Stopped("stopped; the same command goes on with what is left.")

    previous = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, previous)


def _serve(line: Connection, orders: _Orders, gpus: str | None) -> None:
    """What a working process does: take its GPUs and threads, leave the terminal, watch its parent, and work."""
    if gpus is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = gpus
    os.environ["TERM"] = "dumb"  # one bar for all, and that is the parent's
    os.setpgrp()
    threading.Thread(target=_leave_with, args=(orders.parent,), daemon=True).start()
    how = {"runs": orders.runs, "threads": orders.threads, "devices": orders.devices}
    with suppress(EOFError, OSError):
        while True:
            job: Job = line.recv()
            line.send(do(job, log=log_of(orders.logs, job), **how))  # type: ignore[arg-type]


def _leave_with(parent: int) -> None:
    """End when the parent was killed: nobody waits for the work, and its lock would be in the way of the next."""
    while os.getppid() == parent:
        time.sleep(0.2)
    leave()


def _gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    if (given := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return [each for each in given.split(",") if each]
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]
