"""USEFUL on the toy, forgetting, and comparisons that share runs: against plain counts and explicit copies."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from evenly.data import load
from evenly.papers.experiment import Context
from evenly.papers.nguyen2024 import clusters
from evenly.papers.nguyen2024.dynamics import network
from evenly.papers.nguyen2024.forgetting import counted, forgotten
from evenly.papers.nguyen2024.several import in_turn

RECIPE: dict[str, Any] = {
    "data": {"name": "digits"},
    "model": {"name": "mlp", "options": {"width": 16}},
    "optimizer": {"lr": 0.1},
    "epochs": 4,
    "batch_size": 256,
}
EARLY = {"rule": "epoch", "value": 1}


@pytest.fixture(scope="module")
def toy() -> Any:
    here = Context(Path("unused"))
    settings = {"beta_hard": 0.4, "num": 400, "iterations": 250, "every": 50, "lr": 0.3}
    return clusters.upsampled(here, seeds=[0, 1], name="b", **settings).values


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


def test_forgetting_is_counted_as_a_plain_loop_does() -> None:
    stream = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (40,), generator=stream)
    predictions = [torch.randint(3, (40,), generator=stream) for _ in range(7)]
    expected = []
    for i, label in enumerate(labels.tolist()):
        right = [int(each[i]) == label for each in predictions]
        expected.append(sum(a and not b for a, b in itertools.pairwise(right)))
    assert counted(predictions, labels).tolist() == expected
    assert sum(expected) > 0


def test_scores_of_a_run_are_percentages_of_all_examples(tmp_path: Path) -> None:
    recorded = RECIPE | {"record_examples": True, "evaluate_every": 1, "epochs": 6}
    context = Context(tmp_path)
    found = forgotten(context, recipe=recorded, seed=0, name="sgd", controls=["original"], until=EARLY)
    for method in ("original", "useful"):
        counts = found.series["forgotten"][method]
        assert sum(counts) == pytest.approx(100)
        assert found.values[f"sgd.{method}.often"][0] == pytest.approx(sum(counts[2:]))
        assert found.values[f"sgd.{method}.seldom"][0] == pytest.approx(sum(counts[:2]))


def test_comparisons_in_turn_share_their_runs(tmp_path: Path) -> None:
    common = {"recipe": RECIPE, "seed": 0, "until": EARLY}
    both = [
        {**common, "name": "two", "controls": ["original"], "factor": 2},
        {**common, "name": "three", "controls": [], "factor": 3},
    ]
    found = in_turn(Context(tmp_path), comparisons=both)
    assert found.series["two"]["runs"]["early"] == found.series["three"]["runs"]["early"]
    assert found.series["two"]["runs"]["useful"] != found.series["three"]["runs"]["useful"]
    assert {"two.original.error", "two.useful.error", "three.useful.error"} <= set(found.values)
    assert len([path for path in tmp_path.iterdir() if (path / "recipe.yaml").is_file()]) == 4
