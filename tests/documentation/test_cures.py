"""Every interval that the pages give from the atlas is one of its rows."""

import re
from collections.abc import Iterator
from itertools import permutations
from pathlib import Path

from evenly.intervals import Interval, paired_difference
from evenly.papers.atlas.cures import CURES
from evenly.papers.atlas.task_list import atlas_rows
from evenly.papers.atlas.tasks import ERRORS

PROJECT = Path(__file__).parents[2]
PAGES = ("cures.md", "which-method.md")
NUMBER = r"[+-]?\d+\.\d+"


def differences() -> Iterator[Interval]:
    """Of every two cures, in every task and kind of error."""
    for row in atlas_rows(PROJECT / "claims"):
        for error in ERRORS:
            errors = {cure: [*row["quantities"][f"{cure}.{error}"].values()] for cure in CURES}
            yield from (paired_difference(errors[one], errors[other]) for one, other in permutations(CURES, 2))


def test_every_interval_is_in_the_ledger():
    text = " ".join((PROJECT / "docs" / page).read_text(encoding="utf-8") for page in PAGES)
    text = text.replace("−", "-").replace("\n", " ")
    known = [*differences()]
    with_width = {(abs(round(each.mean, n)), round(each.half_width, n)) for each in known for n in (1, 2)}
    with_ends = {(round(each.mean, 1), round(each.low, 1), round(each.high, 1)) for each in known}
    printed_width = [(abs(float(a)), float(b)) for a, b in re.findall(rf"({NUMBER}) ± ({NUMBER})", text)]
    cures = text.split("# Which method?")[0]  # the other page quotes rows of the papers too
    printed_ends = [tuple(map(float, each)) for each in re.findall(rf"({NUMBER}) \[({NUMBER}), ({NUMBER})\]", cures)]
    assert len(printed_width) > 40
    assert len(printed_ends) > 5
    assert set(printed_width) <= with_width
    assert set(printed_ends) <= with_ends
