"""A learning rate found by trying some: recorded, resumed, and better than the worst of them."""

import json
from pathlib import Path

import pytest

from evenly.cli import main
from evenly.errors import UsageError
from evenly.recipe import Data, Model, Recipe
from evenly.training.defaults import with_model_defaults
from evenly.training.lr_range import FOLDER, STEPS, Trial, choose, range_test

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
    assert choose([Trial(1.0, None, None), Trial(0.1, 0.7, "a")]) == 0.1
    with pytest.raises(UsageError, match=r"diverged at every learning rate from 0\.1 to 1"):
        choose([Trial(1.0, None, None), Trial(0.1, None, None)])


def test_lr_auto_trains_with_the_rate_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "parity", "--model", "mlp", "--lr", "auto", "--epochs", "1", "--batch-size", "50"]
    words += ["--set", "dim=5", "--set", "model.options.width=16", "--device", "cpu", "--runs", str(tmp_path), "--json"]
    assert main(words) == 0
    out, err = capsys.readouterr()
    (record,) = (tmp_path / FOLDER).glob("*.json")
    rate = json.loads(record.read_text())["chosen"]
    assert f"--lr auto chose {rate:g}" in err
    assert json.loads(out)["lr"] <= rate
    recipe = (Path(json.loads(out)["folder"]) / "recipe.yaml").read_text()
    assert f"lr: {rate:g}" in recipe


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
