"""The one call for all instruments: names, independence of each other, and what it refuses."""

import json

import pytest
import torch
from torch import nn

from evenly.data import Labelled, load
from evenly.diagnostics import importance, measure, sharpness
from evenly.diagnostics.measure import INSTRUMENTS, _even_part
from evenly.errors import DataError, UsageError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def network() -> nn.Module:
    rng = generator()
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=rng))
    return model


def test_everything_the_data_allow_is_measured_and_goes_into_json() -> None:
    found = measure(network(), load("spirals", num_train=40, num_test=200), rng=generator())
    names = {
        "lambda_max",
        "lambda_ratio_5",
        "trace",
        "l1",
        "worst_rise",
        "gini",
        "phantom_gini",
        "feature_rank",
        "easy",
        "hard",
    }
    assert names <= set(found)
    assert {"reliance_easy", "hard_interval"} <= set(found)
    assert json.loads(json.dumps(found)) == found


def test_numbers_do_not_depend_on_what_else_is_measured() -> None:
    data = load("spirals", num_train=40, num_test=200)
    alone = measure(network(), data, "probing", rng=generator())
    together = measure(network(), data, "sharpness", "probing", rng=generator())
    assert alone.items() <= together.items()


def test_numbers_are_those_of_the_instruments() -> None:
    data = load("spirals", num_train=40, num_test=20).train
    found = measure(network(), data, "sharpness", "importance", rng=generator(), rho=0.2)
    assert found["lambda_max"] == pytest.approx(sharpness(network(), data, rng=generator(1)).lambda_max, rel=2e-3)
    assert found["phantom_gini"] == importance(network(), data, rho=0.2).phantom_gini


def test_examples_are_taken_evenly_from_the_classes() -> None:
    labels = torch.tensor([0] * 80 + [1] * 15 + [2] * 5)
    data = Labelled(torch.zeros(100, 1), labels, ("a", "b", "c"))
    part = _even_part(data, 35, generator())
    assert torch.bincount(part.labels).tolist() == [15, 15, 5]
    assert part.index.tolist() == sorted(part.index.tolist())
    assert _even_part(data, 100, generator()) is data


@pytest.mark.parametrize(
    ("what", "options", "error", "said"),
    [
        (["sharpnes"], {}, UsageError, "Did you mean 'sharpness'"),
        ([], {"options": {"prob": {}}}, UsageError, "no measurement 'prob'"),
        (["sharpness"], {"examples": 0}, UsageError, "examples = 0"),
        (["probing"], {}, DataError, "no 'balanced' split"),
        (["reliance"], {}, DataError, "no attribute that occurs with every class"),
    ],
)
def test_what_cannot_be_measured_is_refused(what, options: dict, error: type[Exception], said: str) -> None:  # type: ignore[type-arg, no-untyped-def]
    data = Labelled(torch.randn(8, 4, generator=generator()), torch.arange(8) % 2, ("a", "b"))
    with pytest.raises(error, match=said):
        measure(network(), data, *what, rng=generator(), **options)


def test_every_instrument_has_a_word_in_the_docstring() -> None:
    assert measure.__doc__ is not None
    assert all(f"`{name}`" in measure.__doc__ for name in INSTRUMENTS)
