"""Ten steps of loss, frozen: a refactoring must reproduce them."""

from pathlib import Path

import pytest

from evenly.recipe import Ascent, Data, Model, Recipe
from evenly.training.train import train

GOLDEN = {
    "none": [
        0.7259217,
        0.7138864,
        0.7059934,
        0.6952458,
        0.6869813,
        0.6843285,
        0.6911439,
        0.6849804,
        0.6827504,
        0.6837733,
    ],
    "sam": [
        0.7259217,
        0.7109307,
        0.7013019,
        0.6907187,
        0.6872052,
        0.6891448,
        0.6961348,
        0.6887768,
        0.687847,
        0.6882857,
    ],
    "lsam": [
        0.7259217,
        0.7115125,
        0.7016673,
        0.6912768,
        0.6871908,
        0.6894638,
        0.6972523,
        0.6895408,
        0.6877164,
        0.6887296,
    ],
}


@pytest.mark.parametrize("rule", ["none", "sam", "lsam"])
def test_the_losses_of_ten_steps_are_what_they_were(rule: str, tmp_path: Path) -> None:
    recipe = Recipe(
        data=Data("parity", {"dim": 20}),
        model=Model("mlp", {"width": 32}),
        ascent=Ascent(rule, 0.1),
        epochs=10,
        batch_size=100,
    )
    losses = [row["train.loss"] for row in train(recipe, runs=tmp_path, device="cpu").metrics()]
    # Other instruction sets and numbers of threads add in another order, by which these losses differ by 1e-7 at most.
    assert losses == pytest.approx(GOLDEN[rule], rel=1e-6), losses
