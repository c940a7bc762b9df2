"""`--on` on the command line: every verb that trains many runs says the same of them wherever they are trained."""

import json
from pathlib import Path

import pytest

from evenly.cli import main

SMALL = ["digit-dominoes", "--model", "mlp", "--epochs", "2", "--seeds", "0-1", "--device", "cpu"]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    assert main([*words, "--threads-per-run", "1", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    "words", [["useful", *SMALL, "--at-epoch", "1"], ["compare", *SMALL, "--methods", "plain,sam"]]
)
def test_a_comparison_by_two_processes_is_that_of_one(words, tmp_path: Path, capsys):
    one = said(capsys, *words, "--runs", str(tmp_path / "one"), "--on", "local:1")
    two = said(capsys, *words, "--runs", str(tmp_path / "two"), "--on", "local:2")
    assert one["methods"] == two["methods"]
    assert not (tmp_path / "one" / "sweep").exists()
    assert list((tmp_path / "two" / "sweep").glob("*/state.json"))


def test_experiments_by_two_processes_are_those_of_one(tmp_path: Path, capsys):
    words = ["reproduce", "chang2025/mistake5", "chang2025/mistake10", "--scale", "smoke"]
    found = []
    for on in ("local:1", "local:2"):
        folder = tmp_path / on.replace(":", "")
        given = ["--runs", str(folder), "--ledger", str(folder / "claims"), "--on", on]
        rows = said(capsys, *words, *given)
        found.append([{name: row[name] for name in ("key", "claims", "verdict", "seeds")} for row in rows])
    assert found[0] == found[1]
    assert len(list((tmp_path / "local2" / "sweep").glob("*/state.json"))) == 1  # one plan for both


def test_what_the_full_tables_take_on_gpus_is_printed_for_a_cluster(capsys):
    pytest.importorskip("ray", reason='needs Ray: pip install "evenly[ray]"')
    words = ["reproduce", "springer2024/fig2", "springer2024/fig3", "--scale", "full", "--dry-run", "--on", "ray"]
    assert main(words) == 0
    told = capsys.readouterr()
    rows = [line.split() for line in told.out.splitlines() if line.startswith("springer2024 ")]
    assert [row[1] for row in rows] == ["8", "64"]
    assert "15 TFLOP/s" in told.err
