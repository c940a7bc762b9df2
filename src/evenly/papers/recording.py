"""Write what was measured to the ledger: joined with the seeds that its row has already, judged and drawn."""

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenly import atomic
from evenly.papers import ledger as book
from evenly.papers.charts import charts_of
from evenly.papers.experiment import Context, Experiment, Measured
from evenly.papers.measurement import derive
from evenly.papers.part_store import is_stored, load
from evenly.records.lock import Busy, Lock

_PATIENCE = 120.0  # seconds; another process draws and writes its row


def current_row(ledger: str | os.PathLike[str], experiment: Experiment, scale: str) -> book.Row | None:
    """The row of the ledger that measures what this version does, if there is one."""
    row = book.read(ledger, experiment.key, scale)
    return None if row is None or book.stale(row, experiment) else row


def record(
    experiment: Experiment,
    scale: str,
    measured: Measured,
    *,
    seeds: Sequence[int],
    minutes: float,
    ledger: str | os.PathLike[str],
    context: Context,
    replacing: bool = False,
) -> book.Row:
    """Write a measurement to the ledger with its figure, and return its row.

    Seeds of the row that were not measured now are kept, unless the row measures something else than this version does
    or is to be replaced. The row is read here, under a lock: another process may have added seeds since the measurement
    began.
    """
    with writing(ledger):
        before = None if replacing else current_row(ledger, experiment, scale)
        kept = [seed for seed in before["seeds"] if seed not in seeds] if before is not None else []
        every, own = tuple(seeds), measured
        if before is not None and kept:
            every = (*kept, *seeds)
            measured = derive(experiment, _join(before, measured))
            minutes += before["minutes"] * len(kept) / len(before["seeds"])
        row = book.row(experiment, scale, measured, seeds=every, minutes=minutes)
        if row["figure"]:
            row["drawn"] = _draw_most(experiment, scale, row, before, own=own, joined=measured, seeds=seeds,
                                      path=Path(ledger) / row["figure"], context=context)  # fmt: skip
        book.write(ledger, row)
    return row


def draw(experiment: Experiment, measured: Measured, path: Path) -> None:
    """Draw the experiment's figure in the format of `path`'s suffix."""
    from evenly.report.static import figure, save

    path.parent.mkdir(parents=True, exist_ok=True)
    save(figure(charts_of(experiment, measured), title=experiment.title, note=_num_seeds(measured)), path)


def _draw_most(
    experiment: Experiment,
    scale: str,
    row: book.Row,
    before: book.Row | None,
    *,
    own: Measured,
    joined: Measured,
    seeds: Sequence[int],
    path: Path,
    context: Context,
) -> list[int]:
    """Draw as many seeds as can be drawn here, and return the seeds that the figure shows.

    Rows hold no series. Charts that need them show all seeds only where all parts are stored; if they are not, a figure
    that shows more seeds than this measurement stays.
    """
    parts = experiment.parts(scale, row["seeds"])
    if all(is_stored(context, part) for part in parts):
        draw(experiment, derive(experiment, load(context, parts)[0]), path)
        return list(row["seeds"])
    try:
        draw(experiment, replace(joined, series=_NoSeries()), path)
    except _SeriesNeeded:
        drawn = list(before["drawn"]) if before is not None else []
        if len(drawn) >= len(seeds):
            return drawn
        draw(experiment, own, path)
        return sorted(seeds)
    return list(row["seeds"])


def _join(before: book.Row, measured: Measured) -> Measured:
    """Join the seeds of a row with the new ones."""
    old = book.values_of(before)
    values = {name: dict(sorted((old.get(name, {}) | {**by}).items())) for name, by in measured.values.items()}
    origins = dict(sorted({**book.origins_of(before), **measured.origins}.items()))
    return replace(measured, values=values, origins=origins)


def _num_seeds(measured: Measured) -> str:
    """The number of seeds, for the foot of a figure."""
    num = len({seed for by_seed in measured.values.values() for seed in by_seed})
    return f"{num} seed{'s' * (num != 1)}" if num else ""


@contextmanager
def writing(ledger: str | os.PathLike[str]) -> Iterator[None]:
    """Keep other processes from writing to the ledger; wait for one that does."""
    atomic.make_folder(ledger)
    path = Path(ledger) / "lock"
    give_up = time.monotonic() + _PATIENCE
    while True:
        try:
            lock = Lock(path)
            break
        except Busy:
            if time.monotonic() > give_up:
                raise
    try:
        yield
    finally:
        lock.release()


class _SeriesNeeded(Exception):
    """A chart reads series that no row holds."""


class _NoSeries(Mapping[str, Any]):
    """Series that cannot be read."""

    def __getitem__(self, name: str) -> Any:
        raise _SeriesNeeded

    def __iter__(self) -> Iterator[str]:
        raise _SeriesNeeded

    def __len__(self) -> int:
        raise _SeriesNeeded
