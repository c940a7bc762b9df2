"""A row of the atlas is one table of cures by kinds of error, which fits the terminal and agrees with the atlas."""

import io
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from evenly.cli import main
from evenly.cli.verdicts import print_row
from evenly.papers.atlas.cells import Cell, cells
from evenly.papers.atlas.cures import CURES
from evenly.papers.atlas.task_list import atlas_rows
from evenly.papers.reproduction import overview

LEDGER = Path(__file__).parents[3] / "claims"
ROWS = atlas_rows(LEDGER)
KINDS = ("test", "balanced", "worst")
WORDS = {line["key"]: line["corrected"] for line in overview(LEDGER) if "corrected" in line}
SOME = [next(row for row in ROWS if WORDS[row["key"]] == word) for word in ("helps", "may help", "unclear")]
LONGEST = max(ROWS, key=lambda row: len(row["key"]))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(row: dict[str, Any], monkeypatch: pytest.MonkeyPatch, *, columns: int = 0) -> str:
    """What is printed: on a terminal of so many columns, or into a file."""
    stream = Terminal() if columns else io.StringIO()
    monkeypatch.setenv("COLUMNS", str(columns or 80))
    monkeypatch.setenv("NO_COLOR", "1")
    with monkeypatch.context() as patched:
        patched.setattr(sys, "stdout", stream)
        print_row(row, LEDGER)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())


def entries(text: str, cure: str) -> list[str]:
    [line] = [line for line in text.splitlines() if line.startswith(f"{CURES[cure].label}  ")]
    return re.findall(r"\(?[+−]\d+\.\d(?: ± \d+\.\d)?\)?\*?", line.removeprefix(CURES[cure].label))


def mark(cell: Cell) -> str:
    return "*" if cell.certain else "" if cell.difference.excludes_zero else ")"


@pytest.mark.parametrize("columns", [80, 120])
def test_every_task_fits_the_terminal_with_one_line_for_a_cure(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for row in (LONGEST, json.loads((LEDGER / "atlas-noisy-20-small.json").read_text())):  # large numbers
        lines = shown(row, monkeypatch, columns=columns).splitlines()
        assert max(map(len, lines)) <= columns
        assert len([line for line in lines if line.strip()]) == 2 + len(CURES), row["key"]


def test_numbers_and_marks_are_those_of_the_whole_atlas(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {(cell.task, cell.cure, cell.error): cell for cell in cells(ROWS)}
    assert {mark(cell) for cell in found.values()} == {"*", "", ")"}, "else the marks are not tested"
    for row in SOME[:2]:
        text = shown(row, monkeypatch)
        for cure in CURES.keys() - {"plain"}:
            own = [found[row["key"], cure, error] for error in KINDS]
            told = entries(text, cure)
            assert [re.search(r"[*)]?$", each)[0] for each in told] == [mark(cell) for cell in own]
            numbers = [float(re.search(r"[+−]\d+\.\d", each)[0].replace("−", "-")) for each in told]
            assert numbers == pytest.approx([cell.difference.mean for cell in own], abs=0.0501)


def test_the_title_has_the_word_that_the_list_of_experiments_has(monkeypatch: pytest.MonkeyPatch) -> None:
    for row in SOME:
        assert f": {WORDS[row['key']]} (USEFUL ×2, balanced)" in shown(row, monkeypatch).splitlines()[0]


def test_a_cure_that_changed_nothing_may_be_chance_and_does_no_harm(monkeypatch: pytest.MonkeyPatch) -> None:
    row = json.loads((LEDGER / "atlas-lacking-5-small.json").read_text())
    text = shown(row, monkeypatch)
    assert entries(text, "random")[0] == "(+0.0 ± 0.0)"
    assert "harm" not in text


def test_a_single_seed_has_no_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    row = json.loads((LEDGER / "atlas-lacking-5-small.json").read_text())
    one = {name: {"20": by["20"]} for name, by in row["quantities"].items()}
    text = shown(row | {"quantities": one, "seeds": [20]}, monkeypatch)
    assert "nan" not in text
    assert all(each.startswith("(") and "±" not in each for each in entries(text, "useful8"))


def test_reproduce_says_how_to_read_the_table_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["reproduce", "atlas/lacking-5", "atlas/lacking-5-few", "--scale", "smoke", "--ledger", str(tmp_path)]
    assert main([*words, "--runs", str(tmp_path / "runs"), "--on", "local:1"]) == 0
    told = capsys.readouterr()
    assert told.err.count("Points of error minus plain training") == 1
    assert told.out.count("(USEFUL ×2, balanced)") == 2
    assert "has a lower error than plain training" not in told.out
