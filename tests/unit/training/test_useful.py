"""USEFUL in two stages: the truth is found where it is known, controls are paired, everything resumes."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from evenly.data import load
from evenly.errors import DataError, UsageError
from evenly.recipe import Data, Model, Optimizer, Recipe, Resampling, Schedule, Until
from evenly.records import Run
from evenly.training.build import load_data
from evenly.training.early import early_recipe
from evenly.training.selection import second_recipe
from evenly.training.separations import separation_of
from evenly.training.train import train
from evenly.training.useful import train_useful

SMALL = Recipe(
    data=Data("digit-dominoes"),
    model=Model("mlp", {"width": 64}),
    epochs=4,
    batch_size=64,
    optimizer=Optimizer(lr=0.05),
)


def early(recipe: Recipe, until: Until, runs: Path) -> Run:
    return train(early_recipe(recipe, until), runs=runs, device="cpu")


def test_on_patches_the_hard_cluster_is_exactly_what_lacks_the_easy_patch(tmp_path: Path) -> None:
    # Half-rise of the easy feature comes after some hundred full-batch steps (Nguyen et al., section 5.1).
    recipe = Recipe(
        data=Data("patches", {"num_train": 1000, "num_test": 10}),
        model=Model("cubic"),
        optimizer=Optimizer(lr=0.1, momentum=0, weight_decay=0),
        schedule=Schedule("constant"),
        epochs=700,
        batch_size=1000,
        evaluate_every=700,
    )
    run = early(recipe, Until("epoch", 350), tmp_path)
    data = load_data(recipe).train
    hard = separation_of(run, data).hard
    absent = data.attributes["easy_present"] == 0
    precision = (hard & absent).sum() / hard.sum()
    recall = (hard & absent).sum() / absent.sum()
    assert (precision, recall) == (1.0, 1.0)


def test_on_spirals_with_dropped_lines_the_hard_cluster_is_what_lacks_the_line(tmp_path: Path) -> None:
    options = {"num_train": 1000, "num_test": 10, "dropout_noise": 0.2}
    recipe = Recipe(
        data=Data("spirals", options),
        model=Model("mlp", {"width": 64, "dropout": 0.0}),
        optimizer=Optimizer(lr=0.05, momentum=0, weight_decay=0),
        schedule=Schedule("constant"),
        epochs=20,
        batch_size=50,
    )
    data = load_data(recipe).train
    hard = separation_of(early(recipe, Until("epoch", 4), tmp_path), data).hard
    absent = data.attributes["easy_present"] == 0
    # The line runs from 0: its beginning looks like its absence, so precision cannot be 1.
    assert (hard & absent).sum() / absent.sum() > 0.9
    assert (hard & absent).sum() / hard.sum() > 1.5 * absent.double().mean()


def test_the_second_stage_sees_the_hard_half_twice_and_writes_down_which(tmp_path: Path) -> None:
    first = early_recipe(SMALL, Until("epoch", 1))
    run = train(first, runs=tmp_path, device="cpu")
    data = load_data(SMALL).train
    separation = separation_of(run, data)
    second = train(second_recipe(SMALL, run.id, "useful"), runs=tmp_path, device="cpu")
    assert second.summary()["examples_seen"] == SMALL.epochs * (len(data) + separation.num_hard)
    assert second.summary()["hard_share"] == pytest.approx(separation.share)
    rows = (second.path / "separation.csv").read_text().splitlines()
    assert len(rows) == len(data) + 1
    assert run.summary()["separated_at"] == 1


def test_the_early_stage_is_the_beginning_of_plain_training(tmp_path: Path) -> None:
    first = train(early_recipe(SMALL, Until("epoch", 2)), runs=tmp_path, device="cpu")
    plain = train(SMALL, runs=tmp_path, device="cpu")
    learned = [{name: row[name] for name in ("epoch", "train.loss", "train.error")} for row in plain.metrics()]
    assert [{name: row[name] for name in learned[0]} for row in first.metrics()] == learned[:2]
    assert load_data(early_recipe(SMALL, Until("gain"))).fingerprint == load_data(SMALL).fingerprint


def test_a_proxy_and_another_optimizer_may_find_what_is_hard(tmp_path: Path) -> None:
    first = early_recipe(
        SMALL, Until("epoch", 1), model=Model("mlp", {"width": 8}), optimizer=Optimizer("adam", lr=0.01)
    )
    run = train(first, runs=tmp_path, device="cpu")
    second = train(second_recipe(SMALL, run.id, "useful"), runs=tmp_path, device="cpu")
    widths = {len(weight) for weight in load_file(second.path / "weights.safetensors").values()}
    assert widths == {64, 2}


def test_methods_and_controls_share_seeds_and_cost_what_they_say(tmp_path: Path) -> None:
    controls = ["original", "random", "upweight", "quantile", "misclassified", "steps"]
    rows = train_useful(SMALL, seeds=[0, 1], controls=controls, until=Until("epoch", 1), runs=tmp_path, device="cpu")
    by = {(row.method, row.seed): row for row in rows}
    assert len(rows) == 14
    for seed in (0, 1):
        found, random, weighted = (by[name, seed] for name in ("useful", "random", "upweight"))
        assert random.share == found.share == weighted.share
        assert found.cost == pytest.approx(1 + found.share + 1 / 4)
        assert weighted.cost == pytest.approx(1 + 1 / 4)
        assert by["original", seed].cost == 1.0
        assert by["steps", seed].cost == pytest.approx(1 + found.share, abs=0.15)
        assert by["quantile", seed].share == pytest.approx(0.5, abs=0.02)


def test_a_second_call_trains_nothing_again(tmp_path: Path) -> None:
    arguments = {"seeds": [0], "until": Until("epoch", 1), "runs": tmp_path, "device": "cpu"}
    first = train_useful(SMALL, **arguments)
    times = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")}
    assert train_useful(SMALL, **arguments) == first
    assert times == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")}


def test_by_gain_a_network_that_fits_all_is_separated_at_the_last_epoch_it_did_not(tmp_path: Path) -> None:
    recipe = Recipe(**{**vars(SMALL), "epochs": 30, "batch_size": 128, "optimizer": Optimizer(lr=0.1)})
    run = early(recipe, Until("gain"), tmp_path)
    assert run.summary()["separated_at"] <= run.summary()["epoch"] < 30
    assert separation_of(run, load_data(recipe).train).accuracy <= 0.99


def test_upsampling_by_a_run_that_left_no_outputs_is_refused(tmp_path: Path) -> None:
    plain = train(SMALL, runs=tmp_path, device="cpu")
    with pytest.raises(UsageError, match=r"has left no outputs"):
        train(
            Recipe(**{**vars(SMALL), "resampling": Resampling("useful", early=plain.id)}), runs=tmp_path, device="cpu"
        )


def test_a_separation_of_other_data_is_refused(tmp_path: Path) -> None:
    first = early_recipe(SMALL, Until("epoch", 1))
    run = train(first, runs=tmp_path, device="cpu")
    other = Recipe(**{**vars(SMALL), "data": Data("digits")})
    with pytest.raises(DataError, match=r"the early run \w+ was trained on other data than digits is now"):
        train(second_recipe(other, run.id, "useful"), runs=tmp_path, device="cpu")


@pytest.mark.parametrize(
    ("until", "complaint"),
    [
        (Until("end"), "ends early"),
        (Until("epoch", 99), "whole epoch from 1 to 4"),
        (Until("epoch", 0.5), "whole epoch"),
    ],
)
def test_a_moment_that_cannot_be_is_refused(until: Until, complaint: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=complaint):
        early(SMALL, until, tmp_path)


def test_an_unknown_control_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no method 'randm'. Did you mean 'random'"):
        train_useful(SMALL, controls=["randm"], runs=tmp_path)


def test_the_recipe_of_a_second_stage_names_the_first() -> None:
    assert second_recipe(SMALL, "c0ffee", "useful").resampling.early == "c0ffee"
    with pytest.raises(UsageError, match="go together"):
        Resampling("useful")


def test_fine_tuning_begins_both_stages_from_the_given_weights(tmp_path: Path) -> None:
    trained = train(SMALL, runs=tmp_path, device="cpu")
    weights = str(trained.path / "weights.safetensors")
    recipe = Recipe(
        **{**vars(SMALL), "epochs": 1, "optimizer": Optimizer(lr=1e-12), "model": Model("mlp", {"width": 64}, weights)}
    )
    run = train(recipe, runs=tmp_path, device="cpu")
    a, b = (load_file(r.path / "weights.safetensors") for r in (trained, run))
    for name in a:
        torch.testing.assert_close(a[name], b[name])
    assert load("digit-dominoes").train.num_classes == 2
