"""The rows of the atlas in the list of all experiments: their words are corrected for the number of cells."""

import re
from pathlib import Path

import pytest

from evenly.cli import main
from evenly.papers import ledger as book
from evenly.papers.atlas.cells import cells
from evenly.papers.atlas.task_list import atlas_rows
from evenly.papers.reproduction import overview
from evenly.report.verdict_tables import markdown

LEDGER = Path(__file__).parents[4] / "claims"
PRIMARY = [cell for cell in cells(atlas_rows(LEDGER)) if (cell.cure, cell.error) == ("useful", "balanced")]


def test_a_line_of_the_atlas_has_the_word_of_its_corrected_cell():
    lines = [line for line in overview(LEDGER) if line["kind"] == "atlas" and line["state"] == "done"]
    assert {line["key"]: line["corrected"] for line in lines} == {cell.task: cell.verdict for cell in PRIMARY}
    table = markdown(lines, book.rows(LEDGER), paper="atlas")
    assert all(f"`{cell.task}`" in table for cell in PRIMARY)
    assert "claims hold" not in table, "single claims are not corrected"


def test_the_list_counts_corrected_words(capsys: pytest.CaptureFixture[str]):
    certain = sum(cell.certain for cell in PRIMARY)
    possible = sum(cell.difference.high < 0 for cell in PRIMARY) - certain
    assert certain, "else the next line compares nothing"
    assert possible, "else the correction has nothing to do"
    assert main(["reproduce", "--list", "--ledger", str(LEDGER)]) == 0
    told = capsys.readouterr()
    assert f"Atlas of cures: helps ({certain}), may help ({possible})" in told.err
    assert len(re.findall(r"^atlas/\S+ +helps ", told.out, re.MULTILINE)) == certain
