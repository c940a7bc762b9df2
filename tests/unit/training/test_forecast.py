"""What a dry run says of a comparison is what the comparison then trains."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evenly.recipe import Data, Model, Optimizer, Recipe, Until
from evenly.records import Run
from evenly.training.comparison import Design, compare
from evenly.training.forecast import forecast

RECIPE = Recipe(
    data=Data("digit-dominoes", {"size": 200, "noise": 0.1}),
    model=Model("mlp", {"width": 16}),
    optimizer=Optimizer(lr=0.05),
    epochs=6,
    batch_size=32,
    evaluate_every=6,
)
METHODS = ("plain", "sam", "useful", "sam+useful:4+continue", "random", "steps:4+continue", "steps", "upweight:4")
CHOOSING = ("jtt", "random:5+like-jtt", "steps:5+like-jtt", "quantile", "balance:8", "useful:4+right")


def gradients(made: dict[str, Any]) -> dict[str, int]:
    return {line["method"]: line["gradients"] for line in made["lines"]}


@pytest.mark.parametrize("keep_suspects", [True, False])
def test_a_dry_run_names_the_runs_that_are_trained_and_counts_their_gradients(
    keep_suspects: bool, tmp_path: Path
) -> None:
    design = Design(RECIPE, (*METHODS, *CHOOSING), (0,), until=Until("epoch", 2), keep_suspects=keep_suspects)
    found = compare(design, runs=tmp_path, device="cpu")
    made = forecast(design, runs=tmp_path, device="cpu")
    trained = {method["name"]: Run(tmp_path / method["runs"]["0"]["run"]) for method in found["methods"]}
    trained["early"] = Run(tmp_path / found["early"]["0"]["run"])
    assert {name: each["id"] for name, each in made["recipes"].items()} == {
        name: run.id for name, run in trained.items()
    }
    counted = {name: run.summary()["gradients"] for name, run in trained.items()}
    counted["plain"] -= counted["early"]  # from which plain training continues
    assert gradients(made) == counted
    assert made["gradients"] == sum(counted.values())
    assert made["assumed"] == ()


def test_what_only_the_early_run_can_tell_is_assumed_and_said(tmp_path: Path) -> None:
    design = Design(RECIPE, ("plain", "useful+continue", "jtt", "balance:8"), (0, 1), until=Until("epoch", 2))
    made = forecast(design, runs=tmp_path, device="cpu")
    plain = gradients(made)["plain"] / 4 * 6  # without the two epochs of the early run
    shares = {"useful+continue": 4 / 6 * 1.4, "jtt": 1 + 0.2 * 4, "balance:8": 1.4}
    for name, share in shares.items():
        assert gradients(made)[name] == pytest.approx(plain * share, abs=2)
    assert made["assumed"] == ("share", "wrong")
    assert made["recipes"]["useful+continue"]["recipe"]["epochs"] == 4
    shrinking = replace(design, methods=("plain", "jtt"), until=Until("gain"))
    assert forecast(shrinking, runs=tmp_path, device="cpu")["assumed"] == ("wrong", "early_epochs")


def test_plain_training_that_cannot_continue_is_counted_whole(tmp_path: Path) -> None:
    design = Design(RECIPE, ("plain", "useful"), (0,), until=Until("epoch", 2))
    whole = gradients(forecast(replace(design, methods=("plain", "sam")), runs=tmp_path, device="cpu"))["plain"]
    for other in (
        replace(design, early_model=Model("mlp", {"width": 8})),
        replace(design, recipe=replace(RECIPE, keep_epochs=(1,))),
    ):
        assert gradients(forecast(other, runs=tmp_path, device="cpu"))["plain"] == whole
    assert gradients(forecast(design, runs=tmp_path, device="cpu"))["plain"] == pytest.approx(whole * 4 / 6, abs=1)
