"""Training that comes apart stops, and what was good stays."""

import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from evenly.data import Labelled, Splits, load
from evenly.errors import UsageError
from evenly.recipe import Data, Model, Optimizer, Recipe, digest, override, to_mapping
from evenly.records import Run
from evenly.training import checkpoint
from evenly.training.build import build_parts
from evenly.training.distributed import World
from evenly.training.divergence import Diverged, divergence_error, on_unscaled
from evenly.training.interruption import Interruption
from evenly.training.loop import Loop
from evenly.training.lr_range import RangeTest, Trial, choose
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


@pytest.mark.parametrize(("epochs", "warmup"), [(1, None), (2, 1), (30, 5)])
def test_a_warm_up_is_advised_only_if_the_run_is_long_enough_for_it(epochs: int, warmup: int | None) -> None:
    recipe = replace(RECIPE, epochs=epochs)
    error = divergence_error("the loss is nan", recipe, nn.Linear(2, 1), step=1, epoch=1, path=Path("last"))
    found = re.search(r"schedule\.warmup_epochs=(\d+)", str(error))
    assert (found and int(found[1])) == warmup
    if found is not None:
        override(recipe, [found[0]])
    assert str(error).endswith("or --set clip_norm=1.")


def unscaled() -> Splits:
    rng = torch.Generator().manual_seed(0)
    inputs = 800 * torch.randn(200, 6, generator=rng)
    return Splits("lab", {"train": Labelled(inputs, (inputs[:, 0] > 0).long(), ("no", "yes"), name="lab")})


def test_inputs_that_are_not_scaled_are_named_where_training_diverges(tmp_path: Path) -> None:
    recipe = replace(RECIPE, data=Data("lab"), optimizer=Optimizer(lr=100.0))
    with pytest.raises(Diverged, match=r"numbers of about ±8\d\d.*--set augment=\[normalise\]\. Else try --lr"):
        train(recipe, runs=tmp_path / "a", splits=unscaled(), device="cpu")
    scaled = replace(recipe, augment=("normalise",), optimizer=Optimizer(lr=1e38))
    with pytest.raises(Diverged) as found:
        train(scaled, runs=tmp_path / "b", splits=unscaled(), device="cpu")
    assert "augment" not in str(found.value)


def test_the_advice_for_inputs_that_are_not_scaled_works(tmp_path: Path) -> None:
    advised = replace(RECIPE, data=Data("lab"), augment=("normalise",), epochs=10)
    run = train(advised, runs=tmp_path, splits=unscaled(), device="cpu")
    assert run.summary()["train.error"] < 0.2


def test_a_rate_that_cannot_be_found_for_inputs_that_are_not_scaled_names_them() -> None:
    nothing = [Trial(0.1, None, None, learned=False)]
    hint = on_unscaled(RECIPE, unscaled().train)
    with pytest.raises(UsageError, match=r"diverged at every learning rate.*±8\d\d.*normalise"):
        choose(nothing, hint=hint)
    kept = RangeTest((Trial(0.1, 0.7, "a", learned=False),), 1, 0.1, Path("x.json"), hint).sentence()
    assert "augment=[normalise]" in kept
