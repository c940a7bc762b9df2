"""What `train` is asked beside a recipe, and who else may be training it."""

import sys
from pathlib import Path
from types import ModuleType

import pytest
from torch import nn

from evenly.errors import UsageError
from evenly.recipe import Data, Model, Recipe
from evenly.training.train import train


@pytest.mark.parametrize("pace", [float("nan"), -5.0])
def test_a_pace_that_is_no_time_is_refused_before_a_folder_is_made(pace: float, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"pace = .* seconds between checkpoints"):
        train(Recipe(data=Data("parity", {"dim": 5}), epochs=1), runs=tmp_path / "runs", device="cpu", pace=pace)
    assert not (tmp_path / "runs").exists()


def test_a_run_that_another_process_ends_meanwhile_is_found_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recipe = Recipe(data=Data("parity", {"dim": 5}), model=Model("meanwhile:network"), epochs=1, batch_size=50)
    begun = []

    def network(num_classes: int) -> nn.Module:
        if not begun:  # after the first look at the folder, and before the lock is taken
            begun.append(True)
            train(recipe, runs=tmp_path, device="cpu")
        return nn.Sequential(nn.Flatten(), nn.Linear(5, num_classes))

    module = ModuleType("meanwhile")
    module.network = network  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "meanwhile", module)
    run = train(recipe, runs=tmp_path, device="cpu")
    assert run.state == "done"
    assert len(run.metrics()) == 1
