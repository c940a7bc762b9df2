"""The cost of a run is what it took, not what its rule usually takes."""

from pathlib import Path

import pytest
import torch

from evenly.data import Labelled
from evenly.data.splits import Splits
from evenly.recipe import Ascent, Model, Recipe
from evenly.training.train import train

MODELS = """
from torch import nn
from torch.nn import functional as F

class InPlace(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.body, self.head = nn.Linear(4, 5), nn.Linear(5, num_classes)

    def forward(self, x):
        return self.head(F.relu(self.body(x), inplace=True))

def changing(input_shape, num_classes):
    return InPlace(num_classes)

def plain(input_shape, num_classes):
    return nn.Sequential(nn.Linear(4, 5), nn.ReLU(inplace=True), nn.Linear(5, num_classes))
"""


@pytest.mark.parametrize(
    ("model", "options", "passes"), [("plain", {}, 1), ("changing", {}, 2), ("plain", {"m": 4}, 2)]
)
def test_a_run_counts_the_passes_that_lsam_makes_on_its_model(
    model: str, options: dict, passes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models_for_lsam.py").write_text(MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    x, y = torch.randn(32, 4, generator=torch.Generator().manual_seed(0)), torch.arange(32) % 2
    data = Labelled(x, y, ("a", "b"))
    recipe = Recipe(
        model=Model(f"models_for_lsam:{model}"), ascent=Ascent("lsam", options=options), epochs=1, batch_size=8
    )
    run = train(recipe, runs=tmp_path / "runs", splits=Splits("mine", {"train": data, "test": data}), device="cpu")
    assert run.summary()["gradients"] == 32 * passes
