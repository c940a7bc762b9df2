"""Batches in which nothing counts, perturbation groups of a recipe, and outputs that were damaged."""

from pathlib import Path

import pytest
import torch

from evenly.errors import DataError, UsageError
from evenly.models import build
from evenly.recipe import Ascent, Data, Recipe, digest, to_mapping
from evenly.records import Run
from evenly.training.build import _check_groups, build_parts, load_data
from evenly.training.distributed import World
from evenly.training.early import OUTPUTS, load_outputs, outputs_epoch
from evenly.training.ensemble import Ensemble


def test_a_batch_without_weight_moves_nothing() -> None:
    from evenly.data import load

    data = load("parity", dim=4, num_train=4).train
    weights = torch.tensor([1.0, 0.0, 0.0, 0.0])
    model = build("relu2", input_shape=(4,), num_classes=2, rng=0)
    ensemble = Ensemble([model], data, lr=0.1, batch_size=1, weights=weights)
    ensemble.run(4)
    assert all(p.isfinite().all() for p in ensemble.parameters().values())
    moved = [not torch.equal(p[0], q) for p, q in zip(ensemble.parameters().values(), model.parameters(), strict=True)]
    assert any(moved)  # by the one example that counts


@pytest.mark.parametrize(("m", "size"), [(32, 2), (16, 2), (8, 2), (32, 1)])
def test_a_group_may_be_a_process_s_share_or_all_of_the_batch(m: int, size: int) -> None:
    recipe = Recipe(ascent=Ascent("sam", 0.1, {"m": m}), batch_size=32)
    _check_groups(recipe, 64, World(size=size))
    with pytest.raises(UsageError, match="drop_last"):
        _check_groups(recipe, 65, World(size=size))


def test_a_group_of_nothing_is_a_usage_error() -> None:
    recipe = Recipe(data=Data("parity", {"dim": 5}), ascent=Ascent("sam", 0.1, {"m": 0}), batch_size=50)
    with pytest.raises(UsageError, match="m=0 is not a number of examples"):
        build_parts(recipe, world=World(), splits=load_data(recipe))


def test_damaged_outputs_are_a_data_error(tmp_path: Path) -> None:
    recipe = Recipe(epochs=3)
    run = Run.create(tmp_path, to_mapping(recipe), digest(recipe))
    run.close()
    (run.path / OUTPUTS).write_bytes(b"\x09\x00\x00\x00\x00\x00\x00\x00{")
    for read in (load_outputs, outputs_epoch):
        with pytest.raises(DataError, match="is damaged"):
            read(run)
