"""The demo's toy story: what is starved, found and fed is so in every seed, and the curves are the networks' own."""

import json
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from evenly.data import load
from evenly.demo.toy import Toy, toy_story
from evenly.diagnostics.alignment import alignment
from evenly.models import build

SMALL = Toy(seeds=3, num_train=1000, iterations=300, every=50)


@pytest.fixture(scope="module")
def story() -> dict[str, Any]:
    return toy_story(SMALL)


def end(story: dict[str, Any], method: str, feature: str) -> torch.Tensor:
    return torch.tensor(story["alignment"][method][feature][-1])


def test_the_separation_finds_exactly_the_examples_without_the_easy_patch(story: dict[str, Any]) -> None:
    for row in story["separations"]:
        assert row["precision"] == row["recall"] == 1
        assert 50 < row["hard"] == row["lacking"] < 150  # a tenth of a thousand, by chance


def test_gradient_descent_leans_on_the_easy_feature(story: dict[str, Any]) -> None:
    assert (end(story, "plain", "easy") > end(story, "plain", "hard")).sum() >= 2
    assert end(story, "plain", "easy").median() > 4 * end(story, "plain", "hard").median()


def test_useful_feeds_the_difficult_feature_in_every_seed_and_random_upsampling_does_not(story: dict[str, Any]) -> None:
    plain, useful, chance = (end(story, method, "hard") for method in ("plain", "useful", "random"))
    assert (useful > plain + 0.05).all()
    assert (useful > chance + 0.05).all()
    assert (chance - plain).mean() < 0.02


def test_curves_begin_with_the_same_weights_and_have_a_value_for_every_seed(story: dict[str, Any]) -> None:
    assert story["steps"] == [0, 50, 100, 150, 200, 250, 300]
    for feature in ("easy", "hard"):
        curves = [story["alignment"][method][feature] for method in ("plain", "sam", "useful", "random")]
        assert all(len(curve) == 7 and all(len(row) == 3 for row in curve) for curve in curves)
        assert all(curve[0] == curves[0][0] for curve in curves)


def test_the_plain_and_the_sam_curve_are_those_of_networks_trained_one_by_one(story: dict[str, Any]) -> None:
    data = load("patches", seed=1, num_train=1000, beta_hard=0.4).train
    for method, rho in (("plain", 0.0), ("sam", 0.02)):
        model = build("cubic", input_shape=data.shape, num_classes=2, rng=1)
        parameters = list(model.parameters())
        for _ in range(50):
            gradient = torch.autograd.grad(F.cross_entropy(model(data.inputs), data.labels), parameters)
            if rho:
                norm = torch.sqrt(sum((g**2).sum() for g in gradient))
                before = [p.detach().clone() for p in parameters]
                with torch.no_grad():
                    for p, g in zip(parameters, gradient, strict=True):
                        p += rho * g / norm
                gradient = torch.autograd.grad(F.cross_entropy(model(data.inputs), data.labels), parameters)
                with torch.no_grad():
                    for p, w in zip(parameters, before, strict=True):
                        p.copy_(w)
            with torch.no_grad():
                for p, g in zip(parameters, gradient, strict=True):
                    p -= 0.2 * g
        found = alignment(model.filters.weight, planted=data.planted)
        for feature in ("easy", "hard"):
            curve = story["alignment"][method][feature]
            assert curve[1][1] == pytest.approx(found[feature].largest, abs=2e-5)


def test_examples_show_the_features_on_their_first_two_axes(story: dict[str, Any]) -> None:
    assert {(e["label"], e["hard"]) for e in story["examples"]} == {(y, h) for y in ("-1", "+1") for h in (0, 1)}
    for example in story["examples"]:
        patches, sign = torch.tensor(example["patches"]), int(example["label"])
        easy = ((patches[:, 0] - sign).abs() < 1e-4).sum()
        difficult = ((patches[:, 1] - 0.4 * sign).abs() < 1e-4).sum()
        assert difficult == 1
        assert easy == (0 if example["lacking"] else 1)
        assert example["lacking"] == example["hard"]


def test_the_story_is_plain_and_the_same_every_time(story: dict[str, Any]) -> None:
    assert json.loads(json.dumps(story, allow_nan=False)) == story
    short = Toy(seeds=1, num_train=200, iterations=61, separate_at=60, every=60)
    first = toy_story(short)
    assert first == toy_story(short)
    assert first["steps"] == [0, 60, 61]
