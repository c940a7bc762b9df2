"""Probes against scikit-learn's own pipeline, planted answers, and the refusals."""

import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import Tensor, nn

from evenly.data import Labelled, load
from evenly.diagnostics import features, fit_probe, probing_error, probing_errors
from evenly.diagnostics.probe import _best_fit, wilson
from evenly.errors import DataError, UsageError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def planted(num: int, dim: int = 8, noise: float = 1.0, seed: int = 0, values: int = 2) -> tuple[Tensor, Tensor]:
    """Targets whose features lie around different points; columns of very different scales."""
    rng = generator(seed)
    y = torch.arange(num) % values
    centres = torch.randn(values, dim, generator=generator(99))
    x = centres[y] + noise * torch.randn(num, dim, generator=rng)
    return (x * torch.logspace(-3, 3, dim)).double(), y


@pytest.mark.parametrize("values", [2, 3])
def test_one_strength_and_all_examples_give_scikit_learns_own_error(values: int) -> None:
    (x, y), (tx, ty) = planted(600, values=values), planted(500, seed=1, values=values)
    found = fit_probe(x, y, test_features=tx, test_targets=ty, rng=generator(), strengths=(0.01,), refits=4)
    fits = make_pipeline(StandardScaler(), LogisticRegression(C=1 / (0.01 * len(x)), max_iter=1000)).fit(
        x.numpy(), y.numpy()
    )
    theirs = float((fits.predict(tx.numpy()) != ty.numpy()).mean())
    assert found.error == pytest.approx(theirs, abs=0.02)
    agree = found.contribution(tx).numpy()
    answers = (agree > 0).astype(int) if values == 2 else agree.argmax(1)
    assert (answers == fits.predict(tx.numpy())).mean() > 0.97
    assert found.interval[0] < found.error < found.interval[1]
    assert len(found.errors) == len(found.strengths) == 4


def test_the_error_approaches_the_bayes_error_of_two_gaussians() -> None:
    rng = generator(1)
    y = torch.arange(4000) % 2
    x = torch.randn(4000, 1, generator=rng) + 2.0 * y[:, None]
    found = fit_probe(x[:2000], y[:2000], test_features=x[2000:], test_targets=y[2000:], rng=rng)
    assert found.error == pytest.approx(0.5 * math.erfc(1 / math.sqrt(2)), abs=0.025)  # Φ(−1)


def test_regularisation_is_chosen_by_what_was_held_out() -> None:
    rng = generator(2)
    y = (torch.arange(300) % 2).numpy()
    x = torch.randn(300, 60, generator=rng).double().numpy()
    x[:, 0] += 1.5 * y
    strengths = (1.0, 0.1, 0.01, 0.001)
    best, chosen = _best_fit(x[:100], y[:100], x[100:], y[100:], strengths)
    errors = {}
    for strength in strengths:
        fits = LogisticRegression(C=1 / (strength * 100), max_iter=5000, tol=1e-8).fit(x[:100], y[:100])
        errors[strength] = float((fits.predict(x[100:]) != y[100:]).mean())
    assert chosen == min(errors, key=errors.__getitem__)
    assert max(errors.values()) > min(errors.values()) + 0.02  # there was something to choose
    assert float((best.predict(x[100:]) != y[100:]).mean()) == pytest.approx(errors[chosen], abs=0.01)


def test_the_same_generator_gives_the_same_probe_and_the_global_one_is_not_used() -> None:
    (x, y), (tx, ty) = planted(100, noise=4.0), planted(100, noise=4.0, seed=1)
    state = torch.get_rng_state(), np.random.get_state()[1].copy()
    a, b = (fit_probe(x, y, test_features=tx, test_targets=ty, rng=generator(3)) for _ in range(2))
    assert a.errors == b.errors
    assert torch.equal(torch.get_rng_state(), state[0])
    assert (np.random.get_state()[1] == state[1]).all()


def test_groups_are_drawn_and_counted_evenly() -> None:
    # The attribute follows a tag in 95 % of the examples; only the tag is visible in the features.
    rng = generator(4)
    tag = torch.randint(2, (4000,), generator=rng)
    target = torch.where(torch.rand(4000, generator=rng) < 0.95, tag, 1 - tag)
    x = (2.0 * tag[:, None] - 1) + 0.1 * torch.randn(4000, 2, generator=rng)
    halves = {"test_features": x[2000:], "test_targets": target[2000:], "rng": rng, "refits": 3}
    groups = 2 * target + tag
    # Equally many of each group are fitted: the rarest has about fifty.
    assert fit_probe(x[:2000], target[:2000], groups=groups[:2000], **halves).num_fit < 0.75 * 4 * 70
    leaky = fit_probe(x[:2000], target[:2000], **halves)
    fair = fit_probe(x[:2000], target[:2000], groups=groups[:2000], test_groups=groups[2000:], **halves)
    assert leaky.error < 0.07
    assert fair.error == pytest.approx(0.5, abs=0.08)


def test_wilsons_interval_holds_its_promise() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(2000):
        low, high = wilson(rng.binomial(50, 0.1) / 50, 50)
        inside += low <= 0.1 <= high
    assert 0.93 < inside / 2000 < 0.98
    assert wilson(0.0, 100)[0] == 0.0
    assert wilson(0.0, 100)[1] == pytest.approx(0.0370, abs=1e-4)


class Keeps(nn.Module):
    """A body that keeps the easy half of spirals and drops the hard one."""

    def __init__(self) -> None:
        super().__init__()
        self.head = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(x[:, :2])


def test_a_network_that_drops_the_hard_feature_has_a_hard_probing_error_of_one_half() -> None:
    found = probing_errors(Keeps(), load("spirals", num_train=10, num_test=1000), rng=generator(), refits=2)
    assert found["easy"].error < 0.02
    assert found["hard"].error == pytest.approx(0.5, abs=0.07)


def test_features_are_what_the_layer_receives_for_every_chunk() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Dropout(0.5), nn.Linear(8, 3))
    x = torch.randn(7, 1, 4, 4, generator=generator())
    expected = model[0](x).detach()
    # A convolution of 3 images may add its nine products in another order than one of 7: equal up to rounding.
    torch.testing.assert_close(features(model, x, chunk=3), expected.flatten(1))
    torch.testing.assert_close(features(model, x, layer="0", chunk=3), x.flatten(1))
    assert model.training


class Shared(nn.Module):
    """A layer that is called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.layer(x))


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: features(nn.Sequential(nn.Linear(2, 2)), torch.ones(2, 2), layer="1"), "no layer '1'. Known: 0"),
        (lambda: features(nn.Flatten(), torch.ones(2, 2)), "calls no linear layer.*Name the layer"),
        (lambda: features(Shared(), torch.ones(2, 2)), "called 2 times"),
    ],
)
def test_layers_that_cannot_be_watched_are_refused(call, said: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises((UsageError, DataError), match=said):
        call()


def tagged(labels: list[int], tags: list[int]) -> Labelled:
    return Labelled(torch.randn(len(labels), 3, generator=generator()), torch.tensor(labels), ("a", "b"),
                    {"tag": torch.tensor(tags)})  # fmt: skip


FAIR = tagged([0, 0, 1, 1] * 10, [0, 1, 0, 1] * 10)


@pytest.mark.parametrize(
    ("data", "options", "error", "said"),
    [
        (FAIR, {"attribute": "tga"}, UsageError, "no attribute 'tga'. Did you mean 'tag'"),
        (tagged([0, 1] * 10, [1] * 20), {"attribute": "tag"}, DataError, "'tag' has one value, 1"),
        (
            tagged([0, 1] * 100, [0, 1] * 95 + [1, 0] * 5),
            {"attribute": "tag"},
            DataError,
            "5 to 95 examples. Ask for balance=",
        ),
        (
            tagged([0, 1] * 10, [0, 1] * 10),
            {"attribute": "tag"},
            DataError,
            "combination of tag and label has 0 examples",
        ),
        (FAIR, {"attribute": "tag", "balance": "yes"}, UsageError, "'require', 'subsample' or 'ignore'"),
        (FAIR, {"attribute": "tag", "refits": 0}, UsageError, "refits = 0"),
        (FAIR, {"attribute": "tag", "held_out": 1.0}, UsageError, "held_out = 1.0"),
    ],
)
def test_sets_that_cannot_be_probed_are_refused(
    data: Labelled, options: dict, error: type[Exception], said: str
) -> None:  # type: ignore[type-arg]
    with pytest.raises(error, match=said):
        probing_error(nn.Linear(3, 2), data, test=FAIR, rng=generator(), **options)


def test_an_unbalanced_set_is_taken_when_asked_for() -> None:
    skewed = tagged([0, 1] * 100, [0, 1] * 90 + [1, 0] * 10)
    for balance in ("subsample", "ignore"):
        found = probing_error(
            nn.Linear(3, 2), skewed, test=FAIR, attribute="tag", rng=generator(), balance=balance, refits=1
        )  # type: ignore[arg-type]
        assert 0 <= found.error <= 1
    assert probing_error(nn.Linear(3, 2), FAIR, test=FAIR, attribute="label", rng=generator(), refits=1).num_test == 40


def test_data_without_a_balanced_split_say_what_to_do() -> None:
    with pytest.raises(DataError, match="no 'balanced' split among train, test"):
        probing_errors(nn.Linear(10, 2), load("parity", dim=10), rng=generator(), attributes=["x0"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda x, y: (x * float("nan"), y), "hold NaN or inf"),
        (lambda x, y: (x[:3], y), "one target each"),
        (lambda x, y: (x, torch.zeros_like(y)), "one value, 0"),
        (lambda x, y: (x[:, :2], y), "2 features to fit but 8 to test"),
    ],
)
def test_features_that_cannot_be_fitted_are_refused(change, said: str) -> None:  # type: ignore[no-untyped-def]
    x, y = planted(20)
    with pytest.raises(DataError, match=said):
        fit_probe(*change(x, y), test_features=x, test_targets=y, rng=generator())
