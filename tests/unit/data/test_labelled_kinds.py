"""Labels are class numbers of one kind, whatever they came as; arrays are refused with the call that converts them."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pytest
import torch

from evenly.data import Labelled, Splits
from evenly.errors import DataError, UsageError
from evenly.training.objective import Objective


@pytest.mark.parametrize("what", ["inputs", "labels"])
def test_arrays_of_numpy_are_named_with_the_call_that_makes_tensors_of_them(what: str) -> None:
    given = {"inputs": torch.zeros(4, 2), "labels": torch.arange(4) % 2}
    given[what] = np.asarray(given[what])  # type: ignore[assignment]  # which is what is tested
    with pytest.raises(UsageError, match=rf"{what} are a ndarray: give torch.as_tensor\({what}\)"):
        Labelled(**given, classes=("a", "b"))


@pytest.mark.parametrize("kind", [torch.uint8, torch.int32, torch.bool, torch.int64])
def test_labels_are_whole_numbers_of_64_bits(kind: torch.dtype) -> None:
    data = Labelled(torch.zeros(2, 1), torch.tensor([0, 1]).to(kind), ("a", "b"))
    assert data.labels.dtype is torch.int64
    loss = Objective("squared")(torch.ones(2, 1), data.labels)  # ½(1 − y)², y = −1 and 1
    assert loss.tolist() == [2.0, 0.0]


@pytest.mark.parametrize("kind", [torch.uint16, torch.uint32, torch.uint64])
def test_unsigned_labels_and_inputs_are_taken_though_torch_does_not_compute_with_them(kind: torch.dtype) -> None:
    numbers = torch.tensor([[0], [1], [3]])
    data = Labelled(numbers.to(kind), torch.tensor([0, 1, 1]).to(kind), ("a", "b"))
    assert data.labels.tolist() == [0, 1, 1]
    assert torch.equal(data.subset([2]).inputs, torch.tensor([[3.0]]))
    with pytest.raises(DataError, match="label 3 of example 2 is out of range"):
        Labelled(numbers.float(), numbers[:, 0].to(kind), ("a", "b"))


class Lines:
    """Inputs on disk, as far as `Labelled` can tell."""

    shape = (1,)

    def __init__(self, rows: Sequence[int] = range(6)) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def read(self, positions: Sequence[int]) -> torch.Tensor:
        return torch.tensor([[float(self.rows[i])] for i in positions]).view(-1, 1)

    def select(self, positions: Sequence[int]) -> "Lines":
        return Lines([self.rows[i] for i in positions])

    def identity(self) -> Iterator[bytes]:
        yield repr(self.rows).encode()


STORED = [torch.arange(6.0)[:, None], Lines()]


@pytest.mark.parametrize("inputs", STORED, ids=["tensor", "lazy"])
@pytest.mark.parametrize("verb", ["subset", "gather"])
@pytest.mark.parametrize(
    ("positions", "words"),
    [
        (torch.tensor([False, True, True, False, False, True]), r"torch.bool: give positions.*mask.nonzero"),
        ([True, False, True], "torch.bool"),
        (torch.tensor([1.9, 2.2]), "torch.float32: give positions, whole numbers from 0 to 5"),
        (torch.tensor([[0, 1]]), r"shape \(1, 2\)"),
        ([1, 6], "outside data train, the first is 6: positions run from 0 to 5"),
        ([-1], "outside data train, the first is -1"),
    ],
)
def test_positions_are_whole_numbers_within_the_data(inputs: Any, verb: str, positions: Any, words: str) -> None:
    data = Labelled(inputs, torch.arange(6) % 2, ("even", "odd"))
    with pytest.raises(UsageError, match=rf"{verb}: positions.*{words}"):
        getattr(data, verb)(positions)


@pytest.mark.parametrize("inputs", STORED, ids=["tensor", "lazy"])
@pytest.mark.parametrize("positions", [[1, 5, 5], range(2), [], np.array([3], np.uint16), torch.tensor([2]).int()])
def test_whole_numbers_of_any_kind_are_positions_of_examples(inputs: Any, positions: Any) -> None:
    data = Labelled(inputs, torch.arange(6) % 2, ("even", "odd"))
    expected = [[float(i)] for i in positions]
    assert data.gather(positions).tolist() == expected
    part = data.subset(positions)
    assert part.gather(range(len(part))).tolist() == expected
    assert part.index.tolist() == [int(i) for i in positions]


@pytest.mark.parametrize("inputs", STORED, ids=["tensor", "lazy"])
def test_a_loop_over_the_examples_ends_and_the_last_one_is_minus_one(inputs: Any) -> None:
    data = Labelled(inputs, torch.arange(6) % 2, ("even", "odd"))
    assert [label for _, label in data] == [0, 1, 0, 1, 0, 1]  # type: ignore[attr-defined]  # by __getitem__
    assert data[-1][0].tolist() == [5.0]


@pytest.mark.parametrize("what", ["inputs", "labels"])
def test_a_single_number_is_not_taken_for_examples(what: str) -> None:
    given = {"inputs": torch.zeros(4, 2), "labels": torch.arange(4) % 2, what: torch.tensor(1)}
    with pytest.raises(DataError, match=f"{what} are a single number"):
        Labelled(**given, classes=("a", "b"))


def test_inputs_that_are_complex_are_refused() -> None:
    with pytest.raises(DataError, match=r"inputs are torch.complex64.*view_as_real"):
        Labelled(torch.zeros(2, 1, dtype=torch.complex64), torch.tensor([0, 1]), ("a", "b"))


@pytest.mark.parametrize("classes", [["a", "b"], np.array(["a", "b"])])
def test_classes_may_be_a_list_or_an_array_and_are_the_same_data(classes: Any) -> None:
    plain, other = (Labelled(torch.zeros(2, 1), torch.tensor([0, 1]), names) for names in (("a", "b"), classes))
    assert other.classes == ("a", "b")
    assert other.fingerprint == plain.fingerprint
    assert list(Splits("pets", {"train": plain, "test": other})) == ["train", "test"]


@pytest.mark.parametrize("classes", ["ab", None, 2])
def test_classes_that_are_no_names_are_refused(classes: Any) -> None:
    with pytest.raises(UsageError, match=r"classes are .*: give the name of each class"):
        Labelled(torch.zeros(2, 1), torch.tensor([0, 1]), classes)


@pytest.mark.parametrize(
    ("attribute", "message"),
    [
        ([0, 1], "attribute 'place' is a list: give torch.as_tensor"),
        (np.array([0, 1]), "attribute 'place' is a ndarray: give torch.as_tensor"),
        (torch.tensor([0.2, 0.7]), r"attribute 'place' is torch.float32 of shape \(2,\).*Bin measurements"),
        (torch.tensor([[0], [1]]), r"of shape \(2, 1\), expected one whole number per example"),
        (torch.tensor(1), r"of shape \(\), expected one whole number per example"),
    ],
)
def test_attributes_that_are_no_whole_numbers_are_refused(attribute: Any, message: str) -> None:
    with pytest.raises((DataError, UsageError), match=message):
        Labelled(torch.zeros(2, 1), torch.tensor([0, 1]), ("a", "b"), attributes={"place": attribute})
