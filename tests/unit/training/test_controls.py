"""Controls have the strength of the cure they control, so that nothing else but the choice of examples differs."""

from pathlib import Path

import pytest

from evenly.papers.atlas.advice import METHODS
from evenly.recipe import Data, Recipe, Until, override
from evenly.records import Run
from evenly.training.comparison import Design, compare
from evenly.training.controls import RIVALS, controls_of, explains
from evenly.training.methods import WORDS, parse


@pytest.mark.parametrize(
    ("cure", "controls"),
    [
        ("useful", ("random", "steps", "batch")),
        ("useful:8", ("random:8", "steps:8", "batch")),
        ("useful:8+noise:0.2", ("random:8+noise:0.2", "steps:8", "batch", "augment-all:noise:0.2")),
        ("useful+noise", ("random+noise", "steps", "batch", "augment-all:noise:0.2")),
        ("useful:8+augment-all:noise:0.4", ("random:8+augment-all:noise:0.4", "steps:8", "batch")),
        ("jtt", ("random:5", "steps:5", "batch")),
        ("sam:0.1+useful:4+continue", ("random-perturbation", "random:4+continue", "steps:4+continue", "batch")),
        ("logit-penalty:0.01", ("label-smoothing",)),
        ("plain", ()),
    ],
)
def test_controls_take_the_factor_and_the_augmentation_of_the_cure(cure: str, controls: tuple[str, ...]) -> None:
    assert controls_of(parse(cure)) == controls


@pytest.mark.parametrize("name", [*METHODS.values(), *(word for word in WORDS if word not in ("noise", "right"))])
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


def test_what_has_an_ingredient_of_its_own_is_no_control() -> None:
    assert not explains(parse("random:8+noise"), parse("useful:8"), Recipe(), factor=2)
    assert not explains(parse("sam+random:8"), parse("useful:8"), Recipe(), factor=2)
    assert explains(parse("sam+random:8"), parse("sam+useful:8"), Recipe(), factor=2)
    assert not explains(parse("sam"), parse("sam+useful:8"), Recipe(), factor=2)


@pytest.mark.parametrize("cure", ["useful:8", "useful:4+right", "useful:4+continue"])
def test_equal_steps_are_the_steps_of_the_cure(cure: str, tmp_path: Path) -> None:
    recipe = Recipe(data=Data("digit-dominoes", {"size": 150}), epochs=8, batch_size=10)
    steps = next(name for name in controls_of(parse(cure)) if name.startswith("steps"))
    design = Design(recipe, ("plain", cure, steps), (0,), until=Until("epoch", 2))
    made = compare(design, runs=tmp_path, device="cpu")
    plain, own, control = (method["runs"]["0"]["gradients"] for method in made["methods"])
    early = Run(tmp_path / made["early"]["0"]["run"]).summary()["gradients"] if "continue" in cure else 0
    assert control == pytest.approx(own + early, abs=plain / recipe.epochs)  # a whole number of epochs
    assert own > 1.05 * (plain - early)
    assert made["methods"][1]["controls"] == [steps]
