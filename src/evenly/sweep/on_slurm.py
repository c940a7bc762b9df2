"""Array jobs of a Slurm cluster, through submitit: one array for every layer of the plan.

The folder of runs must be one that all nodes see, as it is on clusters. A job that reaches its time limit or is
preempted is queued again by submitit and goes on from its last checkpoint; one that was killed is submitted again by
the command that waits for it, or by the same command when it is given again.
"""

import contextlib
import importlib.util
import json
import shutil
import subprocess
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenly import atomic
from evenly.errors import SetupError, UsageError, did_you_mean
from evenly.sweep.local import log_of
from evenly.sweep.plan import Job, Plan
from evenly.sweep.status import Status
from evenly.sweep.where import Where
from evenly.sweep.worker import Outcome, do, skipped

SUBMITTED = "slurm.json"  # the numbers of a plan's jobs in Slurm
RETRIES = 3  # of a job that ended without saying how
LOOK = 1.0  # seconds between two looks at the queue, at first
LONGEST_LOOK = 30.0
GRACE = 15.0  # seconds that a result may take to appear on a shared file system after its job has left the queue
ALIVE = {
    "PENDING",
    "RUNNING",
    "CONFIGURING",
    "COMPLETING",
    "REQUEUED",
    "SUSPENDED",
    "RESIZING",
    "SIGNALING",
    "STAGE_OUT",
}


class Task:
    """One job as submitit calls it; `checkpoint` is its answer when Slurm takes the node away: begin again there."""

    def __call__(self, job: Job, runs: str, log: str, threads: int, devices: int) -> Outcome:
        """Do the job."""
        return do(job, runs=runs, log=log, threads=threads, devices=devices)

    def checkpoint(self, *arguments: Any) -> Any:
        """The same call, queued again: what was trained is on disk, and training goes on from there."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, *arguments)


def run(plan: Plan, where: Where, *, runs: Path, logs: Path, status: Status) -> None:
    """Carry out a plan on the Slurm cluster of this machine, layer by layer."""
    executor = _executor(where, logs)
    for layer in plan.layers():
        able = []
        for job in layer:
            bad = next((name for name in job.needs if status.outcomes[name].state != "done"), None)
            if bad is None:
                able.append(job)
            else:
                status.end(skipped(job, bad))
        for job in able:
            status.begin(job)
        waiting = able
        for attempt in range(RETRIES + 1):
            waiting = _run_layer(executor, waiting, where, runs=runs, logs=logs, status=status, last=attempt == RETRIES)
            if not waiting:
                break


def _run_layer(
    executor: Any, jobs: Sequence[Job], where: Where, *, runs: Path, logs: Path, status: Status, last: bool
) -> list[Job]:
    """Submit jobs as one array and wait for them; give those that ended without saying how, if they may try again."""
    waiting = _submit(executor, jobs, where, runs, logs)
    by_name = {job.name: job for job in jobs}
    gone: dict[str, float] = {}
    lost: list[Job] = []
    pause = LOOK
    try:
        while waiting:
            states = _states([each.job_id for each in waiting.values()])
            for name, each in list(waiting.items()):
                outcome = _outcome(each)
                if outcome is None and states.get(each.job_id, "") in ALIVE:
                    gone.pop(name, None)
                    continue
                if outcome is None and time.monotonic() - gone.setdefault(name, time.monotonic()) < GRACE:
                    continue
                del waiting[name]
                if outcome is not None and outcome.state != "stopped":
                    status.end(replace(outcome, name=name))
                elif last:
                    log = log_of(logs, by_name[name])
                    status.end(Outcome(name, "lost", error=f"Slurm job {each.job_id} ended without a result", log=log))
                else:
                    lost.append(by_name[name])
            status.tick()
            if waiting:
                time.sleep(pause)
                pause = min(pause * 1.2, LONGEST_LOOK) if not gone else LOOK
    except KeyboardInterrupt:
        _leave_or_cancel([each.job_id for each in waiting.values()])
        raise
    return lost


def _submit(executor: Any, jobs: Sequence[Job], where: Where, runs: Path, logs: Path) -> dict[str, Any]:
    """Each job as it is in Slurm, by name: those that an earlier command left there, and the others as one array."""
    submitted = _left_there(logs, [job.name for job in jobs])
    fresh = [job for job in jobs if job.name not in submitted]
    threads = where.threads or 1
    rows = [(job, str(runs.resolve()), log_of(logs.resolve(), job), threads, where.devices) for job in fresh]
    if rows:
        try:
            made = executor.map_array(Task(), *zip(*rows, strict=True))
        except Exception as error:  # submitit passes on whatever sbatch said, as errors of several kinds
            raise SetupError(f"--on {where}: Slurm did not take the jobs: {_reason(error)}") from error
        submitted |= {job.name: each for job, each in zip(fresh, made, strict=True)}
    known = _read(logs)
    atomic.write_json(logs / SUBMITTED, known | {name: each.job_id for name, each in submitted.items()})
    return submitted


def _left_there(logs: Path, names: Sequence[str]) -> dict[str, Any]:
    """The jobs that an earlier command of the same plan submitted and that are still in the queue."""
    import submitit

    known = {name: number for name, number in _read(logs).items() if name in names}
    alive = _states(list(known.values()))
    folder = logs / "slurm"
    return {
        name: submitit.SlurmJob(folder=folder, job_id=number, tasks=[0])
        for name, number in known.items()
        if alive.get(number, "") in ALIVE
    }


def _read(logs: Path) -> dict[str, str]:
    try:
        known = json.loads((logs / SUBMITTED).read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(name): str(number) for name, number in known.items()} if isinstance(known, dict) else {}


def check(where: Where) -> None:
    """Raise unless submitit is installed, Slurm answers, and the partition exists."""
    if importlib.util.find_spec("submitit") is None:
        raise SetupError('--on slurm needs submitit: pip install "evenly[slurm]"')
    if shutil.which("sbatch") is None:
        raise SetupError(
            "--on slurm: there is no sbatch on this machine. Give the command on a login node of the cluster, or use "
            "--on local or --on ray."
        )
    _check_partition(where)


def _executor(where: Where, logs: Path) -> Any:
    check(where)
    import submitit

    executor = submitit.AutoExecutor(folder=logs / "slurm", cluster="slurm", slurm_max_num_timeout=1_000)
    settings: dict[str, Any] = {
        "name": "evenly",
        "cpus_per_task": (where.threads or 1) * where.devices,
        "timeout_min": where.minutes or 24 * 60,
        "slurm_use_srun": False,
    }
    if where.gpus:
        settings["gpus_per_node"] = where.gpus * where.devices
    if where.address:
        settings["slurm_partition"] = where.address
    if where.account:
        settings["slurm_account"] = where.account
    if where.at_once:
        settings["slurm_array_parallelism"] = where.at_once
    else:
        settings["slurm_array_parallelism"] = 1_000
    executor.update_parameters(**settings)
    return executor


def _check_partition(where: Where) -> None:
    """An unknown partition or a controller that does not answer is an error before anything is submitted."""
    answer = _asked("sinfo", "--noheader", "--format=%R")
    known = sorted(set(answer.split()))
    if where.address and where.address not in known:
        raise UsageError(f"--on {where}: there is no partition {where.address!r}. {did_you_mean(where.address, known)}")


def _states(ids: Sequence[str]) -> dict[str, str]:
    """The state of every job that the queue still knows, by its number."""
    if not ids:
        return {}
    roots = sorted({each.partition("_")[0] for each in ids})
    command = ["squeue", "--noheader", "--array", "--states=all", f"--jobs={','.join(roots)}", "--format=%i %T"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    rows = (line.split() for line in answer.stdout.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


def _outcome(submitted: Any) -> Outcome | None:
    """What a job said, once its result is on disk; an error of submitit's own is a failed job."""
    path = submitted.paths.result_pickle
    if not path.is_file():
        return None
    try:
        outcome: Outcome = submitted.result()
    except Exception as error:  # raised in the job, outside of what `do` catches
        return Outcome("", "failed", error=_reason(error), log=str(submitted.paths.stderr))
    return outcome


def _leave_or_cancel(ids: Sequence[str]) -> None:
    """After Ctrl-C: leave the jobs to Slurm, unless Ctrl-C comes once more within three seconds."""
    from evenly.progress import tell

    roots = sorted({each.partition("_")[0] for each in ids})
    tell(f"The jobs go on in Slurm ({', '.join(roots)}); the same command waits for them. Ctrl-C again cancels them.")
    try:
        time.sleep(3)
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            subprocess.run(["scancel", *roots], check=False)
        tell("Cancelled. What is done is kept.")


def _asked(*command: str) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        said = getattr(error, "stderr", None) or str(error)
        said = said.strip().splitlines()[-1].rstrip(".")
        raise SetupError(f"--on slurm: `{command[0]}` says: {said}. Is the cluster's controller up?") from error
    return answer.stdout


def _reason(error: BaseException) -> str:
    return str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
