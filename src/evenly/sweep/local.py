"""Processes of this machine: as many jobs at once as it has devices or cores, each with its share of them."""

import functools
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from multiprocessing.context import SpawnContext
from pathlib import Path

from evenly.errors import SetupError, Stopped
from evenly.sweep.plan import Job, Plan
from evenly.sweep.status import Status
from evenly.sweep.where import Where
from evenly.sweep.worker import Outcome, do, limit_threads, skipped

LOOK = 5.0  # seconds from one line on progress to the next, at most


def usable_cores() -> int:
    """The cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run(plan: Plan, where: Where, *, runs: Path, logs: Path, status: Status) -> None:
    """Carry out a plan in processes of this machine; `status` hears of every job."""
    gpus = _gpus() if where.gpus else []
    at_once = where.at_once or (max(1, len(gpus) // where.gpus) if gpus else usable_cores())
    at_once = min(at_once, len(plan))
    check(where, at_once=at_once)
    threads = where.threads or max(1, usable_cores() // (at_once * where.devices))
    call = functools.partial(_do, runs=str(runs), logs=str(logs), threads=threads, devices=where.devices)
    shares = [gpus[i * where.gpus : (i + 1) * where.gpus] for i in range(at_once)] if where.gpus else None
    with worker_pool(at_once, gpus=shares) as pool:
        _submit_in_order(plan, lambda job: pool.submit(call, job), status=status, at_once=at_once)


def check(where: Where, *, at_once: int | None = None) -> None:
    """Raise unless this machine has the GPUs that jobs at once are given."""
    wanted = where.gpus * (at_once or where.at_once or 1)
    if wanted and (there := len(_gpus())) < wanted:
        raise SetupError(
            f"--gpus {where.gpus}: {wanted // where.gpus} runs at once need {wanted} GPUs, and this machine has "
            f"{there}. Give --on local:{max(1, there // where.gpus)}, or no --gpus."
        )


def log_of(logs: str | Path, job: Job) -> str:
    """Where a job's output goes: its name, as a file name."""
    return str(Path(logs) / ("".join(c if c.isalnum() or c in "-=." else "_" for c in job.name)[:120] + ".log"))


def _do(job: Job, *, runs: str, logs: str, threads: int, devices: int) -> Outcome:
    return do(job, runs=runs, log=log_of(logs, job), threads=threads, devices=devices)


def _submit_in_order(plan: Plan, submit: Callable[[Job], Future[Outcome]], *, status: Status, at_once: int) -> None:
    """Submit each job when what it needs is done, in the order of the plan; a failure ends only what needs it."""
    dependents = plan.dependents()
    missing = {name: len(set(job.needs)) for name, job in plan.items()}
    ready = [name for name, count in missing.items() if count == 0]
    running: dict[Future[Outcome], str] = {}
    failed: dict[str, str] = {}
    while ready or running:
        # No more than can run: what is handed over early would begin in the order of handing over, not of the plan.
        while ready and len(running) < at_once:
            job = plan[ready.pop(0)]
            if job.name in failed:
                status.end(skipped(job, failed[job.name]))
                _release(job.name, dependents, missing, ready, failed, ended_well=False)
                continue
            status.begin(job)
            running[submit(job)] = job.name
        if not running:
            continue
        over, _ = wait(running, timeout=LOOK, return_when=FIRST_COMPLETED)
        status.tick()
        for future in over:
            name = running.pop(future)
            outcome = future.result()
            status.end(outcome)
            _release(name, dependents, missing, ready, failed, ended_well=outcome.state == "done")


def _release(
    name: str,
    dependents: dict[str, list[str]],
    missing: dict[str, int],
    ready: list[str],
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
def worker_pool(
    workers: int, *, gpus: list[list[str]] | None = None, threads: int | None = None
) -> Iterator[ProcessPoolExecutor]:
    """Processes that work for this one and end with it, each with its share of GPUs and threads.

    They are out of reach of the terminal's Ctrl-C. When this process is interrupted or gets SIGTERM, each is sent
    SIGTERM once, which training answers by saving where it stands; work that has not begun is dropped.
    """
    context: SpawnContext = multiprocessing.get_context("spawn")
    shares = context.Queue() if gpus else None
    for share in gpus or ():
        assert shares is not None
        shares.put(",".join(share))
    begin = functools.partial(_begin, os.getpid(), shares, threads)
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=begin)
    try:
        with _stoppable():
            yield pool
    except (KeyboardInterrupt, Stopped):
        for process in list((pool._processes or {}).values()):
            process.terminate()
        raise
    except BrokenProcessPool:
        # The others were asked to end, which training answers at its next step.
        for process in list((pool._processes or {}).values()):
            process.kill()
        raise SetupError(
            "a process that did a job was killed, most likely for want of memory. What is done is kept: the same "
            "command goes on with the rest, and --on local:1 needs the least memory."
        ) from None
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


@contextmanager
def _stoppable() -> Iterator[None]:
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


def _begin(parent: int, shares: "multiprocessing.Queue[str] | None", threads: int | None) -> None:
    """What a working process does first: take its GPUs and threads, leave the terminal, and watch its parent."""
    if shares is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = shares.get()
    os.environ["TERM"] = "dumb"  # one bar for all, and that is the parent's
    os.setpgrp()
    threading.Thread(target=_leave_with, args=(parent,), daemon=True).start()
    if threads is not None:
        limit_threads(threads)


def _leave_with(parent: int) -> None:
    """End when the parent was killed: nobody waits for the work, and its lock would be in the way of the next."""
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)


def _gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them."""
    if given := os.environ.get("CUDA_VISIBLE_DEVICES"):
        return given.split(",")
    import torch

    return [str(number) for number in range(torch.cuda.device_count())]
