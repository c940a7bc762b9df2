"""Runs that were trained one by one, paired by seed as `evenly runs compare` pairs them."""

from collections.abc import Sequence
from dataclasses import dataclass

from evenly.errors import UsageError
from evenly.intervals import points_with_interval
from evenly.records import Run
from evenly.report import run_pairs
from evenly.report.blocks import Table
from evenly.report.experiments.lookup import Folder
from evenly.report.palette import display_name
from evenly.report.wording import percent

MOST = 200  # runs: of more, the recipes would take longer to read than everything else on the page
_OF_THE_METHOD = ("ascent.", "resampling.")


@dataclass(frozen=True)
class Paired:
    """The recipes that were trained on one data set, side by side, and what follows from their errors."""

    table: Table
    conclusions: list[str]


def pair_loose_runs(folder: Folder) -> list[Paired]:
    """A table for each data set on which runs of several recipes were trained one by one."""
    loose = folder.loose()
    if not 1 < len(loose) <= MOST:
        return []
    paired = []
    for groups in run_pairs.comparable_groups(Run(folder.path / name) for name in loose):
        try:
            split, pairs = run_pairs.compare(groups)
        except UsageError:  # not all of them have an error on held-out data
            continue
        names = _names(groups)
        rows = [
            [
                name,
                len(pair.group.runs),
                percent(pair.error),
                points_with_interval(pair.difference) if pair.difference is not None else None,
                f"{pair.cost:.2f}×" if pair.cost is not None else None,
                ", ".join(run.id[:7] for run in pair.group.runs.values()),
            ]
            for name, pair in zip(names, pairs, strict=True)
        ]
        data = groups[0].settings["data.name"]
        caption = f"Runs on {data} that were trained one by one, paired by seed: errors on {split} with 95% intervals."
        columns = ["recipe", "seeds", "error %", f"difference to {names[0]}, points", "cost", "runs"]
        conclusions = [f"{text[0].upper()}{text[1:]}" for text in run_pairs.conclusions(names, pairs)]
        paired.append(Paired(Table(columns, rows, caption), conclusions))
    return paired


def _names(groups: Sequence[run_pairs.Group]) -> list[str]:
    """The method of each group, and every setting in which it differs from others.

    Settings of the method itself, such as a radius, are compared only between groups of one method.
    """
    shared = [name for name in run_pairs.differing_settings(groups) if not name.startswith(_OF_THE_METHOD)]
    names = []
    for group in groups:
        alike = [other for other in groups if other.method == group.method]
        own = [name for name in run_pairs.differing_settings(alike) if name.startswith(_OF_THE_METHOD)]
        settings = ", ".join(
            f"{name.removesuffix('.name').rpartition('.')[2]} {value}"
            for name in [*shared, *own]
            if (value := group.settings.get(name)) is not None
        )
        names.append(display_name(group.method) + (f" ({settings})" if settings else ""))
    return names
