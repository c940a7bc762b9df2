"""Array jobs of a Slurm cluster, through submitit: one array for every layer of the plan.

All nodes must share the folder of runs. A job that reaches its time limit or is preempted saves a checkpoint, is
requeued by submitit and resumes. A job whose process or node was lost is resubmitted by the waiting command. A job that
somebody cancelled is resubmitted when the same command is run again. While the controller does not answer, the command
waits.
"""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import Any

from evenly import atomic
from evenly.errors import SetupError
from evenly.sweep import slurm_cluster
from evenly.sweep.local import log_of
from evenly.sweep.plan import Job, Plan
from evenly.sweep.status import Status, leave_or_cancel
from evenly.sweep.where import Where
from evenly.sweep.worker import Outcome, do, skip_outcome

SUBMITTED = "slurm.json"  # the Slurm IDs of a plan's jobs
SAVING = 60  # seconds to save a checkpoint; Slurm warns 90 seconds before it kills
RETRIES = 3  # of a job that ended without a result
LOOK = 1.0  # seconds between two queries of the queue, at first
LONGEST_LOOK = 30.0
GRACE = 15.0  # seconds to wait for a result to appear on the shared file system after its job has left the queue


class Task:
    """One job, called by submitit, which calls `checkpoint` to requeue the job if its node is preempted."""

    def __call__(self, job: Job, runs: str, log: str, threads: int, devices: int) -> Outcome:
        """Do the job; on Slurm's time-limit warning, save a checkpoint and requeue."""
        warned = signal.Signals.SIGUSR2
        handler = signal.getsignal(warned)  # submitit's, which requeues the job

        def queue_again(number: int, frame: FrameType | None) -> None:
            requeue(handler, number)

        def stop(number: int, frame: FrameType | None) -> None:
            # On SIGTERM, training saves and stops. A job that has not stopped by the alarm is requeued without saving.
            signal.signal(signal.SIGALRM, queue_again)
            signal.alarm(SAVING)
            signal.raise_signal(signal.SIGTERM)

        signal.signal(warned, stop)
        outcome = do(job, runs=runs, log=log, threads=threads, devices=devices)
        signal.signal(warned, handler)
        if signal.alarm(0) and outcome.state == "stopped" and callable(handler):
            requeue(handler, warned)  # this ends the process
        return outcome

    def checkpoint(self, *arguments: Any) -> Any:
        """The same call, to be requeued; it resumes from the last checkpoint on disk."""
        from submitit.helpers import DelayedSubmission

        return DelayedSubmission(self, *arguments)


def requeue(handler: Any, number: int) -> None:
    """Requeue this job by submitit's signal handler, which ends the process.

    Slurm ends a requeued job at once, at times before the `scontrol` that asked for it has returned: such an end means
    that the job was requeued.
    """
    try:
        handler(number, None)
    except subprocess.CalledProcessError as error:
        if error.returncode != -signal.SIGTERM:
            raise
        sys.exit(-1)


def run(plan: Plan, where: Where, *, runs: Path, logs: Path, status: Status) -> None:
    """Carry out a plan on the Slurm cluster of this machine, layer by layer."""
    executor = _executor(where, runs, logs)
    for layer in plan.layers():
        able = []
        for job in layer:
            bad = next((name for name in job.needs if status.outcomes[name].state != "done"), None)
            if bad is None:
                able.append(job)
            else:
                status.end(skip_outcome(job, bad))
        for attempt in range(RETRIES + 1):
            able = _run_layer(executor, able, where, runs=runs, logs=logs, status=status, last=attempt == RETRIES)
            if not able:
                break


def _run_layer(
    executor: Any, jobs: Sequence[Job], where: Where, *, runs: Path, logs: Path, status: Status, last: bool
) -> list[Job]:
    """Submit jobs as arrays and wait; return the jobs that ended without a result and may be retried."""
    waiting = _submit(executor, jobs, where, runs, logs)
    by_name = {job.name: job for job in jobs}
    gone: dict[str, float] = {}
    lost: list[Job] = []
    pause = LOOK
    try:
        while waiting:
            states = slurm_cluster.states([each.job_id for each in waiting.values()])
            for name, each in list(waiting.items()):
                outcome = _outcome(each)
                state = "" if states is None else states.get(each.job_id, "")
                # Do not resubmit a stopped job before it has left the queue: only then is the reason known. While the
                # controller does not answer, no job is lost.
                alive = states is None or state in slurm_cluster.ALIVE
                if (outcome is None or outcome.state == "stopped") and alive:
                    gone.pop(name, None)
                    if state == "RUNNING" and name not in status.running:
                        status.begin(by_name[name])
                    continue
                if outcome is None and time.monotonic() - gone.setdefault(name, time.monotonic()) < GRACE:
                    continue
                del waiting[name]
                if outcome is not None and outcome.state != "stopped":
                    status.end(replace(outcome, name=name))
                elif last or state == "CANCELLED":
                    how = "was cancelled" if state == "CANCELLED" else "ended without a result"
                    log = log_of(logs, by_name[name])
                    error = f"Slurm job {each.job_id} {how}"
                    status.end(Outcome(name, "lost", error=error, host=slurm_cluster.host(each.job_id), log=log))
                else:
                    lost.append(by_name[name])
            status.tick()
            if waiting:
                time.sleep(pause)
                pause = min(pause * 1.2, LONGEST_LOOK) if not gone else LOOK
    except KeyboardInterrupt:
        arrays = slurm_cluster.arrays([each.job_id for each in waiting.values()])
        leave_or_cancel(f"Slurm ({', '.join(arrays)})", lambda: subprocess.run(["scancel", *arrays], check=False))
        raise
    return lost


def _submit(executor: Any, jobs: Sequence[Job], where: Where, runs: Path, logs: Path) -> dict[str, Any]:
    """The Slurm job of each job, by name: already queued by an earlier command, or submitted now as one array."""
    submitted = _queued_jobs(logs, [job.name for job in jobs])
    fresh = [job for job in jobs if job.name not in submitted]
    threads = where.threads or 1
    rows = [(job, str(runs.resolve()), log_of(logs.resolve(), job), threads, where.devices) for job in fresh]
    longest = slurm_cluster.longest_array() if len(rows) > 1 else 1
    for start in range(0, len(rows), longest):
        try:
            made = executor.map_array(Task(), *zip(*rows[start : start + longest], strict=True))
        except Exception as error:  # submitit raises several kinds of errors for failures of sbatch
            raise SetupError(f"--on {where}: Slurm did not take the jobs: {_reason(error)}") from error
        submitted |= {job.name: each for job, each in zip(fresh[start:], made, strict=False)}
        known = _read(logs)  # after every array, so that an interrupted command leaves no unknown jobs in the queue
        atomic.write_json(logs / SUBMITTED, known | {name: each.job_id for name, each in submitted.items()})
    return submitted


def _queued_jobs(logs: Path, names: Sequence[str]) -> dict[str, Any]:
    """The jobs that an earlier command of the same plan submitted and that are still in the queue."""
    import submitit

    known = {name: number for name, number in _read(logs).items() if name in names}
    alive = slurm_cluster.states(list(known.values()))
    if alive is None:
        raise SetupError(
            "--on slurm: `squeue` does not answer, so it is not known which of the jobs submitted before still run. "
            "Give the same command again when the cluster's controller is up."
        )
    folder = logs / "slurm"
    return {
        name: submitit.SlurmJob(folder=folder, job_id=number, tasks=[0])
        for name, number in known.items()
        if alive.get(number, "") in slurm_cluster.ALIVE
    }


def _read(logs: Path) -> dict[str, str]:
    try:
        known = json.loads((logs / SUBMITTED).read_bytes())
    except (OSError, ValueError):
        return {}
    return {str(name): str(number) for name, number in known.items()} if isinstance(known, dict) else {}


def _executor(where: Where, runs: Path, logs: Path) -> Any:
    slurm_cluster.check(where)
    slurm_cluster.check_shared(where, runs)
    import submitit

    executor = submitit.AutoExecutor(folder=logs / "slurm", cluster="slurm", slurm_max_num_timeout=1_000)
    settings: dict[str, Any] = {
        "name": "evenly",
        "cpus_per_task": (where.threads or 1) * where.devices,
        "timeout_min": where.minutes or 24 * 60,
    }
    if where.gpus:
        settings["gpus_per_node"] = where.gpus * where.devices
    if where.memory:
        settings["mem_gb"] = where.memory
    if where.address:
        settings["slurm_partition"] = where.address
    if where.account:
        settings["slurm_account"] = where.account
    settings["slurm_array_parallelism"] = 1_000
    executor.update_parameters(**settings)
    return executor


def _outcome(submitted: Any) -> Outcome | None:
    """The outcome of a job, read from disk; an error raised by submitit counts as a failure."""
    path = submitted.paths.result_pickle
    if not path.is_file():
        return None
    try:
        outcome: Outcome = submitted.result()
    except Exception as error:  # raised in the job, but outside of `do`
        return Outcome("", "failed", error=_reason(error), log=str(submitted.paths.stderr))
    return outcome


def _reason(error: BaseException) -> str:
    return str(error).strip().splitlines()[-1] if str(error).strip() else type(error).__name__
