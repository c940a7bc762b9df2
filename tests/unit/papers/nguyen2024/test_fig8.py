"""Figure 8: forgetting scores against a plain count."""

import itertools
from pathlib import Path
from typing import Any

import pytest
import torch

from evenly.papers.experiment import Context
from evenly.papers.nguyen2024.fig8 import count_forgotten, forgetting_scores

RECIPE: dict[str, Any] = {
    "data": {"name": "digits"},
    "model": {"name": "mlp", "options": {"width": 16}},
    "optimizer": {"lr": 0.1},
    "epochs": 4,
    "batch_size": 256,
}
EARLY = {"rule": "epoch", "value": 1}


def test_forgetting_is_counted_as_a_plain_loop_does() -> None:
    stream = torch.Generator().manual_seed(0)
    labels = torch.randint(3, (40,), generator=stream)
    predictions = [torch.randint(3, (40,), generator=stream) for _ in range(7)]
    expected = []
    for i, label in enumerate(labels.tolist()):
        right = [int(each[i]) == label for each in predictions]
        expected.append(sum(a and not b for a, b in itertools.pairwise(right)))
    assert count_forgotten(predictions, labels).tolist() == expected
    assert sum(expected) > 0


def test_scores_of_a_run_are_percentages_of_all_examples(tmp_path: Path) -> None:
    recorded = RECIPE | {"record_examples": True, "evaluate_every": 1, "epochs": 6}
    context = Context(tmp_path)
    found = forgetting_scores(context, recipe=recorded, seed=0, name="sgd", controls=["original"], until=EARLY)
    for method in ("original", "useful"):
        counts = found.series["forgotten"][method]
        assert sum(counts) == pytest.approx(100)
        assert found.values[f"sgd.{method}.often"][0] == pytest.approx(sum(counts[2:]))
        assert found.values[f"sgd.{method}.seldom"][0] == pytest.approx(sum(counts[:2]))
