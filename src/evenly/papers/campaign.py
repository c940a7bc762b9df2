"""A campaign: run the declared work that is worth the most per hour of this machine."""

import logging
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from evenly.errors import DataError, EvenlyError, Stopped
from evenly.papers import ledger as book
from evenly.papers.catalogue import CATALOGUE
from evenly.papers.experiment import Experiment, Scale
from evenly.papers.part_runs import num_runs
from evenly.papers.reproduction import grow
from evenly.report.wording import duration
from evenly.sweep.launch import HERE
from evenly.sweep.priority import lower_priority
from evenly.sweep.where import Where

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Step:
    """Some more seeds of one experiment at one scale: their value, and their hours on two cores."""

    experiment: Experiment
    scale: str
    seeds: int
    value: float
    hours: float

    @property
    def rate(self) -> float:
        """Value per hour."""
        return self.value / max(self.hours, 1e-3)

    def as_dict(self) -> dict[str, Any]:
        """The step as plain JSON."""
        return {"key": self.experiment.key, "scale": self.scale, "seeds": self.seeds, "hours": self.hours,
                "value_per_hour": self.rate}  # fmt: skip

    def __str__(self) -> str:
        seeds = "1 more seed" if self.seeds == 1 else f"{self.seeds} more seeds"
        return f"{self.experiment.key} at {self.scale}, {seeds}, about {duration(60 * self.hours)}"


def steps(
    ledger: str | os.PathLike[str], *, at_once: int = 2, skipped: set[tuple[str, str]] | None = None
) -> list[Step]:
    """Everything that a campaign could do next, the highest value per hour first.

    An experiment that was never run has its declared value; an undecided row half of that, a row that only lacks seeds
    a tenth; a row with all wanted seeds, and a stale one, nothing. Keys and scales in `skipped` are left out; those
    whose row cannot be read are added to it, with a message.
    """
    skipped = set() if skipped is None else skipped
    possible = []
    for experiment in CATALOGUE.values():
        for name, scale in experiment.scales.items():
            if scale.value <= 0 or (experiment.key, name) in skipped:
                continue
            try:
                step = _step(experiment, name, scale, ledger, at_once)
            except DataError as error:
                _skip(experiment, name, error, skipped)
                continue
            if step is not None:
                possible.append(step)
    return sorted(possible, key=lambda step: -step.rate)


def _skip(experiment: Experiment, scale: str, error: Exception, skipped: set[tuple[str, str]]) -> None:
    _log.warning("%s at %s is skipped: %s", experiment.key, scale, error)
    skipped.add((experiment.key, scale))


def runs_at_once(where: Where) -> int:
    """How many runs a step has at least: as many as run at once; on a cluster those of all seeds that are wanted.

    >>> runs_at_once(Where(at_once=4)), runs_at_once(Where("ray"))
    (4, 1000)
    """
    return where.at_once or (2 if where.engine == "local" else 1000)


def _step(experiment: Experiment, name: str, scale: Scale, ledger: str | os.PathLike[str], at_once: int) -> Step | None:
    row = book.read(ledger, experiment.key, name)
    known = len(row["seeds"]) if row is not None else 0
    wanted = max(scale.wanted, len(scale.seeds))
    if known >= wanted or (row is not None and book.stale(row, experiment)):
        return None
    worth = 1.0 if row is None else 0.5 if row["verdict"] == "inconclusive" else 0.1
    seeds, hours = wanted - known, scale.minutes / len(scale.seeds) / 60  # for each seed
    if seeds * hours > 1:
        # As few seeds as keep every core busy, so that the row is stored soon.
        runs = sum(num_runs(part) for part in experiment.parts(name, scale.seeds[:1]))
        seeds = min(-(-at_once // runs), seeds)
    hours *= seeds
    return Step(experiment, name, seeds, worth * scale.value, hours)


def run(
    *,
    ledger: str | os.PathLike[str],
    runs: str | os.PathLike[str] = "runs",
    hours: float | None = None,
    data_root: str | None = None,
    where: Where = HERE,
) -> Iterator[dict[str, Any]]:
    """Run the steps one by one at low priority, and yield every row as it grows, until nothing is left or time is up.

    Experiments that cannot be run now, as for want of data or disk space, because their row is damaged, because their
    training diverges or because another process runs them, are skipped with a message. When time is up, the current
    work is stopped as by Ctrl-C, and the next campaign resumes it.
    """
    lower_priority()
    at_once = runs_at_once(where)
    skipped: set[tuple[str, str]] = set()
    with _alarm(hours):
        while possible := steps(ledger, at_once=at_once, skipped=skipped):
            step = possible[0]
            _log.warning("next: %s", step)
            how: dict[str, Any] = {"ledger": ledger, "runs": runs, "data_root": data_root, "where": where}
            try:
                yield grow(step.experiment, step.scale, step.seeds, **how)
            except Stopped:
                raise
            except EvenlyError as error:
                _skip(step.experiment, step.scale, error, skipped)


@contextmanager
def _alarm(hours: float | None) -> Iterator[None]:
    """Ask this process and its workers to stop when the time is up, as a scheduler would."""
    if hours is None:
        yield
        return
    ended = threading.Event()
    until = time.monotonic() + hours * 3600

    def wait() -> None:
        while (left := until - time.monotonic()) > 0:
            if ended.wait(min(left, threading.TIMEOUT_MAX)):
                return
        if not ended.is_set():
            os.kill(os.getpid(), signal.SIGINT)

    previous = signal.getsignal(signal.SIGINT)
    # A shell without job control, as that of `make campaign`, starts background processes that ignore SIGINT.
    ignored = previous == signal.SIG_IGN and threading.current_thread() is threading.main_thread()
    if ignored:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=wait, daemon=True).start()
        yield
    except KeyboardInterrupt:
        if time.monotonic() < until:
            raise
        raise Stopped("the time given by --hours is up. The same command continues where this one stopped.") from None
    finally:
        ended.set()
        if ignored:
            signal.signal(signal.SIGINT, previous)


def summary(steps_: Sequence[Step]) -> str:
    """The remaining work, in a sentence.

    >>> summary([])
    'Every declared row has the seeds that are wanted.'
    """
    if not steps_:
        return "Every declared row has the seeds that are wanted."
    cost = duration(60 * sum(step.hours for step in steps_))
    rows = "1 row" if len(steps_) == 1 else f"{len(steps_)} rows"
    return f"{rows} could grow, by about {cost} for the next seeds of each. First: {steps_[0]}."
