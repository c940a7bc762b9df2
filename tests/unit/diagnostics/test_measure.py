"""The one call for all instruments: names, independence of each other, and what it refuses."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from evenly.curvature import hessian, per_example_gradients
from evenly.data import Labelled, load
from evenly.diagnostics import importance, measure, sharpness
from evenly.diagnostics.measure import function_of
from evenly.diagnostics.measurement_data import even_part
from evenly.errors import DataError, UsageError
from evenly.measurements import MEASUREMENTS


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
    part = even_part(data, 35, generator())
    assert torch.bincount(part.labels).tolist() == [15, 15, 5]
    assert part.index.tolist() == sorted(part.index.tolist())
    assert even_part(data, 100, generator()) is data


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


def test_data_of_any_promised_kind_give_the_same_numbers() -> None:
    whole = load("spirals", num_train=40, num_test=20).train
    x, y = whole.gather(range(40)), whole.labels
    loader = DataLoader(TensorDataset(x, y), batch_size=16)
    kinds = (whole, (x, y), [x, y], loader, [(x[:3], y[:3]), (x[3:], y[3:], "more")], ((a, b) for a, b in loader))
    first, *others = (measure(network(), data, "sharpness", "rise", "rank", rng=generator()) for data in kinds)
    assert all(found == first for found in others)


def test_one_output_tells_two_classes_apart() -> None:
    model = nn.Linear(4, 1)
    x = torch.randn(8, 4, generator=generator())
    assert measure(model, (x, torch.arange(8) % 2), "sharpness", rng=generator())["lambda_max"] > 0
    with pytest.raises(DataError, match="label 2 of example 2"):
        measure(model, (x, torch.arange(8) % 3), "sharpness", rng=generator())


X, Y = torch.ones(8, 4), torch.arange(8) % 2


@pytest.mark.parametrize(
    ("data", "error", "said"),
    [
        ((X, Y.float()), DataError, "labels are torch.float32 of shape .* labels.long()"),
        ((X, Y + 1), DataError, "label 2 of example 1 is out of range .* 0 to 1"),
        ((X, Y - 1), DataError, "label -1 of example 0"),
        ((X[:0], Y[:0]), DataError, "no examples"),
        ((X, Y[:5]), DataError, "inputs 8, labels 5"),
        ([], DataError, "no batches"),
        (X, UsageError, "without labels"),
        ([X, X, X], UsageError, "without labels"),
        ([{"x": X}], UsageError, "a batch is a dict"),
        ([(X, Y), (X[:, :3], Y)], DataError, "do not fit together"),
        (3, UsageError, "cannot read examples from a int"),
        ((X[:, :3], Y), UsageError, r"cannot take examples of shape \(3,\) .*'0.weight', has shape \(8, 4\)"),
        (Labelled(X[:, :3], Y, ("a", "b")), UsageError, r"cannot take examples of shape \(3,\)"),
        (Labelled(X, Y + 1, ("a", "b", "c")), DataError, "label 2 of example 1"),
    ],
)
def test_data_that_do_not_fit_are_refused_by_what_is_wrong(data: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        measure(network(), data, "sharpness", rng=generator())


def test_the_trace_is_known_to_a_tenth_and_within_its_error() -> None:
    rng = generator()
    model = nn.Sequential(nn.Linear(4, 30), nn.Tanh(), nn.Linear(30, 2)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.5 * torch.randn(p.shape, generator=rng))
    data = load("spirals", num_train=100, num_test=20).train
    exact = float(hessian(model, data).dense().trace())
    for seed in range(5):
        found = measure(model, data, "sharpness", rng=generator(seed))
        assert found["trace_error"] <= 0.1 * abs(found["trace"])
        assert abs(found["trace"] - exact) <= 4 * found["trace_error"] + 1e-9
    small = measure(nn.Linear(4, 2), data, "sharpness", rng=generator())
    assert small["trace_error"] == 0  # fewer parameters than steps: nothing is left to estimate
    assert measure(model, data, "sharpness", rng=rng, options={"sharpness": {"trace_probes": 0}})["trace"] is None


def test_every_measurement_is_in_the_help_and_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    """One line in `evenly.measurements` is enough for Python, the command line and the page."""
    from evenly.cli import main

    with contextlib.suppress(SystemExit):
        main(["measure", "--help"])
    shown = capsys.readouterr().out
    document = (Path(__file__).parents[3] / "docs" / "instruments.md").read_text()
    for name, entry in MEASUREMENTS.items():
        assert name in shown
        assert entry.help.split()[0] in shown
        assert f"`{name}`" in document
        assert callable(function_of(name))


def test_a_seed_in_place_of_a_generator_is_refused() -> None:
    data = (torch.zeros(4, 2), torch.arange(4) % 2)
    with pytest.raises(UsageError, match=r"rng = 0 is not a generator: give rng=torch.Generator"):
        measure(torch.nn.Linear(2, 2), data, "rank", rng=0)  # type: ignore[arg-type]  # which is what is tested


def test_a_model_that_returns_a_tuple_is_told_so() -> None:
    class Pair(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(2, 3)

        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.linear(x), x

    with pytest.raises(UsageError, match=r"Pair returns a tuple, not a tensor: wrap it"):
        measure(Pair(), (torch.randn(9, 2), torch.arange(9) % 3), "sharpness", rng=generator())


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32], ids=str)
def test_class_numbers_may_be_integers_of_any_size(dtype: torch.dtype) -> None:
    x, y = torch.randn(20, 2, generator=generator()), torch.arange(20) % 3
    model = nn.Linear(2, 3)
    for loss in (None, "squared"):
        found = [sharpness(model, (x, each), rng=generator(), loss=loss).lambda_max for each in (y, y.to(dtype))]
        assert found[0] == found[1]
        ginis = [importance(model, (x, each), rho=0.1, loss=loss).phantom_gini for each in (y, y.to(dtype))]
        assert ginis[0] == ginis[1]


def test_a_loss_without_labels_is_refused_by_gradients_too() -> None:
    with pytest.raises(UsageError, match="gradients of a loss need labels"):
        per_example_gradients(nn.Linear(2, 1), torch.ones(2, 2), loss="squared")


def test_an_unknown_layer_or_option_is_answered_with_the_known_ones():
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    data, rng = load("spirals"), torch.Generator().manual_seed(0)
    with pytest.raises(UsageError, match=r"there is no layer 'nope'. Known: 0, 1, 2\."):
        measure(model, data, "sharpness", rng=rng, layer="nope")
    with pytest.raises(UsageError, match=r"sharpness has no option 'tools'. Did you mean 'tol'"):
        measure(model, data, "sharpness", rng=rng, options={"sharpness": {"tools": 1}})
