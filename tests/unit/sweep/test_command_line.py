"""`--on` on the command line: every verb that trains many runs says the same of them wherever they are trained."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evenly.cli import main
from evenly.sweep.local import usable_cores

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


def test_a_forecast_says_how_many_could_be_trained_at_once(capsys):
    assert main(["useful", *SMALL, "--at-epoch", "1", "--dry-run"]) == 0
    told = " ".join(capsys.readouterr().err.split())
    cores = usable_cores()
    assert ("one run after the other (--on local trains " in told) == (cores > 1)
    assert cores == 1 or f"trains {cores} at once)" in told


CAMPAIGN = """
import os, sys
from dataclasses import replace
from evenly.cli import main
from evenly.papers import campaign
del os.nice  # at the lowest priority it would take minutes beside other tests
one = campaign.CATALOGUE["springer2024/fig2"]
long = replace(one.scales["smoke"], value=1.0, wanted=2, minutes=600.0)
campaign.CATALOGUE = {one.key: replace(one, scales={"smoke": long})}
sys.exit(main(["reproduce", "--next", *sys.argv[1:]]))
"""


def _campaign(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """A campaign that knows of one experiment, two seeds of which are wanted."""
    given = ["--ledger", "claims", "--runs", "runs", *words]
    return subprocess.run(
        [sys.executable, "-c", CAMPAIGN, *given], cwd=folder, capture_output=True, text=True, check=False
    )


def test_a_campaign_adds_as_few_seeds_as_keep_all_processes_busy(tmp_path: Path):
    where = ["--on", "local:3", "--threads-per-run", "1"]
    first = _campaign(tmp_path, *where, "--dry-run")
    assert "springer2024/fig2 at smoke, 1 more seed," in first.stdout  # whose parts are three or more
    assert not (tmp_path / "claims").exists()
    done = _campaign(tmp_path, *where)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("1 more seed,") == 2
    assert "Every declared row has the seeds that are wanted. Rows are in claims." in done.stderr
    (row,) = [json.loads(path.read_text()) for path in (tmp_path / "claims").glob("**/*.json")]
    assert row["seeds"] == [0, 1]
    assert len(list((tmp_path / "runs" / "sweep").glob("*/state.json"))) == 2  # a plan for each step


def test_a_campaign_on_a_cluster_adds_all_seeds_at_once_and_one_that_is_not_there_is_said_at_once(tmp_path: Path):
    pytest.importorskip("ray", reason='needs Ray: pip install "evenly[ray]"')
    told = _campaign(tmp_path, "--dry-run", "--on", "ray")
    assert told.returncode == 0
    assert "springer2024/fig2 at smoke, 2 more seeds" in told.stdout
    nowhere = _campaign(tmp_path, "--on", "ray:127.0.0.1:9")
    assert nowhere.returncode == 4
    assert "no Ray cluster answers there" in nowhere.stderr
    assert "skipped" not in nowhere.stderr
