"""A row of the ledger may be damaged anywhere: whatever reads it says which file and what to do, and never crashes."""

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evenly.cli import main
from evenly.cli.verdicts import print_row
from evenly.errors import DataError
from evenly.papers import ledger as book
from evenly.papers.catalogue import CATALOGUE, PAPERS
from evenly.papers.reproduction import overview, regressions
from evenly.report.claim_page import experiment_page
from evenly.report.claims_site import index_page
from evenly.report.verdict_tables import markdown, results

PROJECT = Path(__file__).parents[3]
NAME = "chang2025-mistake3-full"
ROW = json.loads((PROJECT / "claims" / f"{NAME}.json").read_text())
OTHERS = (None, False, -1, 10**400, 1.5, "", "text", [], [[]], {}, {"a": {"0": 1}}, {"0": "x"})


def others(value: Any) -> Iterator[Any]:
    yield from (other for other in OTHERS if type(other) is not type(value) or other != value)


def damaged(value: Any, replace: Any = lambda new: new) -> Iterator[Any]:
    """The row with every node of it in turn replaced by values of every other kind, and with every name left out.

    Of many items of one kind the first stands for all.
    """
    yield from (replace(other) for other in others(value))
    if not isinstance(value, dict | list) or not value:
        return
    places = list(value) if isinstance(value, dict) else list(range(len(value)))
    many = isinstance(value, list) or len(places) > 30 or str(places[0]).isdigit()
    for place in places[:1] if many else places:

        def put(new: Any, place: Any = place) -> Any:
            copy = value.copy()
            copy[place] = new
            return replace(copy)

        yield from damaged(value[place], put)
        without = value.copy()
        del without[place]
        yield replace(without)


def shown(folder: Path) -> None:
    """Everything that reads a ledger, as the commands and the documents do."""
    rows, lines = book.rows(folder), overview(folder)
    [row] = rows
    line = next(each for each in lines if each["key"] == ROW["key"])
    papers = {key: (paper.name, paper.title) for key, paper in PAPERS.items()}
    experiment_page(line, rows, ledger=folder, papers=papers)
    index_page([line], {row["key"]: rows}, papers=papers)
    markdown([line], rows, paper="chang2025")
    results(rows, [ROW["key"]])
    regressions([ROW], folder)
    regressions(rows, PROJECT / "claims")
    book.stale(row, CATALOGUE[ROW["key"]])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for suffix in (".json", ".svg"):
        shutil.copy(PROJECT / "claims" / f"{NAME}{suffix}", tmp_path)
    return tmp_path


def test_any_damage_to_any_part_of_a_row_is_told_with_the_name_of_its_file(folder: Path):
    sys.set_int_max_str_digits(0)
    path = folder / f"{NAME}.json"
    shown(folder)
    told, taken = [], 0
    for wrong in damaged(ROW):
        path.write_text(json.dumps(wrong))
        try:
            shown(folder)
            taken += 1
        except DataError as error:
            told.append(str(error))
    assert len(told) > 300
    assert taken < len(told) / 2
    assert [each for each in told if path.name not in each and f"{NAME}.svg" not in each] == []
    assert all("Remove it" in each or "remove it" in each or "again" in each for each in told)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"[" * 100_000,
        b"{" * 100_000,
        b'{"a":' * 50_000,
        b"null",
        b"[]",
        b"NaN",
        b'{"key": 1',
        b"1" * 5000,
    ],
    ids=lambda content: repr(content[:12]),
)
@pytest.mark.parametrize(
    "words", [["report", "--claims", "--out"], ["reproduce", "--list"]], ids=["report --claims", "reproduce --list"]
)
def test_commands_end_with_the_file_and_the_remedy(folder: Path, content: bytes, words: list[str], capsys: Any):
    (folder / f"{NAME}.json").write_bytes(content)
    words = [*words, str(folder / "site")] if "--out" in words else words
    assert main([*words, "--ledger", str(folder)]) == 3
    said = capsys.readouterr().err
    assert f"{NAME}.json cannot be read" in said
    assert "Remove it and run `evenly reproduce` again" in said
    assert "Traceback" not in said


def test_a_row_under_the_name_of_another_is_refused(folder: Path):
    (folder / f"{NAME}.json").rename(folder / "chang2025-mistake4-full.json")
    with pytest.raises(DataError, match=f"call it {NAME}.json"):
        book.rows(folder)


def test_checking_against_a_damaged_row_is_refused(folder: Path, tmp_path: Path, capsys: Any):
    (folder / "chang2025-mistake3-smoke.json").write_text(json.dumps({"key": []}))
    words = ["reproduce", "chang2025/mistake3", "--scale", "smoke", "--check", "--ledger", str(folder)]
    assert main([*words, "--runs", str(tmp_path / "runs"), "--on", "local:1"]) == 3
    assert "mistake3-smoke.json cannot be read" in capsys.readouterr().err


def test_a_smoke_run_is_not_presented_as_a_finding(capsys: Any):
    claim = ROW["claims"][0] | {"verdict": "inconclusive", "effect": -0.28, "seeds_needed": 24, "direction": "less",
                                "difference": {"mean": 0.05, "low": -0.95, "high": 1.05, "n": 3}}  # fmt: skip
    print_row(ROW | {"claims": [claim], "scale": "small"}, PROJECT / "claims")
    assert "about 24 seeds would settle it" in capsys.readouterr().out
    print_row(ROW | {"claims": [claim], "scale": "smoke"}, PROJECT / "claims")
    assert "seeds would settle it" not in capsys.readouterr().out


def test_reproducing_at_smoke_says_that_its_numbers_mean_nothing(tmp_path: Path, capsys: Any):
    words = ["reproduce", "chang2025/mistake3", "--scale", "smoke", "--ledger", str(tmp_path)]
    assert main([*words, "--runs", str(tmp_path / "runs"), "--on", "local:1"]) == 0
    assert "Smoke only shows that an experiment runs" in " ".join(capsys.readouterr().err.split())


def test_a_row_of_an_older_version_is_stale_and_not_damaged(folder: Path):
    older = {name: value for name, value in ROW.items() if name not in ("outside", "checksum")}
    book.write(folder, older)
    [row] = book.rows(folder)
    assert book.stale(row, CATALOGUE[ROW["key"]])
