"""What a run's records suggest to try first, and why."""

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from evenly.recipe import Optimizer, Recipe, Until, to_mapping
from evenly.records import Run
from evenly.resampling import separate
from evenly.resampling.distinctness import Distinctness
from evenly.resampling.health import health
from evenly.resampling.separation import Separation, SeparationWarning
from evenly.training.signs import signs_of_run, signs_of_separation


def done(root: Path, errors: list[float], recipe: Recipe | None = None, **summary: Any) -> Run:
    run = Run.create(root, to_mapping(recipe or Recipe(optimizer=Optimizer(lr=0.1, momentum=0.0))), "ab12")
    for epoch, error in enumerate(errors, 1):
        run.log(epoch=epoch, **{"train.error": error})
    run.finish({"epoch": len(errors), "train.error": errors[-1]} | summary)
    return run


FLAT = [0.5, 0.2, 0.11, 0.10, 0.10, 0.10, 0.10, 0.10]
SOUND = {"test.error": 0.12, "test.worst.class": 0.15}


def test_a_run_without_anything_odd_has_no_sign(tmp_path: Path) -> None:
    assert signs_of_run(done(tmp_path, FLAT, **SOUND)) == []


def test_of_a_run_that_learned_nothing_only_that_is_said(tmp_path: Path) -> None:
    told = "learned nothing: the training error ended at 75.0%. Try a lower learning rate than 0.1: --lr 0.01."
    (sign,) = signs_of_run(done(tmp_path, [0.75] * 8, collapsed=told, **{"test.error": 0.75, "test.worst.class": 1.0}))
    assert "learned nothing" in sign.seen
    assert "--lr 0.01" in sign.advice


@pytest.mark.parametrize(
    ("errors", "summary", "seen", "advice"),
    [
        ([0.5, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15, 0.1], SOUND, "still falling", "Train for longer"),
        (FLAT, {}, "No examples were held out", "data.validation=0.2"),
        ([0.3, 0.1, 0.01, 0.0], {"test.error": 0.2, "test.worst.class": 0.25}, "training error is 0.0%", "SAM"),
        (FLAT, {**SOUND, "test.worst.class": 0.4}, "worst class errs at 40.0%", "its labels"),
        (FLAT, {**SOUND, "test.worst.group": 0.6}, "worst group of 'group' errs at 60.0%", "minorities"),
    ],
)
def test_each_sign_says_what_was_seen_and_what_to_try(
    tmp_path: Path, errors: list[float], summary: dict[str, float], seen: str, advice: str
) -> None:
    (sign,) = signs_of_run(done(tmp_path, errors, **summary))
    assert seen in sign.seen
    assert advice in sign.advice


def test_a_minimum_sharper_than_two_over_the_learning_rate_is_a_sign(tmp_path: Path) -> None:
    run = done(tmp_path, FLAT, **SOUND)
    run.write_json("measurements/epoch-0008.json", {"lambda_max": 19.0})
    assert signs_of_run(run) == []
    run.write_json("measurements/epoch-0008.json", {"lambda_max": 21.0})
    (sign,) = signs_of_run(run)
    assert "λ₁ = 21" in sign.seen
    assert "(20)" in sign.seen


def test_of_an_early_run_only_a_moment_that_never_came_is_told(tmp_path: Path) -> None:
    early = Recipe(until=Until("gain"))
    (sign,) = signs_of_run(done(tmp_path / "a", [0.5, 0.4], early, rule_fired=False))
    assert "In 2 epochs the fall in training error did not slow" in sign.seen
    assert signs_of_run(done(tmp_path / "b", [0.5, 0.4], early, rule_fired=True)) == []


def test_outputs_suggest_useful_only_where_there_is_a_group_and_labels_are_looked_at_first() -> None:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(600) % 2
    learned = torch.rand(600, 1, generator=rng) < 0.7
    cloud = torch.randn(600, 2, generator=rng)
    clusters = 0.3 * cloud + 5 * learned * torch.nn.functional.one_hot(labels, 2)
    wrong = labels.clone()
    wrong[learned[:, 0].nonzero()[:40, 0]] ^= 1

    def advice(logits: torch.Tensor, labels: torch.Tensor, agreement: float | None = None) -> list[str]:
        with pytest.warns() if logits is cloud else torch.no_grad():
            separation = separate(logits, labels)
        signs = signs_of_separation(separation, health(separation, logits), agreement=agreement)
        return [sign.advice for sign in signs]

    assert ["has a group" in each for each in advice(clusters, labels)] == [True]
    assert ["has a group" in each for each in advice(clusters, labels, agreement=0.8)] == [True]
    assert ["at random" in each for each in advice(clusters, labels, agreement=0.0)] == [True]
    assert ["repeat noise" in each for each in advice(cloud, labels)] == [True]
    noisy = advice(clusters, wrong)
    assert "repeat wrong labels" in noisy[0]
    assert "USEFUL" not in noisy[0]  # which the next sign may rule out
    assert "may be the wrong labels themselves" in noisy[1]


def test_signs_that_see_no_group_rule_out_what_needs_one() -> None:
    rng = torch.Generator().manual_seed(0)
    labels, cloud = torch.arange(600) % 2, torch.randn(600, 2, generator=rng)
    with pytest.warns():
        separation = separate(cloud, labels)
    (sign,) = signs_of_separation(separation, health(separation, cloud))
    assert "useful" in sign.against
    assert not set(sign.methods) & set(sign.against)


@pytest.mark.parametrize(("clustered", "chance"), [(1, True), (2, True), (3, False), (10, False)])
def test_classes_that_look_clustered_by_chance_are_no_group(clustered: int, chance: bool) -> None:
    """Of ten classes without clusters one looks as if it had them on average: only more than that is a group."""
    labels = torch.arange(400) % 2
    logits = 3.0 * torch.nn.functional.one_hot(labels, 2) + torch.randn(400, 2, generator=torch.Generator())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeparationWarning)
        separation = separate(logits, labels, max_accuracy=1)
    seen = {label: Distinctness(0.5 if label < clustered else 0.3, (0.4,) * 9) for label in range(10)}
    checked = replace(health(separation, logits), distinctness=seen, indistinct=tuple(range(clustered, 10)), noise=None)
    (sign,) = signs_of_separation(separation, checked, agreement=0.6)
    assert ("no more than by chance" in sign.seen) == chance
    assert ("useful" in sign.against) == chance
    assert ("USEFUL has a group to upsample" in sign.advice) != chance


def fitted(*, distinct: bool) -> tuple[Separation, torch.Tensor]:
    """Outputs that predict every label; with `distinct`, those of a third are far less sure."""
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(600) % 2
    less_sure = torch.rand(600, 1, generator=rng) < 0.3
    far = torch.where(less_sure, 1.0, 8.0) if distinct else torch.full((600, 1), 8.0)
    logits = 0.1 * torch.randn(600, 2, generator=rng) + far * torch.nn.functional.one_hot(labels, 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SeparationWarning)
        separation = separate(logits, labels, max_accuracy=1)
    assert separation.accuracy == 1
    assert all(facts.distinct == distinct for facts in separation.distinctness.values())
    return separation, logits


@pytest.mark.parametrize(("distinct", "agreement"), [(False, 0.9), (True, None)])
def test_of_a_network_that_fits_everything_no_group_is_claimed_that_nothing_else_shows(
    distinct: bool, agreement: float | None
) -> None:
    separation, logits = fitted(distinct=distinct)
    first, *others = signs_of_separation(separation, health(separation, logits), agreement=agreement)
    assert "fits 100.00% of the training set" in first.seen
    assert "useful" in first.against
    assert not any("useful" in method for sign in (first, *others) for method in sign.methods)
    assert not any("has a group to upsample" in sign.advice for sign in others)


def test_clusters_of_a_network_that_fits_everything_are_a_group_if_another_network_finds_it_too() -> None:
    separation, logits = fitted(distinct=True)
    first, second = signs_of_separation(separation, health(separation, logits), agreement=0.9)
    assert "fits 100.00% of the training set" in first.seen
    assert "2 of 2 classes still fall into two clusters" in first.seen
    assert "(agreement 0.90)" in first.seen
    assert "has a group to upsample" in second.advice
    assert not any(sign.against for sign in (first, second))


def test_no_group_is_claimed_before_hard_examples_can_be_told_from_those_not_yet_learned() -> None:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(600) % 2
    learned = torch.rand(600, 1, generator=rng) < 0.7
    logits = 0.3 * torch.randn(600, 2, generator=rng) + 5 * learned * torch.nn.functional.one_hot(labels, 2)
    separation = separate(logits, labels)
    checked = health(separation, logits)
    assert ["has a group" in sign.advice for sign in signs_of_separation(separation, checked)] == [True]
    assert signs_of_separation(separation, checked, too_early=True) == []
