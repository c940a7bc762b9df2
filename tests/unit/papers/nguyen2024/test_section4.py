"""Section 4: USEFUL on the toy against plain counts and explicit copies."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from evenly.data import load
from evenly.papers.experiment import Context
from evenly.papers.nguyen2024.section4 import separation_and_training
from evenly.papers.nguyen2024.two_layer_dynamics import network


@pytest.fixture(scope="module")
def toy() -> Any:
    here = Context(Path("unused"))
    settings = {"beta_hard": 0.4, "num": 400, "iterations": 250, "every": 50, "lr": 0.3}
    return separation_and_training(here, seeds=[0, 1], name="b", **settings).values


def test_clusters_find_the_examples_without_the_easy_patch(toy: Any) -> None:
    for seed in (0, 1):
        assert toy["b.recall"][seed] >= 95
        assert toy["b.precision"][seed] >= 95
        assert toy["b.share"][seed] == pytest.approx(10, abs=5)


def test_useful_trains_on_explicit_copies_of_the_hard_examples(toy: Any) -> None:
    train = load("patches", seed=0, num_train=400, num_test=400, beta_hard=0.4).train
    absent = (train.attributes["easy_present"] == 0).nonzero().flatten()
    order = torch.cat([torch.arange(400), absent])
    x, y = train.gather(order.tolist()), train.labels[order]
    model = network(0, bias=True)
    for _ in range(250):
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.3 * p.grad
    hard = float(model.alignment(train.planted["hard"]).abs().max())
    assert toy["b.useful.hard"][0] == pytest.approx(hard, rel=1e-2)
    assert toy["b.useful.hard"][0] > 1.02 * toy["b.original.hard"][0]
