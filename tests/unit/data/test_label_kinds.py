"""Labels are class numbers of one kind, whatever they came as; no class is held out whole."""

import pytest
import torch

from evenly.data import Labelled
from evenly.data.held_out import held_out
from evenly.training.objective import Objective


@pytest.mark.parametrize("kind", [torch.uint8, torch.int32, torch.bool, torch.int64])
def test_labels_are_whole_numbers_of_64_bits(kind: torch.dtype) -> None:
    data = Labelled(torch.zeros(2, 1), torch.tensor([0, 1]).to(kind), ("a", "b"))
    assert data.labels.dtype is torch.int64
    loss = Objective("squared")(torch.ones(2, 1), data.labels)  # ½(1 − y)², y = −1 and 1
    assert loss.tolist() == [2.0, 0.0]


@pytest.mark.parametrize("share", [0.5, 0.8, 0.99])
def test_every_class_keeps_an_example_to_train_on(share: float) -> None:
    labels = torch.tensor([0, 0, 1, 1, 1, 2])
    kept = labels[~held_out(labels, share=share, key="test")]
    assert set(kept.tolist()) == {0, 1, 2}
