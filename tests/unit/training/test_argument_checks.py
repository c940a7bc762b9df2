"""Arguments that cannot be meant are refused in words, before anything is loaded or made."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenly.errors import UsageError
from evenly.recipe import Data, Model, Recipe
from evenly.training.comparison import Design, compare
from evenly.training.train import train

SMALL = Recipe(data=Data("parity", {"dim": 5}), model=Model("mlp", {"width": 8}), epochs=2, batch_size=50)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"recipe": "digits"}, r"recipe = 'digits' is a str, not evenly\.recipe\.Recipe.*evenly\.recipe\.load"),
        ({"recipe": {"epochs": 3}}, r"recipe = \{'epochs': 3\} is a dict"),
        ({"enough": 5}, "enough = 5 cannot be called: give a function of the metrics so far"),
        ({"pace": "slow"}, "pace = 'slow' is the seconds between checkpoints"),
        ({"workers": "2"}, "--workers '2': give 0 or more processes"),
        ({"workers": 1.5}, r"--workers 1\.5"),
        ({"device": None}, "--device None is not a device"),
        ({"indices": "abc"}, "indices = 'abc' are not numbers"),
        ({"indices": [None]}, r"indices = \[None\] are not numbers"),
        ({"indices": []}, "indices are empty: there is nothing to train on"),
        ({"weights": {"a": 1.0}}, "weights = .* are not numbers"),
    ],
)
def test_arguments_of_training_that_cannot_be_meant(given: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=told):
        train(given.pop("recipe", SMALL), **{"runs": tmp_path / "runs", "device": "cpu", **given})
    assert not (tmp_path / "runs").exists()


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    given = {"pace": np.float32(60), "workers": np.int64(0), "indices": np.arange(60)}
    assert train(SMALL, runs=tmp_path, device="cpu", **given).state == "done"


@pytest.mark.parametrize(
    ("design", "told"),
    [
        ({"recipe": "digits"}, "recipe = 'digits' is a str"),
        ({"methods": "plain"}, r"methods = 'plain' is one text: give a list of names, such as \['plain', 'sam'\]"),
        ({"seeds": 3}, r"seeds = 3 is a number of seeds: give the seeds themselves, such as range\(3\)"),
        ({"seeds": (1, 0, 1)}, "seed 1 is given twice"),
        ({"until": "gain"}, r"until = 'gain': give evenly\.recipe\.Until\('gain'\)"),
    ],
)
def test_designs_that_cannot_be_meant(design: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=told):
        compare(Design(**{"recipe": SMALL, "methods": ("plain", "useful"), **design}), runs=tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


def test_where_runs_are_trained_is_not_a_text(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"where = 'local:2' is a str: give evenly\.sweep\.parse\('local:2'\)"):
        compare(Design(SMALL, ("plain",), (0,)), runs=tmp_path, where="local:2")  # type: ignore[arg-type]
