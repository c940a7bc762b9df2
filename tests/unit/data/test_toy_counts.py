"""Toy data of fewer examples than none are refused."""

import pytest

from evenly.data import load
from evenly.errors import UsageError


@pytest.mark.parametrize("name", ["patches", "spirals", "parity"])
@pytest.mark.parametrize("option", ["num_train", "num_test"])
def test_a_number_of_examples_below_0_is_refused_by_name(name: str, option: str) -> None:
    with pytest.raises(UsageError, match=f"{option} = -5 is a number of examples: give 0 or more"):
        load(name, **{option: -5})
