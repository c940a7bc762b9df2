"""Batches of what is no position, no epoch or no data set are refused in words that say what to give."""

from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

from evenly.data import Augmentation, Batches, Labelled
from evenly.data.augment import Normalise
from evenly.data.batches import batches
from evenly.data.own.foreign import foreign
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


def test_names_of_augmentations_are_refused_with_what_makes_one_of_them() -> None:
    with pytest.raises(UsageError, match=r"augment=\['mirror'\] is a list: give Augmentation\.parse"):
        Batches(DATA, batch_size=2, seed=0, augment=["mirror"])


def test_no_indices_are_no_batches() -> None:
    assert len(Batches(DATA, batch_size=2, seed=0, indices=[])) == 0


@pytest.mark.parametrize("indices", [["one"], [None], [[0], [1, 2]], "ab"])
def test_indices_that_are_no_numbers_are_refused(indices: Any) -> None:
    with pytest.raises(UsageError, match=r"batches: indices.*: give positions, whole numbers from 0 to 5"):
        Batches(DATA, batch_size=2, seed=0, indices=indices)
    with pytest.raises(UsageError, match=r"subset: positions.*: give positions, whole numbers from 0 to 5"):
        DATA.subset(indices)


def test_positions_may_be_a_reversed_array() -> None:
    (batch,) = Batches(DATA, batch_size=6, seed=0, indices=np.arange(6)[::-1], shuffle=False).epoch(0)
    assert batch.index.tolist() == DATA.subset(np.arange(6)[::-1]).index.tolist() == [5, 4, 3, 2, 1, 0]


def test_an_epoch_may_be_a_number_of_numpy_or_torch() -> None:
    loader = Batches(DATA, batch_size=6, seed=0)
    (expected,) = loader.epoch(3)
    for epoch in (np.int64(3), torch.tensor(3)):
        (batch,) = loader.epoch(epoch)
        assert batch.index.tolist() == expected.index.tolist()


@pytest.mark.parametrize("seed", [1.5, "a", None])
def test_a_seed_that_is_no_whole_number_is_refused(seed: Any) -> None:
    with pytest.raises(UsageError, match=f"batches: seed {seed!r}: give a whole number"):
        Batches(DATA, batch_size=2, seed=seed)


@pytest.mark.parametrize("size", [2.0, "2", None])
def test_a_batch_size_that_is_no_whole_number_is_refused(size: Any) -> None:
    with pytest.raises(UsageError, match=f"batches: batch_size {size!r}: give a whole number from 1 on"):
        Batches(DATA, batch_size=size, seed=0)


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


@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (torch.ones(3), "weights are 3, and data train has 6 examples: give one for each"),
        (torch.ones(300), "weights are 300"),
        (torch.ones(6, 1), r"weights are of shape \(6, 1\)"),
        (-torch.ones(6), r"the weight of example 0 is -1 \(6 such weights\): give numbers from 0 on"),
        ([1.0, 1.0, float("nan"), 1.0, 1.0, float("inf")], r"the weight of example 2 is nan \(2 such weights\)"),
    ],
)
def test_weights_are_one_number_from_0_on_for_each_example(weights: Any, words: str) -> None:
    with pytest.raises(UsageError, match=f"batches: .*{words}"):
        Batches(DATA, batch_size=2, seed=0, weights=weights)


def test_weights_may_be_a_list_and_follow_their_examples() -> None:
    (batch,) = Batches(DATA, batch_size=4, seed=0, indices=[5, 1], weights=[0, 1, 2, 3, 4, 5], shuffle=False).epoch(0)
    assert batch.weight is not None
    assert batch.weight.tolist() == [5, 1]


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    "kind", [torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int8, torch.bool, torch.uint16]
)
def test_inputs_of_any_kind_of_number_reach_the_network_as_float32(kind: torch.dtype, lazy: bool) -> None:
    numbers = torch.tensor([[0, 1], [1, 1]]).to(kind)
    data = Labelled(numbers, torch.tensor([0, 1]), ("a", "b"))
    if lazy:
        data = foreign(TensorDataset(numbers, data.labels))
    for augment in (None, Augmentation(), Augmentation(Normalise((0.0, 0.0), (1.0, 1.0)))):
        (batch,) = Batches(data, batch_size=2, seed=0, shuffle=False, augment=augment).epoch(0)
        assert batch.inputs.dtype is torch.float32
        assert batch.inputs.tolist() == [[0.0, 1.0], [1.0, 1.0]]
