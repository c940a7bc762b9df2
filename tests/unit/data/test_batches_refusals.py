"""Batches of what is no position, no epoch or no data set are refused in words that say what to give."""

from typing import Any

import numpy as np
import pytest
import torch

from evenly.data import Batches, Labelled
from evenly.data.batches import batches
from evenly.errors import UsageError

DATA = Labelled(torch.arange(6.0)[:, None], torch.arange(6) % 2, ("even", "odd"))


@pytest.mark.parametrize(
    "indices", [[0.0, 1.7], torch.tensor([0.0, 1.0]), np.array([0.5]), torch.ones(6, dtype=torch.bool)]
)
def test_indices_that_are_no_whole_numbers_are_not_rounded(indices: Any) -> None:
    with pytest.raises(UsageError, match=r"batches: indices are .*: give positions, whole numbers from 0 to 5"):
        Batches(DATA, batch_size=2, seed=0, indices=indices)


def test_indices_in_several_rows_are_refused() -> None:
    with pytest.raises(UsageError, match=r"batches: indices have shape \(2, 2\)"):
        Batches(DATA, batch_size=2, seed=0, indices=torch.tensor([[0, 1], [2, 3]]))


@pytest.mark.parametrize("indices", [[0, 5, 5], np.array([0, 5, 5]), torch.tensor([0, 5, 5], dtype=torch.int32)])
def test_whole_numbers_of_any_kind_are_positions(indices: Any) -> None:
    (batch,) = Batches(DATA, batch_size=4, seed=0, indices=indices, shuffle=False).epoch(0)
    assert batch.index.tolist() == [0, 5, 5]


def test_no_indices_are_no_batches() -> None:
    assert len(Batches(DATA, batch_size=2, seed=0, indices=[])) == 0


@pytest.mark.parametrize("epoch", [-1, 0.5, "first"])
def test_an_epoch_that_cannot_be_is_refused_before_its_first_batch(epoch: Any) -> None:
    with pytest.raises(UsageError, match=f"batches: epoch {epoch!r}: give a whole number from 0 on"):
        batches(DATA, batch_size=2, seed=0, epoch=epoch)
    with pytest.raises(UsageError, match="give a whole number from 0 on"):
        Batches(DATA, batch_size=2, seed=0).epoch(epoch)


def test_a_pair_of_tensors_is_answered_with_the_call_that_makes_data_of_it() -> None:
    pair: Any = (DATA.inputs, DATA.labels)
    with pytest.raises(UsageError, match=r"batches: data are a tuple.*Labelled\(inputs, labels, classes\)") as told:
        batches(pair, batch_size=2, seed=0, epoch=0)
    assert "from evenly.data import Labelled" in str(told.value)


def test_a_whole_data_set_is_answered_with_its_training_part() -> None:
    import evenly

    whole: Any = evenly.load("digits")
    with pytest.raises(UsageError, match=r"batches: data are a Splits.*give \.train"):
        batches(whole, batch_size=2, seed=0, epoch=0)
