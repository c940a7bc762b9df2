"""A separation and the data set it belongs to."""

import dataclasses

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from evenly.data.batches import Batches
from evenly.data.labelled import Labelled
from evenly.errors import DataError, UsageError
from evenly.resampling import separate

LOGITS = torch.tensor([[4.0, 0.0], [0.0, 4.0], [0.2, 0.3], [0.3, 5.0], [5.0, 0.2], [0.4, 0.1]])
LABELS = torch.tensor([0, 1, 0, 1, 0, 1])
HARD = [False, False, True, False, False, True]


def labelled(**changes: object) -> Labelled:
    return dataclasses.replace(Labelled(torch.arange(6.0)[:, None], LABELS, ("a", "b")), **changes)


def test_it_is_frozen_and_says_what_it_is() -> None:
    found = separate(LOGITS, LABELS, classes=["cat", "dog"])
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.hard = found.hard  # type: ignore[misc]
    assert repr(found) == "<separation by k-means on logits: 2 of 6 examples hard (33.3%), 2 classes>"
    assert "1 (dog): 1 of 3 (33%)" in found.summary()
    assert (len(found), found.num_hard, found.share) == (6, 2, pytest.approx(1 / 3))


def test_the_subset_is_an_ordinary_one_with_repeats() -> None:
    data = TensorDataset(torch.arange(6.0), LABELS)
    subset = separate(LOGITS, LABELS).subset(data, factor=3)
    assert type(subset) is Subset
    assert subset.indices == [0, 1, 2, 3, 4, 5, 2, 5, 2, 5]
    seen = torch.cat([x for x, _ in DataLoader(subset, batch_size=4, shuffle=True)])
    assert seen.long().bincount().tolist() == [1, 1, 3, 1, 1, 3]


def test_rows_of_a_shuffled_loader_find_their_examples_by_index() -> None:
    order = torch.tensor([3, 5, 0, 2, 4, 1])
    data = TensorDataset(torch.arange(6.0), LABELS)
    found = separate(LOGITS[order], LABELS[order], index=order)
    assert found.hard.tolist() == [HARD[i] for i in order]
    assert found.subset(data).indices == separate(LOGITS, LABELS).subset(data).indices
    assert sorted(found.indices().tolist()) == [0, 1, 2, 2, 3, 4, 5, 5]
    assert found.fingerprint == separate(LOGITS, LABELS).fingerprint


def test_rows_of_a_shuffled_loader_without_index_are_found_out() -> None:
    order = torch.tensor([3, 5, 0, 2, 4, 1])
    found = separate(LOGITS[order], LABELS[order])
    with pytest.raises(DataError, match=r"in another order: the outputs came from a shuffled loader.*index="):
        found.subset(TensorDataset(torch.arange(6.0), LABELS))


def test_labelled_data_are_matched_by_their_own_index() -> None:
    data = labelled(index=torch.tensor([10, 20, 30, 40, 50, 60]))
    found = separate(LOGITS, LABELS, index=data.index)
    assert found.positions(data).tolist() == [0, 1, 2, 3, 4, 5, 2, 5]
    turned = data.subset([5, 4, 3, 2, 1, 0])
    assert found.positions(turned).tolist() == [0, 1, 2, 3, 4, 5, 0, 3]
    batches = Batches(data, batch_size=8, seed=0, shuffle=False, indices=found.positions(data))
    (batch,) = batches.epoch(0)
    assert batch.index.tolist() == [10, 20, 30, 40, 50, 60, 30, 60]
    assert batch.copy.tolist() == [0, 0, 0, 0, 0, 0, 1, 1]


def test_per_example_factors_follow_the_rows_that_were_separated() -> None:
    data = labelled(index=torch.tensor([10, 20, 30, 40, 50, 60])).subset([5, 4, 3, 2, 1, 0])
    found = separate(LOGITS, LABELS, index=[10, 20, 30, 40, 50, 60])
    assert found.positions(data, factor=[2, 1, 1, 1, 1, 1]).tolist() == [0, 1, 2, 3, 4, 5, 5]
    assert found.positions(data, once=[2]).tolist() == [0, 1, 2, 3, 4, 5, 0]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (TensorDataset(torch.arange(5.0), LABELS[:5]), r"6 examples, fingerprint [0-9a-f]{16}; TensorDataset has 5"),
        (TensorDataset(torch.arange(6.0), 1 - LABELS * 0), "another data set.*Separate again"),
    ],
)
def test_another_data_set_is_refused_with_both_fingerprints(data: Dataset, words: str) -> None:
    with pytest.raises(DataError, match=words):
        separate(LOGITS, LABELS).subset(data)


def test_numbers_that_a_labelled_does_not_have_are_refused() -> None:
    with pytest.raises(DataError, match="Example 0 is not in it"):
        separate(LOGITS, LABELS, index=range(6)).subset(labelled(index=torch.arange(1, 7)))


class Opaque(Dataset):
    """A data set that does not show its labels."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> int:
        return i


def test_labels_given_are_checked_where_the_data_set_shows_none() -> None:
    found = separate(LOGITS, LABELS)
    assert len(found.subset(Opaque())) == len(found.subset(Opaque(), labels=LABELS)) == 8
    with pytest.raises(DataError, match="another data set"):
        found.subset(Opaque(), labels=LABELS * 0)


def test_data_for_evaluation_are_refused() -> None:
    found = separate(LOGITS, LABELS)
    with pytest.raises(UsageError, match=r"data test is for evaluation.*training split"):
        found.subset(labelled(split="test"))


def test_an_attribute_called_train_is_no_evidence() -> None:
    opaque = Opaque()
    opaque.train = False  # type: ignore[attr-defined]  # as people switch augmentation off
    assert len(separate(LOGITS, LABELS).subset(opaque)) == 8


class Pairs(Opaque):
    """Inputs with labels, and no list of the labels."""

    def __init__(self, labels: torch.Tensor) -> None:
        self.hidden = labels

    def __getitem__(self, i: int) -> tuple[int, int]:  # type: ignore[override]
        return i, int(self.hidden[i])


def test_outputs_of_a_shuffled_loader_are_found_by_reading_some_items() -> None:
    found = separate(LOGITS, LABELS)
    assert len(found.subset(Pairs(LABELS))) == 8
    with pytest.raises(DataError, match=r"of 6 items of Pairs .*shuffled loader.*shuffle=False"):
        found.subset(Pairs(LABELS.flip(0)))


class Triples(Pairs):
    """Inputs with labels and a third part, such as the number of the example or its group."""

    def __getitem__(self, i: int) -> tuple[int, int, int]:  # type: ignore[override]
        return i, int(self.hidden[i]), i


def test_items_with_more_than_an_input_and_a_label_are_checked_too() -> None:
    found = separate(LOGITS, LABELS)
    assert len(found.subset(Triples(LABELS))) == 8
    with pytest.raises(DataError, match=r"of 6 items of Triples .*shuffled loader"):
        found.subset(Triples(LABELS.flip(0)))


def test_agreement_matches_examples_and_not_rows() -> None:
    order = torch.tensor([3, 5, 0, 2, 4, 1])
    one, two = separate(LOGITS, LABELS), separate(LOGITS[order], LABELS[order], index=order)
    assert one.agreement(two) == (1.0, 1.0, 1.0)
    other = dataclasses.replace(one, hard=torch.tensor([True, False, True, False, False, False]))
    assert one.agreement(other).same == pytest.approx(4 / 6)
    assert two.agreement(other).jaccard == pytest.approx(1 / 3)


def test_separations_of_different_data_are_not_compared() -> None:
    with pytest.raises(UsageError, match=r"different data: 6 examples.*Compare separations of one data set"):
        separate(LOGITS, LABELS).agreement(separate(LOGITS[:5], LABELS[:5]))


def test_fingerprints_depend_on_labels_and_numbers_and_nothing_else() -> None:
    marks = {
        separate(LOGITS, LABELS).fingerprint,
        separate(LOGITS * 2 + 1, LABELS).fingerprint,
        separate(LOGITS.numpy().astype(np.float64), LABELS.tolist(), method="quantile").fingerprint,
    }
    assert len(marks) == 1
    marks.add(separate(LOGITS, LABELS.flip(0)).fingerprint)
    marks.add(separate(LOGITS, LABELS, index=torch.arange(1, 7)).fingerprint)
    assert len(marks) == 3
