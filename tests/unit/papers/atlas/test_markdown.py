"""The tables of the atlas in the documentation fit a page and hold every cell."""

from pathlib import Path

import pytest

from evenly.papers.atlas.cells import cells
from evenly.papers.atlas.cures import CURES
from evenly.papers.atlas.markdown import markdown
from evenly.papers.atlas.task_list import TASKS, atlas_rows
from evenly.papers.atlas.tasks import ERRORS

ROWS = atlas_rows(Path(__file__).parents[4] / "claims")
CELLS = cells(ROWS)
#: A column for the cure, and as many more as fit a page of the documentation.
WIDEST = 9


def tables(text: str) -> list[list[list[str]]]:
    """The cells of each table, with its titles and without the line below them."""
    blocks = [block for block in text.split("\n\n") if block.startswith("|")]
    lines = [[line for line in block.splitlines() if not line.startswith("| ---")] for block in blocks]
    return [[[cell.strip() for cell in line.strip("|").split("|")] for line in table] for table in lines]


@pytest.mark.parametrize("error", ERRORS)
def test_no_table_is_wider_than_a_page(error: str) -> None:
    for table in tables(markdown(ROWS, error)):
        assert {len(line) for line in table} == {len(table[0])}
        assert len(table[0]) <= WIDEST


@pytest.mark.parametrize("error", ERRORS)
def test_the_tables_together_hold_every_cell_of_their_error_in_the_order_of_the_tasks(error: str) -> None:
    shown: dict[str, list[str]] = {}
    for table in tables(markdown(ROWS, error)):
        for label, *values in table[1:]:
            shown.setdefault(label, []).extend(values)
    for cure in CURES:
        own = [cell.difference.mean for cell in CELLS if (cell.error, cell.cure) == (error, cure)]
        if cure != "plain":
            told = [float(value.strip("(*)").replace("−", "-")) for value in shown[CURES[cure].label]]
            assert told == pytest.approx(own, abs=0.051)


def test_a_table_names_its_minority_and_each_column_its_share_and_size() -> None:
    text = markdown(ROWS, "balanced")
    assert "lack the easy digit" in text.split("\n\n")[0]
    assert tables(text)[0][0] == ["cure", "5%", "5%, few", "10%", "10%, few", "20%", "20%, few", "40%", "40%, few"]
    others = tables(text)[-1][0][1:]
    assert others == [row["key"].partition("/")[2] for row in ROWS if TASKS[row["key"]].prefix]


def test_a_ledger_without_rows_has_no_table() -> None:
    assert markdown([], "test") == ""
