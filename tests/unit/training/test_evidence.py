"""What second stages and separations leave in their folders, and whether separations last."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from evenly.errors import UsageError
from evenly.recipe import Data, Model, Optimizer, Recipe, Until, override
from evenly.records import Run
from evenly.training.agreement import mean_agreement, separations_at
from evenly.training.build import load_data
from evenly.training.comparison import Design
from evenly.training.early import early_recipe
from evenly.training.forecast import forecast
from evenly.training.identify import identify
from evenly.training.selection import second_recipe
from evenly.training.separations import separation_of
from evenly.training.train import train
from evenly.training.useful import train_useful

SMALL = Recipe(
    data=Data("digits"), model=Model("mlp", {"width": 32}), epochs=5, batch_size=96, optimizer=Optimizer(lr=0.05)
)
FIELDS = {"method", "early", "epoch", "accuracy", "share", "remarks", "classes", "suspects", "num_suspects", "view"}
FIELDS |= {"early_curve", "chosen_epoch", "rule_fired"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The method and a control on two seeds."""
    folder = tmp_path_factory.mktemp("runs")
    train_useful(
        SMALL, seeds=[0, 1], controls=["original", "random"], until=Until("epoch", 2), runs=folder, device="cpu"
    )
    return folder


def second(runs: Path, method: str, seed: int = 0) -> Run:
    mine = Recipe(**{**vars(SMALL), "seed": seed})
    data = load_data(mine)
    early = identify(early_recipe(mine, Until("epoch", 2)), data).id
    return Run(runs / identify(second_recipe(mine, early, method), data).id)


@pytest.mark.parametrize("method", ["useful", "random"])
def test_a_second_stage_leaves_the_contract_of_the_page(method: str, runs: Path) -> None:
    run = second(runs, method)
    found = json.loads((run.path / "separation.json").read_text(), parse_constant=pytest.fail)
    assert set(found) == FIELDS
    assert found["early"] == run.recipe["resampling"]["early"]
    assert found["share"] == pytest.approx(run.summary()["hard_share"])
    with (run.path / "separation.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert sum(row["hard"] for row in found["classes"]) == sum(row["hard"] == "1" for row in rows)
    assert len(found["view"]["x"]) == len(rows) == 1438
    early = Run(runs / found["early"])
    assert found["chosen_epoch"] == found["epoch"] == early.summary()["separated_at"] == 2
    assert found["early_curve"][0] == {"epoch": 0, "error": pytest.approx(0.9)}
    assert [row["error"] for row in found["early_curve"][1:]] == [row["train.error"] for row in early.metrics()]


def test_kept_pictures_are_those_of_the_data(runs: Path) -> None:
    data = load_data(SMALL).train
    with np.load(second(runs, "useful").path / "examples.npz", allow_pickle=False) as kept:
        of_row = {"index", "label", "predicted", "probability", "loss", "hard", "suspect", "pictures"}
        assert set(kept.files) == of_row | {"nearest", "nearest_label"}
        assert len(kept["index"]) == 320
        place = {int(index): position for position, index in enumerate(data.index.tolist())}
        where = [place[index] for index in kept["index"].tolist()]
        np.testing.assert_array_equal(kept["pictures"], data.gather(where).numpy())
        np.testing.assert_array_equal(kept["label"], data.labels[where].numpy())
        assert (kept["loss"][kept["predicted"] != kept["label"]] > np.log(2)).all()


def test_training_leaves_no_half_written_file(runs: Path) -> None:
    assert not list(runs.rglob("*.part"))


def test_separations_of_seeds_agree_more_than_chance(runs: Path) -> None:
    found = mean_agreement([second(runs, "useful", seed) for seed in (0, 1)])
    assert found is not None
    assert (found["separations"], found["pairs"]) == (2, 1)
    chance = mean_agreement([second(runs, "random", seed) for seed in (0, 1)])
    assert chance is not None
    assert found["adjusted_rand"] > 0.05 > 0.02 > abs(chance["adjusted_rand"])
    assert mean_agreement([second(runs, "useful")]) is None


def test_runs_on_other_data_are_not_compared(tmp_path: Path) -> None:
    toy = Recipe(data=Data("parity", {"dim": 6}), model=Model("mlp", {"width": 8}), epochs=2, batch_size=50)
    found = train_useful(toy, seeds=[0, 1], controls=[], until=Until("epoch", 1), runs=tmp_path, device="cpu")
    assert mean_agreement([Run(tmp_path / row.run) for row in found]) is None


def test_kept_epochs_are_separated_as_the_run_itself_was(tmp_path: Path) -> None:
    data = load_data(SMALL).train
    run = train(early_recipe(SMALL, Until("epoch", 2), keep_epochs=[1, 2]), runs=tmp_path, device="cpu")
    found = separations_at(run, data)
    own = separation_of(run, data)
    assert list(found) == [1, 2]
    assert found[2].agreement(own).same == 1.0
    assert 0 < found[1].agreement(own).jaccard < 1


def test_a_forecast_has_the_examples_that_are_then_seen(runs: Path) -> None:
    design = Design(SMALL, ("plain", "useful", "random"), (0, 1), until=Until("epoch", 2))
    before = forecast(design, runs=runs / "none", device="cpu")
    assert not (runs / "none").exists()
    assert (before["share"], before["assumed"]) == (0.4, ("share",))
    after = forecast(design, runs=runs, device="cpu")
    assert after["assumed"] == ()
    lines = {line["method"]: line["examples"] for line in after["lines"]}
    assert lines["early"] == 2 * 2 * 1438
    assert lines["plain"] == 2 * (5 - 2) * 1438  # it continues from there
    mine = sum(second(runs, "useful", seed).summary()["examples_seen"] for seed in (0, 1))
    assert lines["useful"] == pytest.approx(mine, rel=0.1)  # the share is that of the first seed
    assert after["examples"] == sum(lines.values())


def test_a_forecast_of_targeted_augmentation_times_plain_training() -> None:
    recipe = override(SMALL, ["resampling.augment=[noise:0.2]"])
    found = forecast(Design(recipe, ("plain", "useful", "augment-all"), (0,), until=Until("epoch", 2)), device="cpu")
    assert found["recipes"]["useful"]["recipe"]["resampling"]["augment"] == ["noise:0.2"]
    assert found["recipes"]["augment-all"]["recipe"]["augment"] == ["noise:0.2"]


def test_a_forecast_of_a_method_that_does_not_exist_is_refused() -> None:
    with pytest.raises(UsageError, match="Did you mean 'random'"):
        forecast(Design(SMALL, ("randm",)))
