"""Data of another kind than is taken are refused in words that say what to give."""

from pathlib import Path

import numpy as np
import pytest
import torch

import evenly
from evenly.data import Labelled
from evenly.errors import UsageError


@pytest.mark.parametrize("what", ["inputs", "labels"])
def test_arrays_of_numpy_are_named_with_the_call_that_makes_tensors_of_them(what: str) -> None:
    given = {"inputs": torch.zeros(4, 2), "labels": torch.arange(4) % 2}
    given[what] = np.asarray(given[what])  # type: ignore[assignment]  # which is what is tested
    with pytest.raises(UsageError, match=rf"{what} are a ndarray: give torch.as_tensor\({what}\)"):
        Labelled(**given, classes=("a", "b"))


def test_an_empty_word_is_not_the_present_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="there is no data set ''"):
        evenly.load("")


def test_a_seed_in_place_of_a_generator_is_refused() -> None:
    data = (torch.zeros(4, 2), torch.arange(4) % 2)
    with pytest.raises(UsageError, match=r"rng = 0 is no generator: give rng=torch.Generator"):
        evenly.measure(torch.nn.Linear(2, 2), data, "rank", rng=0)  # type: ignore[arg-type]  # which is what is tested
