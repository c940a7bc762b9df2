"""Where a plan is carried out: `--on local:4`, `--on ray`, `--on slurm:gpu`, and the resources of each job."""

import math
import re
from dataclasses import dataclass
from typing import Any, Literal

from evenly.errors import UsageError, did_you_mean

ENGINES = ("local", "ray", "slurm")


@dataclass(frozen=True)
class Where:
    """An engine, its address, and the resources of one job.

    Parameters
    ----------
    engine, address
        `local`; `ray` and the address of a cluster; `slurm` and a partition.
    at_once
        How many jobs run at the same time; None leaves it to the engine.
    threads, gpus
        The threads and GPUs of one process of a job; by default one GPU if the engine has any.
    devices
        The number of processes of one job; above 1, each job is a torchrun.
    memory
        The GB of memory to request for one job from Ray or Slurm; by default nothing is requested.
    minutes, account
        The time limit of a Slurm job, and the account that it is charged to.
    """

    engine: Literal["local", "ray", "slurm"] = "local"
    address: str | None = None
    at_once: int | None = None
    threads: int | None = None
    gpus: int | None = None
    devices: int = 1
    minutes: int | None = None
    account: str | None = None
    memory: float | None = None

    def __post_init__(self) -> None:
        if self.at_once is not None and self.at_once < 1:
            raise UsageError(f"--on local:{self.at_once}: give 1 or more jobs at once, such as --on local:2")
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"--threads-per-run {self.threads}: give 1 or more.")
        if self.gpus is not None and self.gpus < 0:
            raise UsageError(f"--gpus {self.gpus}: give 0 or more.")
        if self.devices < 1:
            raise UsageError(f"--devices-per-run {self.devices}: give 1 or more.")
        if self.memory is not None and not self.memory > 0:
            raise UsageError(f"--memory {self.memory:g}: give the GB that a run needs, such as --memory 8")
        if self.engine == "local" and self.memory is not None:
            raise UsageError(
                "--memory is for Ray and Slurm. On this machine, --on local:N limits how many runs share the memory."
            )
        if self.engine != "slurm" and (self.minutes is not None or self.account is not None):
            option = "--time" if self.minutes is not None else "--account"
            raise UsageError(f"{option} is for Slurm. Add --on slurm, or leave it out.")

    def __str__(self) -> str:
        return self.engine + (f":{self.address or self.at_once}" if self.address or self.at_once else "")


def parse(
    text: str = "local",
    *,
    threads: int | None = None,
    gpus: int | None = None,
    devices: int = 1,
    time: str | None = None,
    account: str | None = None,
    memory: float | None = None,
) -> Where:
    """The `Where` of `--on` and its companion options.

    >>> parse("local:2"), parse("slurm:gpu", time="4:00:00").minutes, parse("ray://head:10001").address
    (Where(engine='local', address=None, at_once=2, ...), 240, 'ray://head:10001')
    >>> parse("locl")
    Traceback (most recent call last):
    evenly.errors.UsageError: --on 'locl': ... Did you mean 'local'?
    """
    engine, _, rest = text.partition(":")
    if engine not in ENGINES:
        raise UsageError(f"--on {text!r}: there is no such engine. {did_you_mean(engine, ENGINES)}")
    given: dict[str, Any] = {"threads": threads, "gpus": gpus, "devices": devices, "minutes": _minutes(time)}
    given |= {"account": account, "memory": memory}
    if engine == "local":
        if rest and not rest.isdecimal():
            raise UsageError(f"--on {text!r}: expected a number of jobs at once, such as --on local:2")
        return Where("local", at_once=int(rest) if rest else None, **given)
    if engine == "ray":
        # `ray://host:port` is Ray's own form of an address.
        return Where("ray", address=(text if rest.startswith("//") else rest) or None, **given)
    return Where("slurm", address=rest or None, **given)


def _minutes(time: str | None) -> int | None:
    """The minutes of a time limit in Slurm's notation, begun minutes counted in full.

    It is minutes[:seconds] or hours:minutes:seconds, and after days days-hours[:minutes[:seconds]].

    >>> _minutes("90"), _minutes("30:00"), _minutes("4:00:00"), _minutes("1-12"), _minutes("1-12:30")
    (90, 30, 240, 2160, 2190)
    """
    if time is None:
        return None
    match = re.fullmatch(r"(?:(\d+)-)?(\d+(?::\d+){0,2})", time)
    limit = 0
    if match is not None:
        fields = [int(field) for field in match[2].split(":")]
        begins_with_hours = match[1] is not None or len(fields) == 3
        hours, minutes, seconds = (*fields, 0, 0)[:3] if begins_with_hours else (0, *fields, 0)[:3]
        limit = int(match[1] or 0) * 1440 + hours * 60 + minutes + math.ceil(seconds / 60)
    if not limit:
        raise UsageError(f"--time {time!r}: expected a limit such as 4:00:00, 90 (minutes) or 1-00:00:00.")
    return limit
