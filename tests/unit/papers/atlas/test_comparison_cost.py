"""The cost that advice shows is the cost that a comparison has."""

from pathlib import Path

import pytest

from evenly.papers.atlas.comparison_cost import changes_something, relative_cost, training_cost
from evenly.papers.atlas.early_run import look
from evenly.recipe import Ascent, Data, Recipe, Until
from evenly.training.build import load_data
from evenly.training.comparison import Design, compare
from evenly.training.methods import parse

METHODS = (
    "plain",
    "useful:8",
    "useful:4+right",
    "useful:4+continue",
    "steps:8",
    "jtt",
    "balance:8",
    "reweight:8",
    "sam:0.1",
)


def test_the_costs_are_those_of_a_comparison(tmp_path: Path) -> None:
    recipe = Recipe(data=Data("digit-dominoes", {"size": 150}), epochs=8, batch_size=10)
    data = load_data(recipe)
    early = look(recipe, data, runs=tmp_path, device="cpu").early
    made = compare(Design(recipe, METHODS, (0,), until=Until("epoch", early.epoch)), runs=tmp_path, device="cpu")
    for method in made["methods"]:
        cost = relative_cost(parse(method["name"]), recipe, early)
        assert cost == pytest.approx(method["cost"], abs=0.13), method["name"]  # a whole number of epochs, of eight
    total = sum(row["gradients"] for method in made["methods"] for row in method["runs"].values())
    plain = made["methods"][0]["runs"]["0"]["gradients"]
    assert sum(training_cost(parse(name), recipe, early) for name in METHODS) == pytest.approx(total / plain, abs=0.2)


def test_a_method_that_the_recipe_has_already_changes_nothing() -> None:
    recipe = Recipe(ascent=Ascent("sam", 0.1))
    assert not changes_something(parse("sam:0.1"), recipe)
    assert changes_something(parse("sam:0.2"), recipe)
    assert changes_something(parse("useful:8"), recipe)
