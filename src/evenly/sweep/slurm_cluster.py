"""Queries to a Slurm cluster: whether it answers, what its nodes have and share, and the states of jobs."""

import importlib.util
import math
import shutil
import socket
import subprocess
import uuid
from collections.abc import Sequence
from pathlib import Path

from evenly.errors import SetupError, UsageError, did_you_mean
from evenly.sweep.where import Where

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


def check(where: Where, *, memory: int = 0) -> None:
    """Raise unless submitit is installed, Slurm answers, the partition exists, and a run fits on one of its nodes.

    `memory` is the least number of bytes that a run needs.
    """
    if importlib.util.find_spec("submitit") is None:
        raise SetupError('--on slurm needs submitit: pip install "evenly[slurm]"')
    if shutil.which("sbatch") is None:
        raise SetupError(
            "--on slurm: there is no sbatch on this machine. Give the command on a login node of the cluster, or use "
            "--on local or --on ray."
        )
    _check_partition(where)
    _check_room(where, memory)


def _check_partition(where: Where) -> None:
    """Raise, before anything is submitted, if the partition is unknown or the controller does not answer."""
    answer = _ask("sinfo", "--noheader", "--format=%R")
    known = sorted(set(answer.split()))
    if where.address and where.address not in known:
        raise UsageError(f"--on {where}: there is no partition {where.address!r}. {did_you_mean(where.address, known)}")


def _check_room(where: Where, memory: int) -> None:
    """Raise if a run fits on no node: Slurm would refuse it, or leave it in the queue for ever."""
    partition = [f"--partition={where.address}"] if where.address else []
    rows = [line.split() for line in _ask("sinfo", "--noheader", *partition, "--format=%c %m").splitlines()]
    nodes = [(int(row[0].rstrip("+")), int(row[1].rstrip("+"))) for row in rows if len(row) == 2]
    cores, most = max((node[0] for node in nodes), default=0), max((node[1] for node in nodes), default=0)
    if (wanted := (where.threads or 1) * where.devices) > cores:
        raise SetupError(
            f"--on {where}: a run needs {wanted} cores, and the largest node has {cores}. Give less with "
            "--threads-per-run or --devices-per-run."
        )
    needed = max(memory * where.devices / 1e9, where.memory or 0)
    if most > 1 and needed > most * 1024**2 / 1e9:  # Slurm reports 1 if the memory is not configured
        raise SetupError(
            f"--on {where}: a run needs {needed:.1f} GB of memory, and the largest node has "
            f"{most * 1024**2 / 1e9:.1f}. Give less with --memory, another partition, or fewer or smaller examples."
        )
    if where.memory and memory * where.devices > where.memory * 1e9:
        raise SetupError(
            f"--memory {where.memory:g}: the examples alone need {needed:.1f} GB. Give --memory {math.ceil(needed) + 1}"
        )


def check_shared(where: Where, runs: Path) -> None:
    """Raise if nodes do not share the folder of runs, checked with a file that was just written, if a node is free."""
    nodes = set(_ask("sinfo", "--noheader", "--Node", "--format=%N").split())
    if nodes == {socket.gethostname().partition(".")[0]}:
        return
    runs.mkdir(parents=True, exist_ok=True)
    token = runs.resolve() / f".shared-{uuid.uuid4().hex}"
    token.touch()
    options = [f"--partition={where.address}"] if where.address else []
    options += [f"--account={where.account}"] if where.account else []
    command = ["srun", *options, "--immediate=10", "--ntasks=1", "--time=1", "--job-name=evenly", "--chdir=/"]
    command += ["sh", "-c", 'test -e "$0" && echo seen || echo "not seen on $(hostname)"', str(token)]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return  # no node was free: a job that does not find the folder reports it when it starts
    finally:
        token.unlink(missing_ok=True)
    if answer.startswith("not seen"):
        raise SetupError(
            f"--on {where}: {runs.resolve()} is {answer}. Give --runs a folder that all nodes share, such as "
            f"{Path.home() / 'runs'}"
        )


def longest_array() -> int:
    """The largest number of jobs in one array on this cluster."""
    for line in _ask("scontrol", "show", "config").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == "MaxArraySize" and value.strip().isdecimal():
            return max(1, int(value) - 1)
    return 1000


def states(ids: Sequence[str]) -> dict[str, str] | None:
    """The state of every job that the queue still lists, by job ID; None if the controller does not answer."""
    if not ids:
        return {}
    command = ["squeue", "--noheader", "--array", "--states=all", f"--jobs={','.join(arrays(ids))}", "--format=%i %T"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except subprocess.TimeoutExpired:
        return None
    # squeue also fails if it has forgotten a job that it was asked for alone.
    if answer.returncode and "invalid job id" not in answer.stderr.lower():
        return None
    rows = (line.split() for line in answer.stdout.splitlines())
    return {row[0]: row[1] for row in rows if len(row) == 2}


def host(number: str) -> str:
    """The node of a job; empty if Slurm no longer lists the job."""
    command = ["squeue", "--noheader", "--states=all", f"--jobs={number}", "--format=%N"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def arrays(ids: Sequence[str]) -> list[str]:
    """The IDs of the arrays that jobs belong to.

    >>> arrays(["7_0", "7_1", "12_0"])
    ['12', '7']
    """
    return sorted({each.partition("_")[0] for each in ids})


def _ask(*command: str) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        message = getattr(error, "stderr", None) or str(error)
        message = message.strip().splitlines()[-1].rstrip(".")
        raise SetupError(f"--on slurm: `{command[0]}` says: {message}. Is the cluster's controller up?") from error
    return answer.stdout
