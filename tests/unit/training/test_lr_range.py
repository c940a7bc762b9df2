"""A learning rate found by trying some: recorded, resumed, and better than the worst of them."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evenly.cli import main
from evenly.errors import UsageError
from evenly.recipe import Data, Model, Recipe
from evenly.training.defaults import with_model_defaults
from evenly.training.lr_range import FEWEST_STEPS, FOLDER, STEPS, Trial, choose, discard_lucky_trials, range_test

RECIPE = Recipe(data=Data("parity", {"dim": 5, "num_train": 200}), model=Model("mlp", {"width": 32}), batch_size=20)


def test_every_rate_is_tried_by_a_run_that_stays_and_the_choice_is_recorded(tmp_path: Path) -> None:
    test = range_test(RECIPE, runs=tmp_path, device="cpu")
    assert len(test.trials) == len(STEPS)
    losses = {trial.lr: trial.loss for trial in test.trials}
    lowest = min(loss for loss in losses.values() if loss is not None)
    chosen = losses[test.lr]
    assert chosen is not None
    assert chosen <= 1.05 * lowest
    kept = json.loads(test.path.read_text())
    assert kept["chosen"] == test.lr
    assert [trial["lr"] for trial in kept["trials"]] == [trial.lr for trial in test.trials]
    weights = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")}
    assert len(weights) == sum(trial.run is not None for trial in test.trials)
    again = range_test(RECIPE, runs=tmp_path, device="cpu")
    assert again == test
    assert weights == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("weights.safetensors")}


def test_a_rate_that_diverges_is_never_chosen() -> None:
    assert choose([Trial(1.0, None, None, False), Trial(0.1, 0.7, "a")]) == 0.1
    with pytest.raises(UsageError, match=r"diverged at every learning rate from 0\.1 to 1"):
        choose([Trial(1.0, None, None), Trial(0.1, None, None)])


def test_a_rate_that_learned_nothing_is_never_chosen_however_alike_the_losses() -> None:
    # As seen on 1,600 images of four classes: ln 4 = 1.386 is what guessing gives.
    seen = [Trial(0.3, 1.400, "a", False), Trial(0.1, 1.362, "b"), Trial(0.03, 1.375, "c", False)]
    assert choose(seen) == 0.1
    assert choose([Trial(0.3, 1.400, "a", False), Trial(0.1, 1.386, "b", False)]) is None


def test_a_rate_with_a_larger_loss_than_one_that_learned_nothing_learned_nothing() -> None:
    # As seen on the same images after two epochs: the larger rates fell below the error of guessing by chance.
    seen = [Trial(0.3, 1.409, "a"), Trial(0.1, 1.408, "b"), Trial(0.03, 1.363, "c", False)]
    assert not any(trial.learned for trial in discard_lucky_trials(seen))
    seen = [Trial(1.0, None, None, False), Trial(0.1, 0.5, "a")]
    assert [trial.learned for trial in discard_lucky_trials(seen)] == [False, True]


def test_rates_are_tried_for_longer_until_one_has_learned_something(tmp_path: Path) -> None:
    tiny = replace(RECIPE, batch_size=200, epochs=50)  # one step an epoch
    test = range_test(tiny, runs=tmp_path, device="cpu")
    assert test.epochs >= FEWEST_STEPS
    assert test.any_learned == any(trial.learned for trial in test.trials)


def test_where_nothing_can_be_learned_the_models_own_rate_is_kept_and_that_is_said(tmp_path: Path) -> None:
    data = Data("parity", {"dim": 8, "num_train": 200})
    blind = replace(RECIPE, data=data, epochs=1, batch_size=200)  # one step for each rate
    test = range_test(blind, runs=tmp_path, device="cpu")
    assert not test.any_learned
    assert test.lr == blind.optimizer.lr
    assert "learned anything in 1 epoch" in test.sentence()
    assert json.loads(test.path.read_text())["epochs"] == 1


def test_lr_auto_trains_with_the_rate_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "digits", "--model", "mlp", "--lr", "auto", "--epochs", "2", "--batch-size", "50"]
    words += ["--set", "model.options.width=16", "--device", "cpu", "--runs", str(tmp_path), "--json"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    (record,) = (tmp_path / FOLDER).glob("*.json")
    rate = json.loads(record.read_text())["chosen"]
    assert f"--lr auto chose {rate:g}" in err
    assert json.loads(out)["lr"] <= rate
    recipe = (Path(json.loads(out)["folder"]) / "recipe.yaml").read_text()
    assert f"lr: {rate:g}" in recipe


def test_lr_auto_makes_remarks_on_the_data_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    pictures = rng.integers(0, 255, (60, 3, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "mine.npz", inputs=pictures, labels=np.arange(60) % 2)
    words = ["train", str(tmp_path / "mine.npz"), "--model", "mlp", "--lr", "auto", "--epochs", "1"]
    words += ["--batch-size", "16", "--set", "model.options.width=8", "--device", "cpu", "--runs", str(tmp_path)]
    assert main(words) == 0
    assert capsys.readouterr().err.count("mine.npz has no test split") == 1


def test_defaults_fit_the_model_and_never_replace_what_was_said() -> None:
    small = with_model_defaults(Recipe(model=Model("convnet"), epochs=8))
    assert (small.optimizer.lr, small.schedule.kind, small.schedule.warmup_epochs) == (0.03, "cosine", 1.0)
    said = with_model_defaults(Recipe(model=Model("convnet"), epochs=8), given={"optimizer.lr", "schedule.kind"})
    assert said == Recipe(model=Model("convnet"), epochs=8)
    assert with_model_defaults(Recipe(model=Model("preact-resnet18"))) == Recipe(model=Model("preact-resnet18"))


def test_the_command_line_gives_an_optimizer_its_usual_rate(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "digits", "--dry-run", "--json", "--epochs", "4", "--device", "cpu"]
    assert main([*words, "--optimizer", "adamw"]) == 0
    recipe = json.loads(capsys.readouterr().out)["recipe"]
    assert recipe["optimizer"]["lr"] == 0.001
    assert recipe["schedule"]["kind"] == "cosine"
    assert main([*words, "--lr", "0.2", "--set", "schedule.kind=constant"]) == 0
    recipe = json.loads(capsys.readouterr().out)["recipe"]
    assert (recipe["optimizer"]["lr"], recipe["schedule"]["kind"]) == (0.2, "constant")
    assert recipe["schedule"]["warmup_epochs"] == 0.0


def test_a_batch_larger_than_a_trial_usually_is_makes_the_trial_as_large(tmp_path: Path) -> None:
    data = Data("parity", {"dim": 5, "num_train": 5_300, "num_test": 10})
    recipe = replace(RECIPE, data=data, batch_size=5_200, epochs=2)
    test = range_test(recipe, runs=tmp_path, device="cpu")
    assert all(trial.loss is not None for trial in test.trials[2:])
