"""Indices with repeats."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from evenly.errors import UsageError
from evenly.resampling.multiset import copies, expand, repeats

HARD = torch.tensor([True, False, True, False])


def test_factor_two_is_the_original_plus_one_copy() -> None:
    assert repeats(HARD, factor=2).tolist() == [2, 1, 2, 1]
    assert expand(repeats(HARD)).tolist() == [0, 1, 2, 3, 0, 2]
    assert expand(repeats(HARD, factor=1)).tolist() == [0, 1, 2, 3]


@given(st.lists(st.integers(1, 5), min_size=1, max_size=30))
def test_counting_a_multiset_gives_back_the_repeats(factors: list[int]) -> None:
    index = expand(factors)
    assert index.bincount(minlength=len(factors)).tolist() == factors
    assert len(index) == sum(factors)
    assert index[: len(factors)].tolist() == list(range(len(factors)))
    pairs = list(zip(index.tolist(), copies(index).tolist(), strict=True))
    assert sorted(pairs) == [(i, copy) for i, factor in enumerate(factors) for copy in range(factor)]


def test_factors_of_every_example_are_taken_as_they_stand() -> None:
    assert repeats(HARD, factor=torch.tensor([1, 3, 1, 1])).tolist() == [1, 3, 1, 1]
    assert repeats(HARD, factor=np.array([1, 3, 1, 1])).tolist() == [1, 3, 1, 1]
    for three in (torch.tensor(3), np.int64(3), np.array(3), 3.0):
        assert repeats(HARD, factor=three).tolist() == [3, 1, 3, 1]
    assert repeats(HARD, factor=torch.tensor([1.0, 3.0, 1.0, 1.0])).tolist() == [1, 3, 1, 1]


def test_some_can_be_kept_at_one_copy() -> None:
    for once in ([0], torch.tensor([0]), torch.tensor([True, False, False, False])):
        assert repeats(HARD, once=once).tolist() == [1, 1, 2, 1]
    assert repeats(HARD, factor=[4, 4, 4, 4], once=[1]).tolist() == [4, 1, 4, 4]
    assert repeats(HARD, once=torch.empty(0, dtype=torch.int64)).tolist() == [2, 1, 2, 1]


def test_factors_given_are_not_written_to() -> None:
    factors = torch.tensor([4, 4, 4, 4])
    repeats(HARD, factor=factors, once=[1])
    assert factors.tolist() == [4, 4, 4, 4]


@pytest.mark.parametrize("factor", [0, -1, 0.5, 1.5, float("nan"), float("inf"), True, "2", None])
def test_a_factor_that_is_no_whole_number_of_at_least_one_is_refused(factor: object) -> None:
    with pytest.raises(UsageError, match="factor"):
        repeats(HARD, factor=factor)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"factor": [1, 0, 1, 1]}, "factor 0 of example 1.*Nothing is ever left out"),
        ({"factor": torch.tensor([1, 1, 1.5, 1])}, "factor 1.5 of example 2"),
        ({"factor": [2, 2]}, "2 factors for 4 examples"),
        ({"once": [4]}, "positions run from 0 to 3"),
        ({"once": torch.tensor([True])}, "1 booleans for 4 examples"),
    ],
)
def test_bad_factors_are_named(arguments: dict, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        repeats(HARD, **arguments)


@pytest.mark.parametrize("once", [[0.7], torch.zeros(3, 1, dtype=torch.bool), torch.zeros(2, 2).long(), 1, "a", ["a"]])
def test_examples_shown_once_are_not_guessed_from_other_values(once: object) -> None:
    with pytest.raises(UsageError, match="once"):
        repeats(torch.tensor([True, False, True]), once=once)
