"""Every experiment of the catalogue runs at its smoke scale, is judged and drawn; and the ledger tells the truth."""

import json
from pathlib import Path

import pytest

from evenly.papers import ledger as book
from evenly.papers.catalogue import CATALOGUE, PAPERS
from evenly.papers.charts import charts_of
from evenly.papers.claim import Claim
from evenly.papers.measurement import measure
from evenly.papers.part_store import run_ids
from evenly.papers.recording import draw
from evenly.papers.reproduction import overview, regressions
from evenly.sweep.where import Where

LEDGER = Path(__file__).parents[2] / "claims"
KEYS = sorted(CATALOGUE)
ROWS = book.rows(LEDGER)
# What the papers show, and so the catalogue must have: each of these begins a key.
SHOWN = {
    "nguyen2024": [*(f"fig{n}" for n in range(2, 12)), *(f"table{n}" for n in range(1, 7)),
                   *(f"theorem3.{n}" for n in range(2, 6))],
    "springer2024": [*(f"fig{n}" for n in range(1, 12)), "table1", "table2", "appendix"],
    "chang2025": ["fig1", "fig2", "fig3", "fig4", "table1", "table2",
                  *(f"theorem3.{n}" for n in range(1, 7)), *(f"mistake{n}" for n in range(1, 11))],
}  # fmt: skip


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where parts are kept, so that experiments that share them do them once."""
    return tmp_path_factory.mktemp("experiments")


def runs_in(folder: Path) -> set[str]:
    """The runs that were trained there."""
    return {path.parent.name for path in folder.glob("*/recipe.yaml")}


@pytest.mark.parametrize("key", KEYS)
def test_the_experiment_runs_is_judged_and_drawn_and_is_no_worse_than_in_the_ledger(key: str, kept: Path):
    experiment = CATALOGUE[key]
    before = runs_in(kept)
    found, minutes = measure(experiment, "smoke", runs=kept, where=Where(at_once=1))
    named = {name for series in found.series.values() for name in run_ids(series)}
    assert runs_in(kept) - before <= named, "--fresh trains again what the series of a part name"
    row = book.row(experiment, "smoke", found, seeds=experiment.scales["smoke"].seeds, minutes=minutes)
    json.dumps(row, allow_nan=False)
    charts = charts_of(experiment, found)
    assert charts
    assert all(chart.sentence for chart in charts)
    draw(experiment, found, kept / "figure.svg")
    assert (kept / "figure.svg").read_text().startswith("<?xml")
    assert regressions([row], LEDGER) == []


@pytest.mark.parametrize(("paper", "shown"), [(paper, what) for paper in SHOWN for what in SHOWN[paper]])
def test_everything_the_papers_show_is_in_the_catalogue(paper: str, shown: str):
    whole, parts = f"{paper}/{shown}", tuple(f"{paper}/{shown}{more}" for more in ("-", "a", "D"))
    assert any(key == whole or key.startswith(parts) for key in CATALOGUE), f"{whole} is not declared"


@pytest.mark.parametrize("key", KEYS)
def test_the_declaration_is_whole_at_every_scale(key: str):
    experiment = CATALOGUE[key]
    assert key.partition("/")[0] in PAPERS
    assert experiment.claim.endswith(".")
    for name, scale in experiment.scales.items():
        for part in experiment.parts(name):
            part.function()
            json.dumps(part.arguments, allow_nan=False)
        assert len(set(scale.seeds)) == len(scale.seeds) >= (2 if name == "smoke" else 3)
        assert scale.minutes > 0
        assert all(text.strip() for text in scale.deviations)
        if name == "smoke":
            assert not scale.data, "smoke needs no published data"
    assert any(name in experiment.scales for name in ("small", "full"))


@pytest.mark.parametrize("key", KEYS)
def test_the_ledger_has_the_smoke_row_of_every_experiment(key: str):
    assert book.read(LEDGER, key, "smoke") is not None


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['key']}-{row['scale']}")
def test_a_row_of_the_ledger_is_what_the_rule_says_of_its_own_numbers(row: book.Row):
    experiment = CATALOGUE[row["key"]]
    assert not book.stale(row, experiment), "declared differently now: run it again"
    declared = experiment.scales[row["scale"]].seeds
    assert tuple(row["seeds"])[: len(declared)] == declared[: len(row["seeds"])], "the seeds that were fixed in advance"
    assert book.judge_again(row, experiment) == row
    measured_seeds = {seed for by in row["quantities"].values() for seed in by}
    assert row["origins"].keys() == measured_seeds
    if row["scale"] != "smoke":
        assert (LEDGER / row["figure"]).is_file()


def test_every_file_of_the_ledger_belongs_to_a_row():
    named = {book.path_of(LEDGER, row["key"], row["scale"]).name for row in ROWS} | {row["figure"] for row in ROWS}
    assert {path.name for path in LEDGER.iterdir()} <= named


def test_the_list_shows_the_ledger():
    verdicts = {(row["key"], row["scale"]): row["verdict"] for row in ROWS if row["scale"] != "smoke"}
    lines = {(line["key"], line["scale"]): line["verdict"] for line in overview(LEDGER) if line["state"] == "done"}
    assert lines == verdicts


@pytest.mark.parametrize(
    ("key", "claim"),
    [(key, claim) for key in KEYS for claim in CATALOGUE[key].claims],
    ids=lambda value: str(value)[:40],
)
def test_a_margin_is_smaller_than_what_it_judges(key: str, claim: Claim):
    assert claim.says
    if claim.direction != "equal" and claim.paper is not None and claim.paper_against is not None:
        effect = abs(claim.paper - claim.paper_against)
        assert claim.margin is not None
        assert claim.margin <= max(effect / 2, 0.1), f"{key}: a margin of {claim.margin} for an effect of {effect:.3g}"
