"""`launch`: carry out a plan on any engine, with one progress bar, and return the result of every job."""

import socket
import time
from pathlib import Path
from typing import Any

from evenly.errors import EvenlyError, Stopped
from evenly.sweep import local
from evenly.sweep.plan import Job, Plan
from evenly.sweep.status import FOLDER, Listener, Status
from evenly.sweep.status import JobsFailed as JobsFailed
from evenly.sweep.where import Where
from evenly.sweep.worker import Outcome, call, seconds_taken, skip_outcome

HERE = Where(at_once=1)


def launch(
    plan: Plan,
    where: Where = HERE,
    *,
    runs: str | Path = "runs",
    what: str = "runs",
    listener: Listener | None = None,
    stop_at_failure: bool = False,
) -> dict[str, Any]:
    """Carry out a plan and return the result of every job, by name.

    Finished jobs are not repeated, and stopped jobs resume. A failed job cancels only its dependants, and all failures
    are reported together at the end; with `stop_at_failure`, and only if jobs run one after another in this process,
    the first failure is raised at once. The results are the same on every engine: bit for bit, with the same number of
    threads per job on equal machines.

    >>> import tempfile
    >>> jobs = [Job(f"seed {n}", "evenly.sweep.worker:do_nothing", {"n": n}) for n in range(3)]
    >>> launch(Plan(jobs), runs=tempfile.mkdtemp())
    {'seed 0': {'n': 0}, 'seed 1': {'n': 1}, 'seed 2': {'n': 2}}
    """
    runs = Path(runs)
    if not plan:
        return {}
    if runs_here(where, plan):
        with Status(plan, where, None, what, listener) as status:
            _run_here(plan, where, runs, status, stop_at_failure=stop_at_failure)
        return status.results()
    folder = runs / FOLDER / plan.digest
    with Status(plan, where, folder, f"{what} on {where}", listener) as status:
        if where.engine == "local":
            local.run(plan, where, runs=runs, logs=folder, status=status)
        elif where.engine == "ray":
            from evenly.sweep import on_ray

            on_ray.run(plan, where, runs=runs, logs=folder, status=status)
        else:
            from evenly.sweep import on_slurm

            on_slurm.run(plan, where, runs=runs, logs=folder, status=status)
    return status.results()


def check_available(where: Where, *, memory: int = 0) -> Where:
    """Raise, before anything is trained, if an engine is not installed, does not answer or has no such partition.

    `memory` is the least number of bytes that a run needs. Returns `where`, on this machine with the number of runs at
    once resolved.
    """
    if where.engine == "ray":
        from evenly.sweep import ray_cluster

        ray_cluster.check(where)
    elif where.engine == "slurm":
        from evenly.sweep import slurm_cluster

        slurm_cluster.check(where, memory=memory)
    elif not is_sequential(where):
        return local.resolve_where(where, memory=memory)
    return where


def runs_here(where: Where, plan: Plan) -> bool:
    """Whether the plan runs in this process: one job at a time needs no worker process."""
    return is_sequential(where) or (where.engine == "local" and where.devices == 1 and len(plan) == 1)


def is_sequential(where: Where) -> bool:
    """Whether jobs run one after another in this process."""
    return where.engine == "local" and where.devices == 1 and where.at_once == 1


def _run_here(plan: Plan, where: Where, runs: Path, status: Status, *, stop_at_failure: bool) -> None:
    for job in _in_order(plan):
        bad = next((name for name in job.needs if status.outcomes[name].state != "done"), None)
        if bad is not None:
            status.end(skip_outcome(job, bad))
            continue
        status.begin(job)
        begun = time.monotonic()
        try:
            result = call(job, str(runs), where.threads)
        except (Stopped, KeyboardInterrupt) as error:
            status.end(Outcome(job.name, "stopped", error=str(error), seconds=time.monotonic() - begun))
            raise
        except EvenlyError as error:
            taken = time.monotonic() - begun
            failure = Outcome(job.name, "failed", error=str(error), seconds=taken, exit_code=error.exit_code)
            status.end(failure)
            if stop_at_failure or len(plan) == 1:
                raise
            continue
        taken = seconds_taken(result, str(runs), time.monotonic() - begun)
        status.end(Outcome(job.name, "done", result, host=socket.gethostname(), seconds=taken))


def _in_order(plan: Plan) -> list[Job]:
    """The jobs in the given order if each comes after its dependencies, else layer by layer."""
    seen: set[str] = set()
    for job in plan.values():
        if not seen.issuperset(job.needs):
            return [job for layer in plan.layers() for job in layer]
        seen.add(job.name)
    return list(plan.values())
