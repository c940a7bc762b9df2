"""The table of methods: every word makes a recipe that differs from plain training, and words combine."""

import re
from dataclasses import replace

import pytest

from evenly.errors import UsageError
from evenly.recipe import Recipe, Resampling, override
from evenly.training.controls import LIKE
from evenly.training.design import Design
from evenly.training.method_words import WORDS
from evenly.training.methods import parse, parse_all

MODIFIERS = ("noise", "augment", "right", "continue", *LIKE)  # of what another method chooses
ALONE = [word for word in WORDS if word not in ("plain", "steps", *MODIFIERS)]


@pytest.mark.parametrize("word", ALONE)
def test_every_word_makes_a_recipe_of_its_own(word: str) -> None:
    made = parse(word).recipe(Recipe(), early="c0ffee")
    assert made != Recipe()
    assert (made.resampling.early == "c0ffee") == parse(word).resamples
    for control in WORDS[word].controls:
        assert control in WORDS


def test_plain_training_is_the_recipe_without_what_is_for_chosen_examples() -> None:
    augmented = override(Recipe(), ["resampling.augment=[noise:0.3]"])
    assert parse("plain").recipe(augmented) == parse("original").recipe(Recipe()) == Recipe()
    assert parse("useful").recipe(augmented, early="x").resampling.augment == ("noise:0.3",)


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("useful:8", {"method": "useful", "factor": 8}),
        ("jtt", {"method": "misclassified", "factor": 5}),
        ("useful:8+noise:0.4", {"factor": 8, "augment": ("noise:0.4",), "augment_target": "hard"}),
        ("random+noise", {"method": "random", "augment": ("noise:0.2",)}),
        ("useful:8+augment:erase", {"factor": 8, "augment": ("erase",), "augment_target": "hard"}),
        ("jtt+augment:pad-crop:2", {"method": "misclassified", "augment": ("pad-crop:2",)}),
        ("useful+augment", {"augment": ("noise:0.2",), "augment_target": "hard"}),
        ("useful+augment-all", {"augment": ("noise:0.2",), "augment_target": "all"}),
        ("useful:2+right", {"method": "useful", "among": "right"}),
        ("useful:8+continue", {"factor": 8, "start": "early"}),
        ("random:5+like-jtt", {"method": "random", "factor": 5, "like": "misclassified"}),
        ("random:8+like-balance+right", {"method": "random", "like": "balance", "among": "right"}),
    ],
)
def test_words_set_what_they_say_about_resampling(name: str, settings: dict) -> None:
    made = parse(name).recipe(Recipe(), early="c0ffee").resampling
    assert {path: getattr(made, path) for path in settings} == settings


def test_words_set_what_they_say_about_training() -> None:
    assert parse("batch").recipe(Recipe(batch_size=128)).batch_size == 32
    assert parse("batch:16").recipe(Recipe()).batch_size == 16
    assert parse("logit-penalty:0.03").recipe(Recipe()).logit_penalty == 0.03
    assert parse("label-smoothing").recipe(Recipe()).label_smoothing == 0.1
    sam = parse("sam:0.2+batch").recipe(Recipe())
    assert (sam.ascent.rule, sam.ascent.rho, sam.batch_size) == ("sam", 0.2, 32)
    assert parse("lsam").recipe(Recipe()).ascent.rho == 0.05
    assert parse("random-perturbation").recipe(Recipe()).ascent.rule == "random"
    all_of_them = parse("augment-all").recipe(Recipe(augment=("mirror",)))
    assert (all_of_them.augment, all_of_them.resampling) == (("mirror", "noise:0.2"), Resampling())
    assert parse("steps").recipe(Recipe(epochs=30), share=0.4, factor=3).epochs == 54
    assert parse("steps:3").recipe(Recipe(epochs=30), share=0.4, factor=2) == Recipe(epochs=54)
    assert parse("steps:3+right").recipe(Recipe(epochs=30), share=0.2) == Recipe(epochs=42)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("smaal", "there is no method 'smaal'"),
        ("usefull", "Did you mean 'useful'"),
        ("useful+random", "two of its words set resampling.method"),
        ("sam+asam", "two of its words set ascent.rule"),
        ("plain+sam", "Leave `plain` out"),
        ("sam+sam", "use each word only once"),
        ("steps:x", "resampling.factor"),
        ("right:3", "right takes no value"),
        ("noise", "useful\\+noise. For all of them: augment-all"),
        ("useful:x", "resampling.factor"),
        ("useful:", "useful:: give a value after the colon, or write useful"),
        ("steps:", "steps:: give a value after the colon, or write steps"),
        ("steps+noise", "steps chooses none. For all examples: steps\\+augment-all:noise:0.2"),
        ("useful+noise+augment:erase", "two of its words set resampling.augment"),
        ("augment:erase", "useful\\+augment:erase. For all of them: augment-all"),
        ("steps:8+augment:erase", "For all examples: steps:8\\+augment-all:erase"),
        ("steps:8+noise:0.4+sam", "For all examples: steps:8\\+augment-all:noise:0.4\\+sam"),
        ("useful+steps", "Compare the two instead: useful,steps"),
        ("useful:8+steps:8+noise", "Compare the two instead: useful:8\\+noise,steps:8"),
        ("random+steps", "Compare the two instead: random,steps"),
        ("like-jtt", "Write random\\+like-jtt or steps\\+like-jtt"),
        ("useful+like-jtt", "says how many examples `random` copies"),
        ("random+right+like-quantile", "among=right is for clusters, and method=quantile makes none"),
    ],
)
def test_what_cannot_be_meant_is_answered_with_what_can(name: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        parse(name).recipe(Recipe(), early="c0ffee")


@pytest.mark.parametrize("name", ["useful:1", "jtt:1", "reweight:1", "balance:1", "steps:1", "sam+useful:1"])
def test_copies_that_are_none_are_refused(name: str) -> None:
    with pytest.raises(UsageError, match=r"with the factor 1 every example counts once.* as \w+:2\.$"):
        parse(name).recipe(Recipe(), early="c0ffee", share=0.4)


@pytest.mark.parametrize("name", ["useful:1+noise", "useful:1+continue"])
def test_one_copy_is_enough_for_what_else_is_done_to_it(name: str) -> None:
    assert parse(name).recipe(Recipe(), early="c0ffee").resampling.factor == 1


def test_a_method_that_changes_nothing_is_refused() -> None:
    with pytest.raises(UsageError, match="sam changes nothing"):
        parse("sam").recipe(override(Recipe(), ["ascent.rule=sam"]))
    with pytest.raises(UsageError, match="given twice"):
        parse_all(["original", "plain"])


def test_rules_without_clusters_take_no_setting_of_clusters() -> None:
    base = replace(Recipe(), resampling=Resampling(among="right"))
    for name in ("jtt", "random:5+like-jtt"):
        assert parse(name).recipe(base, early="x").resampling.among == "all"
    assert parse("useful").recipe(base, early="x").resampling.among == "right"


@pytest.mark.parametrize("name", ["right", "continue", "sam+right"])
def test_what_is_for_chosen_examples_is_refused_where_nothing_is_chosen(name: str) -> None:
    with pytest.raises(UsageError, match=rf"Write useful\+{name.replace('+', '.')}"):
        parse(name).recipe(Recipe())


def test_a_rule_without_clusters_cannot_take_those_among_the_right() -> None:
    with pytest.raises(UsageError, match="among=right is for clusters"):
        parse("jtt+right").recipe(Recipe(), early="c0ffee")


@pytest.mark.parametrize("remedy", ["steps+augment-all:noise:0.2", "random+like-jtt", "steps+like-jtt"])
def test_what_is_advised_instead_is_accepted(remedy: str) -> None:
    parse(remedy).recipe(Recipe(), early="c0ffee", share=0.4)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("useful", "useful:2"),
        ("sam+useful", "useful+sam"),
        ("jtt", "misclassified:5"),
        ("sam", "sam:0.05"),
        ("batch", "batch:32"),
        ("useful+noise:0.2", "useful+augment:noise:0.2"),
        ("steps", "steps:2"),
        ("random:5+like-jtt", "random:5+like-misclassified"),
        ("steps:5+like-jtt", "steps:5+like-misclassified"),
    ],
)
def test_two_spellings_of_one_method_are_refused_and_both_are_named(one: str, other: str) -> None:
    with pytest.raises(UsageError, match=re.escape(f"{one} and {other} are the same training")):
        Design(Recipe(), ("plain", one, other)).check()


def test_methods_whose_steps_are_known_only_later_are_not_taken_for_one() -> None:
    Design(Recipe(), ("plain", "steps", "steps+right", "steps+continue", "steps+like-jtt", "steps:8")).check()
    Design(Recipe(), ("plain", "useful", "useful:2"), factor=3).check()
