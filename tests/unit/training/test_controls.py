"""Controls have the strength of the cure they control, so that nothing else but the choice of examples differs."""

from pathlib import Path

import pytest

from evenly.papers.atlas.advice import METHODS
from evenly.recipe import Data, Recipe, Until, override
from evenly.records import Run
from evenly.training.comparison import Design, compare
from evenly.training.controls import LIKE, RIVALS, controls_of, explains
from evenly.training.method_words import WORDS
from evenly.training.methods import parse


@pytest.mark.parametrize(
    ("cure", "controls"),
    [
        ("useful", ("random", "steps", "batch")),
        ("useful:8", ("random:8", "steps:8", "batch")),
        ("useful:8+noise:0.2", ("random:8+noise:0.2", "steps:8", "batch", "augment-all:noise:0.2")),
        ("useful+noise", ("random+noise", "steps", "batch", "augment-all:noise:0.2")),
        ("useful:8+augment:erase", ("random:8+augment:erase", "steps:8", "batch", "augment-all:erase")),
        ("useful:8+augment-all:noise:0.4", ("random:8+augment-all:noise:0.4", "steps:8", "batch")),
        ("jtt", ("random:5+like-jtt", "steps:5+like-jtt", "batch")),
        (
            "misclassified+noise",
            ("random+like-misclassified+noise", "steps+like-misclassified", "batch", "augment-all:noise:0.2"),
        ),
        ("balance:8+right", ("random:8+like-balance+right", "steps:8+like-balance+right", "batch")),
        ("quantile:4+continue", ("random:4+like-quantile+continue", "steps:4+like-quantile+continue", "batch")),
        ("sam:0.1+useful:4+continue", ("random-perturbation", "random:4+continue", "steps:4+continue", "batch")),
        ("logit-penalty:0.01", ("label-smoothing",)),
        ("plain", ()),
    ],
)
def test_controls_take_the_factor_and_the_augmentation_of_the_cure(cure: str, controls: tuple[str, ...]) -> None:
    assert controls_of(parse(cure)) == controls


@pytest.mark.parametrize(
    "name", [*METHODS.values(), *(word for word in WORDS if word not in ("noise", "augment", "right", *LIKE))]
)
def test_every_control_is_a_method_that_explains_the_cure(name: str) -> None:
    for control in controls_of(parse(name)):
        assert parse(control).recipe(Recipe(), early="c0ffee", share=0.4).epochs >= Recipe().epochs
        assert explains(parse(control), parse(name), Recipe(), factor=2) == (control not in RIVALS), control


def test_the_factor_and_the_augmentation_of_the_comparison_count_as_the_methods_own() -> None:
    useful, eight = parse("useful"), parse("useful:8")
    assert explains(parse("random:8"), useful, Recipe(), factor=8)
    assert explains(parse("steps"), eight, Recipe(), factor=8)
    assert not explains(parse("steps"), eight, Recipe(), factor=2)
    augmented = override(Recipe(), ["resampling.augment=[noise:0.3]"])
    assert explains(parse("augment-all"), useful, augmented, factor=2)
    assert not explains(parse("augment-all:noise:0.1"), useful, augmented, factor=2)
    assert not explains(parse("augment-all"), useful, Recipe(), factor=2)


def test_a_control_that_copies_as_much_as_another_cure_explains_nothing() -> None:
    told = {
        (control, cure): explains(parse(control), parse(cure), Recipe(), factor=2)
        for control in (
            "random:5",
            "steps:5",
            "random:5+like-jtt",
            "steps:5+like-misclassified",
            "random:5+like-balance",
        )
        for cure in ("useful:5", "jtt", "misclassified:5", "balance:5", "upweight:5")
    }
    assert {pair for pair, is_explained in told.items() if is_explained} == {
        *((control, cure) for control in ("random:5", "steps:5") for cure in ("useful:5", "upweight:5")),
        *((f"{control}:5+like-{end}", cure) for control, end in (("random", "jtt"), ("steps", "misclassified"))
          for cure in ("jtt", "misclassified:5")),
        ("random:5+like-balance", "balance:5"),
    }  # fmt: skip


def test_what_has_an_ingredient_of_its_own_is_no_control() -> None:
    erased = parse("useful:8+augment:erase")
    assert explains(parse("augment-all:erase"), erased, Recipe(), factor=2)
    assert explains(parse("random:8+augment:erase"), erased, Recipe(), factor=2)
    assert not explains(parse("augment-all:mirror"), erased, Recipe(), factor=2)
    assert not explains(parse("random:8+augment:mirror"), erased, Recipe(), factor=2)
    assert not explains(parse("random:8+noise"), parse("useful:8"), Recipe(), factor=2)
    assert not explains(parse("sam+random:8"), parse("useful:8"), Recipe(), factor=2)
    assert explains(parse("sam+random:8"), parse("sam+useful:8"), Recipe(), factor=2)
    assert not explains(parse("sam"), parse("sam+useful:8"), Recipe(), factor=2)


CURES = ["useful:8", "useful:4+right", "useful:4+continue", "jtt", "misclassified:3", "quantile:4", "balance:8"]


@pytest.mark.parametrize(
    ("cure", "keep_suspects"),
    [*((cure, True) for cure in CURES), ("useful:8", False), ("balance:6+right", False), ("jtt+continue", False)],
)
def test_controls_show_as_many_examples_and_take_as_many_steps_as_the_cure(
    cure: str, keep_suspects: bool, tmp_path: Path
) -> None:
    recipe = Recipe(data=Data("digit-dominoes", {"size": 150, "noise": 0.1}), epochs=8, batch_size=10, evaluate_every=8)
    random, steps = controls_of(parse(cure))[:2]
    design = Design(recipe, ("plain", cure, random, steps), (0,), until=Until("epoch", 2), keep_suspects=keep_suspects)
    made = compare(design, runs=tmp_path, device="cpu")
    plain, own, drawn, control = (method["runs"]["0"]["gradients"] for method in made["methods"])
    early = Run(tmp_path / made["early"]["0"]["run"]).summary()["gradients"] if "continue" in cure else 0
    assert drawn == own
    assert control == pytest.approx(own + early, abs=plain / recipe.epochs)  # a whole number of epochs
    assert own > 1.05 * (plain - early)
    assert made["methods"][1]["controls"] == [random, steps]
