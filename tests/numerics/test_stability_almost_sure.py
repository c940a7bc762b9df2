"""Almost-sure stability: batches listed one by one, exponents from the definition, and what random runs do."""

import itertools
from math import comb, log

import pytest
import torch

from evenly.errors import UsageError
from evenly.stability.almost_sure import almost_sure_threshold, first_zero
from evenly.stability.lyapunov import lyapunov_exponent, lyapunov_spectrum
from evenly.stability.maps import overlapping_set
from evenly.stability.mean_square import mean_square_threshold
from evenly.stability.method import Method
from evenly.stability.outcomes import batch_values
from evenly.stability.problem import Problem
from evenly.stability.sampling import Sampling
from evenly.stability.simulation import simulate

VALUES = torch.tensor([0.0, 1.0, 1.0, 2.5, 0.3], dtype=torch.float64)


def listed(sampling: str, batch: int) -> list[tuple[float, float]]:
    """(value, probability) of every batch of VALUES, unmerged."""
    num = len(VALUES)
    if sampling == "bernoulli":
        p = batch / num
        return [
            (float(VALUES @ torch.tensor(bits).double()) / batch, p ** sum(bits) * (1 - p) ** (num - sum(bits)))
            for bits in itertools.product((0, 1), repeat=num)
        ]
    if sampling == "without":
        return [
            (float(VALUES[list(some)].sum()) / batch, 1 / comb(num, batch))
            for some in itertools.combinations(range(num), batch)
        ]
    return [
        (float(VALUES[list(some)].sum()) / batch, num**-batch) for some in itertools.product(range(num), repeat=batch)
    ]


@pytest.mark.parametrize("batch", [1, 3, 5])
@pytest.mark.parametrize("sampling", ["bernoulli", "without", "with"])
def test_law_of_a_batch_is_that_of_the_listed_batches(sampling: Sampling, batch: int) -> None:
    s, prob = batch_values(VALUES, batch=batch, sampling=sampling)
    assert float(prob.sum()) == pytest.approx(1)
    assert len(set(s.tolist())) == len(s)
    for power in (1, 2, 3):
        moment = sum(p * v**power for v, p in listed(sampling, batch))
        assert float((prob * s**power).sum()) == pytest.approx(moment, rel=1e-12)


@pytest.mark.parametrize("sampling", ["bernoulli", "without", "with"])
def test_exponent_of_a_diagonal_set_is_its_definition(sampling: Sampling) -> None:
    problem = Problem.from_diagonal(VALUES[:, None])
    found = lyapunov_exponent(problem, lr=1.37, batch=2, sampling=sampling)
    expected = sum(p * log(abs(1 - 1.37 * v)) for v, p in listed(sampling, 2))
    assert found.value == pytest.approx(expected, rel=1e-12)
    assert found.standard_error == 0


def test_exponent_of_sam_is_that_of_sgd_on_ascended_curvatures() -> None:
    values = torch.tensor([[2.0, 0.5], [0.0, 1.0]], dtype=torch.float64)
    ascended = values * (1 + 0.3 * values.mean(0))
    assert (
        lyapunov_exponent(Problem.from_diagonal(values), lr=0.9, batch=1, rho_over_alpha=0.3).value
        == lyapunov_exponent(Problem.from_diagonal(ascended), lr=0.9, batch=1).value
    )


def test_first_crossing_is_the_first_on_a_fine_grid() -> None:
    rng = torch.Generator().manual_seed(0)
    for _ in range(20):
        s = torch.rand(6, generator=rng, dtype=torch.float64) * 3
        prob = torch.rand(6, generator=rng, dtype=torch.float64)
        prob /= prob.sum()
        found = first_zero(s, prob)
        grid = torch.linspace(1e-4, 1.2 * found, 200_001, dtype=torch.float64)
        f = ((1 - grid[:, None] * s).abs().log() * prob).sum(1)
        assert (f[grid < found * (1 - 1e-5)] < 0).all()
        assert f[(grid > found * (1 + 1e-5)).nonzero()[0]] >= 0


def test_mean_square_threshold_is_never_above_the_almost_sure_one() -> None:
    rng = torch.Generator().manual_seed(1)
    for _ in range(10):
        values = torch.rand(5, 3, generator=rng, dtype=torch.float64).round(decimals=1)
        values[0] += 0.1
        problem = Problem.from_diagonal(values)
        for batch in (1, 3, 5):
            square = mean_square_threshold(problem, batch=batch)
            sure = almost_sure_threshold(problem, batch=batch).value
            assert square <= sure * (1 + 1e-9)
            if batch == 5:  # no randomness: both are 2/λmax
                assert sure == pytest.approx(2 / problem.lambda_max, rel=1e-9)


@pytest.mark.parametrize("times", [0.9, 1.1])
def test_runs_vanish_below_the_almost_sure_threshold_and_explode_above(times: float) -> None:
    """Also where the mean square has long diverged: that is why figure 1 shows this boundary and not the other."""
    problem = overlapping_set(8, num_examples=20)
    sure = almost_sure_threshold(problem, batch=3).value
    assert mean_square_threshold(problem, batch=3) < 0.9 * sure
    runs = simulate(problem, lr=times * sure, batch=3, rng=torch.Generator().manual_seed(2), steps=2000, repeats=20)
    rates = runs.log_growth_LKT[0, :, 1] / 2000
    assert ((rates > 0) == (times > 1)).all()


def test_runs_grow_at_the_exact_rate_where_one_coordinate_leads() -> None:
    problem = Problem.from_diagonal(VALUES[:, None])
    for lr in (0.9, 2.3):
        runs = simulate(problem, lr=lr, batch=2, rng=torch.Generator().manual_seed(9), steps=1000, repeats=40)
        rates = runs.log_growth_LKT[0, :, 1] / 1000
        exact = lyapunov_exponent(problem, lr=lr, batch=2).value
        assert abs(float(rates.mean()) - exact) < 5 * float(rates.std()) / 40**0.5


def turned(values: torch.Tensor, seed: int) -> Problem:
    dims = values.shape[1]
    rng = torch.Generator().manual_seed(seed)
    turn = torch.linalg.qr(torch.randn(dims, dims, generator=rng, dtype=torch.float64)).Q
    return Problem.from_dense(torch.einsum("pa,na,qa->npq", turn, values, turn))


def test_qr_finds_the_exponents_of_a_diagonal_set_turned_in_space() -> None:
    values = torch.tensor([[2.0, 0.4], [0.0, 0.8], [1.0, 0.6]], dtype=torch.float64)
    found = lyapunov_spectrum(
        turned(values, 3), lr=0.8, batch=2, rng=torch.Generator().manual_seed(4), num=2, steps=1500, replicas=32
    )
    exact = sorted(
        (lyapunov_exponent(Problem.from_diagonal(v[:, None]), lr=0.8, batch=2).value for v in values.T), reverse=True
    )
    for estimate, value in zip(found, exact, strict=True):
        assert abs(estimate.value - value) < 5 * estimate.standard_error
        assert estimate.standard_error < 0.02


def test_exponents_add_up_to_the_mean_logarithm_of_the_determinant() -> None:
    rng = torch.Generator().manual_seed(5)
    a = torch.randn(4, 1, 3, generator=rng, dtype=torch.float64)
    problem = Problem.from_factors(a)
    lr, batch = 0.7, 2
    found = lyapunov_spectrum(problem, lr=lr, batch=batch, rng=rng, num=3, steps=1500, replicas=32)
    h = a.mT @ a
    exact = 0.0
    for bits in itertools.product((0.0, 1.0), repeat=4):
        j = torch.eye(3, dtype=torch.float64) - lr / batch * torch.einsum("n,npq->pq", torch.tensor(bits).double(), h)
        exact += 0.5**4 * float(torch.linalg.slogdet(j).logabsdet)
    total = sum(e.value for e in found)
    assert total == pytest.approx(exact, abs=5 * sum(e.standard_error for e in found))
    assert found[0].value >= found[1].value >= found[2].value


def test_threshold_by_qr_agrees_with_the_exact_one() -> None:
    values = torch.tensor([[2.0, 0.4], [0.0, 0.8], [1.0, 0.6]], dtype=torch.float64)
    exact = almost_sure_threshold(Problem.from_diagonal(values), batch=2).value
    found = almost_sure_threshold(
        turned(values, 6), batch=2, rng=torch.Generator().manual_seed(7), steps=600, replicas=32
    )
    assert abs(found.value - exact) < 5 * found.standard_error + 1e-3 * exact
    assert found.standard_error < 0.05 * exact


@pytest.mark.parametrize("diagonal", [True, False])
def test_batches_of_a_larger_set_are_not_drawn_from_a_part_of_it(diagonal: bool) -> None:
    """The mean-square threshold knows the larger set's noise; a walk over the part would silently have another."""
    values = torch.tensor([[2.0, 0.4], [0.0, 0.8], [1.0, 0.6]], dtype=torch.float64)
    whole = Problem.from_diagonal(values) if diagonal else turned(values, 3)
    part, rng = whole.part_of(50), torch.Generator().manual_seed(0)
    for call in (
        lambda: almost_sure_threshold(part, batch=2, rng=rng),
        lambda: lyapunov_exponent(part, lr=0.1, batch=2, rng=rng),
        lambda: simulate(part, lr=0.1, batch=2, rng=rng),
    ):
        with pytest.raises(UsageError, match=r"3 examples are a part of 50.*sampling='with'"):
            call()
    for problem in (part, whole):
        assert almost_sure_threshold(problem, batch=2, sampling="with", rng=rng, steps=50).value > 0


def test_almost_sure_thresholds_take_every_keyword_of_the_mean_square_ones() -> None:
    values = torch.tensor([[2.0, 0.4], [0.0, 0.8], [1.0, 0.6]], dtype=torch.float64)
    every = Method(
        sampling="without", rho_over_alpha=0.1, ascent="batch", m=None, crossing="exact", momentum=0.5, nesterov=False,
        dampening=0.0, weight_decay=0.1, decoupled=True,
    )  # fmt: skip
    assert set(every) == set(Method.__annotations__)
    rng = torch.Generator().manual_seed(0)
    edge = almost_sure_threshold(turned(values, 3), batch=2, rng=rng, steps=50, **every)
    assert edge.value > 0
