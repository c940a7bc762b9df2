"""Weights of examples in an ensemble, and what it refuses."""

import pytest
import torch

from evenly.data import load
from evenly.errors import UsageError
from evenly.models import build
from evenly.training.ensemble import Ensemble


def test_a_batch_without_weight_moves_nothing() -> None:
    data = load("parity", dim=4, num_train=4).train
    weights = torch.tensor([1.0, 0.0, 0.0, 0.0])
    model = build("relu2", input_shape=(4,), num_classes=2, rng=0)
    ensemble = Ensemble([model], data, lr=0.1, batch_size=1, weights=weights)
    ensemble.run(4)
    assert all(p.isfinite().all() for p in ensemble.parameters().values())
    moved = [not torch.equal(p[0], q) for p, q in zip(ensemble.parameters().values(), model.parameters(), strict=True)]
    assert any(moved)  # by the one example that counts


def test_label_smoothing_of_the_squared_loss_is_refused_as_in_the_loop() -> None:
    data = load("parity", dim=4, num_train=4).train
    models = [build("relu2", input_shape=(4,), num_classes=2, rng=seed) for seed in range(2)]
    with pytest.raises(UsageError, match=r"label_smoothing=0\.1 has no meaning for loss=squared"):
        Ensemble(models, data, lr=0.1, loss="squared", label_smoothing=[0.0, 0.1])
