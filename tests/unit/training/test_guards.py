"""What is said before examples are repeated: each method is judged by what it repeats itself."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch.nn.functional import one_hot

from evenly.errors import DataError
from evenly.recipe import Data, Model, Optimizer, Recipe, Until
from evenly.training.build import load_data
from evenly.training.design import Design
from evenly.training.early import save_outputs
from evenly.training.guards import cautions
from evenly.training.train import train

Told = Callable[..., list[str]]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> Told:
    """What is said of methods on data with a share of wrong labels, after an epoch of a small perceptron."""
    runs = tmp_path_factory.mktemp("runs")

    def say(*methods: str, noise: float, epoch: int = 4) -> list[str]:
        network = {"model": Model("mlp", {"width": 32}), "optimizer": Optimizer(lr=0.05), "batch_size": 64}
        recipe = Recipe(data=Data("digit-dominoes", {"noise": noise}), epochs=8, **network)  # type: ignore[arg-type]
        design = Design(recipe, ("plain", *methods), (0,), until=Until("epoch", epoch))
        early = train(design.early(0), runs=runs, device="cpu", pace=0)
        return cautions(early, load_data(recipe).train, design.selections, refuse=True)

    return say


def about(word: str, sentences: list[str]) -> int:
    return sum(word in sentence for sentence in sentences)


def test_every_way_of_choosing_examples_is_asked_about_once() -> None:
    def ways(*methods: str) -> list[tuple[str, ...]]:
        return [tuple(each.values()) for each in Design(Recipe(), methods, (0,)).selections]

    useful = ("useful", "all", 8, None)
    assert ways("plain", "useful:8+noise", "useful", "sam+useful") == [useful, ("useful", "all", 2, None)]
    assert ways("plain", "jtt", "random:9") == [("misclassified", "all", 5, None), ("random", "all", 9, None)]
    assert ways("plain", "useful+right", "steps") == [("useful", "right", 2, None), ("random", "all", 1, None)]
    controls = ways("plain", "random:5+like-jtt", "steps:5+like-jtt")
    assert controls == [("random", "all", 5, "misclassified"), ("random", "all", 1, "misclassified")]
    assert ways("plain", "sam") == []


def test_wrong_labels_are_warned_of_where_they_are_repeated(told: Told) -> None:
    assert about("contradict what", told("useful:8", "sam+useful:8", noise=0.2)) == 1
    assert about("contradict what", told("random:8", "steps", "useful:8+right", noise=0.2)) == 0


def test_the_warning_of_wrong_labels_is_about_what_each_method_repeats(told: Told) -> None:
    """3% wrong labels are a small part of the hard clusters, and most of what is predicted wrongly."""
    assert about("contradict what", told("useful:5", noise=0.03, epoch=2)) == 0
    both = told("useful:5", "jtt", "misclassified:6", noise=0.03, epoch=2)
    assert about("showing what is predicted wrongly more than 3 times is likely to harm", both) == 1


def test_balanced_clusters_are_judged_by_how_often_they_show_hard_examples(told: Told) -> None:
    assert about("contradict what", told("balance:8", noise=0.2)) == 1
    assert about("contradict what", told("balance:1+noise", noise=0.2)) == 0


def test_where_wrong_labels_cannot_be_estimated_the_reason_is_said(told: Told) -> None:
    assert about("could not be estimated: the network predicts", told("useful", "jtt", noise=0.45, epoch=1)) == 2
    assert about("could not be estimated", told("random", "steps", "useful+right", noise=0.45, epoch=1)) == 0


def test_what_is_left_out_among_the_right_is_told_once(told: Told) -> None:
    assert about("it will do worse", told("useful+right", "useful:8+right", noise=0.2)) == 1
    assert about("it will do worse", told("useful", noise=0.2)) == 0


def test_a_separation_that_is_refused_says_so_or_leaves_the_others_to_speak(tmp_path: Path) -> None:
    recipe = Recipe(data=Data("parity", {"dim": 6, "num_train": 400}), epochs=2)
    design = Design(recipe, ("plain", "useful", "jtt"), (0,), until=Until("epoch", 1))
    early, data = train(design.early(0), runs=tmp_path, device="cpu", pace=0), load_data(recipe).train
    fitted = 12 * one_hot(data.labels, 2) + torch.randn(400, 2, generator=torch.Generator().manual_seed(0))
    with early:
        save_outputs(early, fitted, data, epoch=1)
    with pytest.raises(DataError, match="the split would be noise"):
        cautions(early, data, design.selections, refuse=True)
    assert about("no longer show", cautions(early, data, design.selections, refuse=False)) == 1
