"""Perturbation groups of a recipe."""

import pytest

from evenly.errors import UsageError
from evenly.recipe import Ascent, Data, Recipe
from evenly.training.build import _check_groups, build_parts, load_data
from evenly.training.distributed import World


@pytest.mark.parametrize(("m", "size"), [(32, 2), (16, 2), (8, 2), (32, 1)])
def test_a_group_may_be_a_process_s_share_or_all_of_the_batch(m: int, size: int) -> None:
    recipe = Recipe(ascent=Ascent("sam", 0.1, {"m": m}), batch_size=32)
    _check_groups(recipe, 64, World(size=size))
    with pytest.raises(UsageError, match="drop_last"):
        _check_groups(recipe, 65, World(size=size))


def test_a_group_of_nothing_is_a_usage_error() -> None:
    recipe = Recipe(data=Data("parity", {"dim": 5}), ascent=Ascent("sam", 0.1, {"m": 0}), batch_size=50)
    with pytest.raises(UsageError, match="m=0 is not a number of examples"):
        build_parts(recipe, world=World(), splits=load_data(recipe))
