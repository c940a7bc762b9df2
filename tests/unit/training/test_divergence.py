"""Training that comes apart stops, and what was good stays."""

from pathlib import Path

import pytest
import torch

from evenly.data import load
from evenly.recipe import Data, Model, Optimizer, Recipe, digest, to_mapping
from evenly.records import Run
from evenly.training import checkpoint
from evenly.training.build import build_parts
from evenly.training.distributed import World
from evenly.training.divergence import Diverged
from evenly.training.interruption import Interruption
from evenly.training.loop import Loop
from evenly.training.train import train

RECIPE = Recipe(data=Data("parity", {"dim": 6}), model=Model("mlp", {"width": 8}), epochs=2, batch_size=20)


def test_weights_that_a_step_made_infinite_are_never_saved_as_the_last_good_ones(tmp_path: Path) -> None:
    parts = build_parts(RECIPE, world=World(), splits=load("parity", dim=6))
    with Run.create(tmp_path, to_mapping(RECIPE), digest(RECIPE)) as run:
        loop = Loop(parts, run, Interruption())
        loop._since = 0.0
        batches = parts.batches.epoch(0)
        loop.take(next(batches))
        loop._save()
        good = [p.detach().clone() for p in parts.model.parameters()]
        loop.take(next(batches))
        with torch.no_grad():
            next(parts.model.parameters())[0, 0] = torch.inf
        with pytest.raises(Diverged, match=r"norm of the weights is inf at step 2 .*last good checkpoint is .*last"):
            loop._save()
        kept = checkpoint.load(run, "checkpoints/last.safetensors")
    assert kept["step"] == 1
    assert all(
        torch.equal(a, kept["model"][name]) for (name, _), a in zip(parts.model.named_parameters(), good, strict=True)
    )


def test_a_checkpoint_after_every_step_keeps_none_of_a_run_that_diverges_in_its_first(tmp_path: Path) -> None:
    recipe = Recipe(**{**vars(RECIPE), "optimizer": Optimizer(lr=1e38)})
    with pytest.raises(Diverged, match=r"norm of the weights is (inf|nan) at step 1 .*there was no checkpoint yet"):
        train(recipe, runs=tmp_path, device="cpu", pace=0.0)
    (folder,) = tmp_path.iterdir()
    assert not list(folder.glob("**/*.safetensors"))


def test_the_last_step_of_all_is_looked_at_too(tmp_path: Path) -> None:
    recipe = Recipe(**{**vars(RECIPE), "optimizer": Optimizer(lr=1e38), "epochs": 1, "batch_size": 100})
    with pytest.raises(Diverged, match=r"norm of the weights is (inf|nan) at step 1 \(epoch 1\)"):
        train(recipe, runs=tmp_path, device="cpu")
    (folder,) = tmp_path.iterdir()
    assert not (folder / "weights.safetensors").exists()
    assert Run(folder).metrics() == []
