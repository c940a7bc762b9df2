"""A task of the atlas on the terminal: what every cure changes in each kind of error, as one table."""

import math
import os
from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_table, say

if TYPE_CHECKING:
    from evenly.papers.atlas.cells import Cell

HEADINGS = {"test": " test", "balanced": " balanced", "worst": " worst group"}  # as far in as the numbers


def print_atlas_row(row: dict[str, Any], ledger: str | os.PathLike[str]) -> None:
    """Cures by kinds of error, in points minus plain training, corrected together with the ledger's other tasks.

    At smoke scale there is nothing to correct together: the row stands alone.
    """
    from evenly.papers.atlas.cells import cells
    from evenly.papers.atlas.cures import CURES
    from evenly.papers.atlas.task_list import atlas_rows
    from evenly.papers.catalogue import CATALOGUE

    others = [] if row["scale"] == "smoke" else [each for each in atlas_rows(ledger) if each["key"] != row["key"]]
    own = {(cell.cure, cell.error): cell for cell in cells([*others, row]) if cell.task == row["key"]}
    lines = [
        {"cure": CURES[cure].label} | {HEADINGS[error]: _in_points(own[cure, error]) for error in HEADINGS}
        for cure in dict.fromkeys(cure for cure, _ in own)
    ]
    lines.append({"cure": "plain training", **{HEADINGS[cell.error]: f" {cell.plain:.1f}%" for cell in own.values()}})
    main = next(cell for cell in own.values() if f"{cell.cure} {cell.error}" == CATALOGUE[row["key"]].primary)
    # Not the title of the table, which would be folded at the table's width.
    print(
        f"{row['key']} at {row['scale']}, n = {len(row['seeds'])}: {main.verdict} "
        f"({CURES[main.cure].label}, {main.error})"
    )
    print_table(lines, ["cure", *HEADINGS.values()])
    print()


def say_how_to_read() -> None:
    """What the numbers and marks of the table mean."""
    say(
        "Points of error minus plain training, paired by seed, ± half of the 95% interval; (in parentheses): may be "
        "chance; *: survives Holm's correction over all cures and tasks of the atlas, in that kind of error. In the "
        "balanced test set the easy feature says nothing."
    )


def _in_points(cell: "Cell") -> str:
    """The difference with its interval and its mark; a single seed has no interval.

    >>> from evenly.intervals import interval
    >>> from evenly.papers.atlas.cells import Cell
    >>> seeds = {"certain": [-8.0, -8.5, -9.0], "chance": [-0.5, 0.0, 0.6], "one seed": [-2.0]}
    >>> [_in_points(Cell("", "", "", 40.0, interval(seeds[name]), 1.0, name == "certain")) for name in seeds]
    [' −8.5 ± 1.2*', '(+0.0 ± 1.4)', '(−2.0)']
    """
    mean, width = cell.difference.mean, cell.difference.half_width
    text = f"{mean:+z.1f}".replace("-", "−") + ("" if math.isnan(width) else f" ± {width:.1f}")
    if not cell.difference.excludes_zero:
        return f"({text})"
    return f" {text}{'*' if cell.certain else ''}"
