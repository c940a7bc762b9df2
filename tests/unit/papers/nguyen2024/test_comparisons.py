"""Comparisons that share runs, differences that the paper gives alone, and what is said of a stand-in."""

from pathlib import Path
from typing import Any

import pytest

from evenly.papers.catalogue import CATALOGUE
from evenly.papers.experiment import Context
from evenly.papers.nguyen2024.comparisons import changes, train_in_turn
from evenly.papers.verdict import judge

RECIPE: dict[str, Any] = {
    "data": {"name": "digits"},
    "model": {"name": "mlp", "options": {"width": 16}},
    "optimizer": {"lr": 0.1},
    "epochs": 4,
    "batch_size": 256,
}
EARLY = {"rule": "epoch", "value": 1}


def test_comparisons_in_turn_share_their_runs(tmp_path: Path) -> None:
    common = {"recipe": RECIPE, "seed": 0, "until": EARLY}
    both = [
        {**common, "name": "two", "controls": ["original"], "factor": 2},
        {**common, "name": "three", "controls": [], "factor": 3},
    ]
    found = train_in_turn(Context(tmp_path), comparisons=both)
    assert found.series["two"]["runs"]["early"] == found.series["three"]["runs"]["early"]
    assert found.series["two"]["runs"]["useful"] != found.series["three"]["runs"]["useful"]
    assert {"two.original.error", "two.useful.error", "three.useful.error"} <= set(found.values)
    assert len([path for path in tmp_path.iterdir() if (path / "recipe.yaml").is_file()]) == 4


def test_where_the_paper_gives_a_difference_alone_it_is_held_against_ours() -> None:
    """An error is not near a difference: with both in one claim nothing could ever be reproduced."""
    claim = {each.name: each for each in CATALOGUE["nguyen2024/fig7"].claims}["sgd"]
    errors = {"sgd.original.error": {0: 42.0, 1: 41.5, 2: 42.3}, "sgd.useful.error": {0: 41.2, 1: 40.6, 2: 41.3}}
    assert judge(claim, changes(errors)).verdict == "reproduced"
    far = {**errors, "sgd.useful.error": {0: 32.0, 1: 31.4, 2: 32.4}}
    assert judge(claim, changes(far)).verdict == "stronger than claimed"


@pytest.mark.parametrize(
    ("key", "network", "rate"),
    [("table2", "three convolutions", "0.05"), ("fig4-vit", "a ViT of 3 blocks, 48 wide", "0.01")],
)
def test_the_deviations_of_a_stand_in_name_the_network_that_it_trains(key: str, network: str, rate: str) -> None:
    scale = CATALOGUE[f"nguyen2024/{key}"].scales["small"]
    words = " ".join(scale.deviations)
    assert network in words
    assert f"learning rate of {rate}" in words
    recipes = [part.arguments["recipe"] for part in CATALOGUE[f"nguyen2024/{key}"].parts("small")]
    assert {str(each["optimizer"]["lr"]) for each in recipes} == {rate}
    assert ("three convolutions" in words) == all(each["model"]["name"] == "convnet" for each in recipes)
