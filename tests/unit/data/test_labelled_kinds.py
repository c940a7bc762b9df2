"""Labels are class numbers of one kind, whatever they came as; arrays are refused with the call that converts them."""

import numpy as np
import pytest
import torch

from evenly.data import Labelled
from evenly.errors import UsageError
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
