"""The loop and the ensemble are two engines for one mathematics: on a case that both can do, they take equal steps."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from evenly import models
from evenly.recipe import Ascent, Data, Model, Optimizer, Recipe, Schedule
from evenly.rng import generator
from evenly.training.build import load_data
from evenly.training.ensemble import Ensemble
from evenly.training.train import train


@pytest.mark.parametrize(("rule", "rho"), [("none", 0.0), ("sam", 0.1), ("lsam", 0.1), ("asam", 0.5)])
def test_a_run_of_the_loop_and_a_member_of_an_ensemble_end_with_equal_weights(
    rule: str, rho: float, tmp_path: Path
) -> None:
    recipe = Recipe(
        data=Data("spirals", {"num_train": 120, "num_test": 10}),
        model=Model("mlp", {"width": 16, "dropout": 0.0}),
        optimizer=Optimizer(lr=0.05, momentum=0.9, weight_decay=1e-3),
        ascent=Ascent(rule, rho),
        schedule=Schedule("constant"),
        epochs=3,
        batch_size=20,
        seed=3,
    )
    run = train(recipe, runs=tmp_path, device="cpu")
    data = load_data(recipe).train
    model = models.build("mlp", input_shape=data.shape, num_classes=2, rng=generator(3, "init"), width=16, dropout=0.0)
    ensemble = Ensemble(
        [model],
        data,
        lr=0.05,
        momentum=0.9,
        weight_decay=1e-3,
        rule="sgd" if rule == "none" else rule,
        rho=rho,
        batch_size=20,
        seeds=3,
        loss="cross-entropy",
    )
    ensemble.run(18)
    alone = load_file(run.path / "weights.safetensors")
    member = ensemble.member(0)
    for name, tensor in member.state_dict().items():
        torch.testing.assert_close(tensor, alone[name], rtol=2e-4, atol=2e-5)
