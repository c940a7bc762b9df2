"""Models that could not be trained are found before the first step, with the setting that helps."""

import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from evenly.data import Labelled, Splits
from evenly.errors import UsageError
from evenly.recipe import Ascent, Model, Recipe
from evenly.training.train import train

RECIPE = Recipe(model=Model("their_models:normalised"), epochs=1, batch_size=16)


def splits(num: int, kind: torch.dtype = torch.float32) -> Splits:
    x = torch.randn(num, 4, generator=torch.Generator().manual_seed(0))
    return Splits("mine", {"train": Labelled(x.to(kind), torch.arange(num) % 2, ("a", "b"))})


class Aux(nn.Module):
    """A second head in train mode."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(4, 2)

    def forward(self, x: Tensor) -> object:
        return (self.head(x), self.head(x)) if self.training else self.head(x)


@pytest.fixture(autouse=True)
def their_models(monkeypatch: pytest.MonkeyPatch) -> None:
    module: Any = ModuleType("their_models")
    module.normalised = lambda input_shape, num_classes: nn.Sequential(
        nn.Linear(4, 5), nn.BatchNorm1d(5), nn.Linear(5, 2)
    )
    module.plain = lambda input_shape, num_classes: nn.Linear(4, 2)
    module.double = lambda input_shape, num_classes: nn.Linear(4, 2).double()
    module.aux = lambda input_shape, num_classes: Aux()
    monkeypatch.setitem(sys.modules, "their_models", module)


LONE = [
    ({}, 17, r"the last batch of an epoch has 1 of 17\. Set drop_last=true, or give another batch_size"),
    ({"batch_size": 1}, 8, r"batch_size=1 is one\. Give a larger batch_size"),
    ({"accumulate": 16}, 32, r"accumulate=16 takes 16 examples one by one\. Give at most 8"),
    ({"accumulate": 2}, 18, r"accumulate=2 takes 2 examples one by one\. Give at most 1"),
    ({"ascent": Ascent("sam", options={"fraction": 0.05})}, 32, r"fraction=0\.05 of 16 examples is one\. Give more"),
    ({"ascent": Ascent("sam", options={"m": 1})}, 32, r"m=1 takes examples one by one\. Give a larger m"),
]


@pytest.mark.parametrize(("changes", "num", "words"), LONE)
def test_passes_over_one_example_are_refused_for_models_that_cannot_take_one(
    changes: dict[str, Any], num: int, words: str, tmp_path: Path
) -> None:
    recipe = replace(RECIPE, **changes)
    with pytest.raises(
        UsageError, match=rf"their_models:normalised cannot be trained on a single example .*: .*{words}"
    ):
        train(recipe, runs=tmp_path / "runs", splits=splits(num), device="cpu")
    assert not (tmp_path / "runs").exists()
    plain = replace(recipe, model=Model("their_models:plain"))
    assert train(plain, runs=tmp_path / "runs", splits=splits(num), device="cpu").state == "done"


@pytest.mark.parametrize(
    ("changes", "num"),
    [
        ({"drop_last": True}, 17),
        ({}, 18),
        ({"accumulate": 8}, 32),
        ({"ascent": Ascent("sam", options={"fraction": 0.07})}, 32),
        ({"ascent": Ascent("sam", options={"m": 2})}, 32),
        ({"ascent": Ascent("none", options={"m": 1})}, 32),
    ],
)
def test_passes_over_more_than_one_example_are_trained(changes: dict[str, Any], num: int, tmp_path: Path) -> None:
    run = train(replace(RECIPE, **changes), runs=tmp_path, splits=splits(num), device="cpu")
    assert run.state == "done"


@pytest.mark.parametrize("kind", [torch.float64, torch.float16, torch.int64])
def test_inputs_of_another_kind_of_number_are_trained_on(kind: torch.dtype, tmp_path: Path) -> None:
    run = train(RECIPE, runs=tmp_path, splits=splits(32, kind), device="cpu")
    assert run.state == "done"


def test_models_that_cannot_take_what_training_gives_them_are_named(tmp_path: Path) -> None:
    for name, words in (
        ("double", r"has weights of torch\.float64, which do not take inputs of float32\. Return model\.float\(\)"),
        ("aux", "returns a tuple in train mode, not a tensor"),
    ):
        with pytest.raises(UsageError, match=rf"their_models:{name} {words}"):
            train(
                replace(RECIPE, model=Model(f"their_models:{name}")),
                runs=tmp_path / "r",
                splits=splits(32),
                device="cpu",
            )
    assert not (tmp_path / "r").exists()
