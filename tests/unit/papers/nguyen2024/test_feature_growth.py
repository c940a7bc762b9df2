"""Theorems 3.2 to 3.4: gradients against autograd, bounds against the recursions they bound."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn import functional as F

from evenly.data import load
from evenly.papers.experiment import Context
from evenly.papers.nguyen2024 import feature_growth
from evenly.papers.nguyen2024.feature_growth import (
    Trajectory,
    gradient,
    growth_statistics,
    time_bound,
    with_assumed_alignments,
)
from evenly.papers.nguyen2024.two_layer_dynamics import network

HERE = Context(Path("unused"))


def patches(seed: int = 0, **options: Any) -> Any:
    return load("patches", seed=seed, num_train=80, num_test=2, orthogonal_noise=True, **options).train


def test_the_gradient_of_lemma_a2_is_that_of_autograd() -> None:
    data = patches()
    weight = (0.3 * torch.randn(5, 50, generator=torch.Generator().manual_seed(1))).double().requires_grad_()
    x, y = data.gather(range(80)).double(), 2.0 * data.labels.double() - 1
    loss = F.softplus(-y * ((x @ weight.T) ** 3).sum((1, 2))).mean()
    (expected,) = torch.autograd.grad(loss, weight)
    found, slope = gradient(weight.detach()[None], x.flatten(0, 1)[None], y[None])
    torch.testing.assert_close(found[0], expected)
    torch.testing.assert_close(slope[0], torch.sigmoid(-y * ((x @ weight.detach().T) ** 3).sum((1, 2))))


def test_assumed_weights_hold_what_the_proofs_assume_and_nothing_else_moves() -> None:
    data, rho = patches(), 0.02
    v_e, v_d = (data.planted[name].double() for name in ("easy", "hard"))
    before = network(0, bias=False).double().filters.weight.detach()
    after = with_assumed_alignments(network(0, bias=False).double(), data, rho).filters.weight.detach()
    easy, hard = after @ v_e, after @ v_d
    assert bool((easy >= rho - 1e-6).all())
    assert bool((hard >= rho - 1e-6).all())
    assert float(easy.max() - hard.max()) >= rho - 1e-6
    rest = torch.eye(50).double() - torch.outer(v_e, v_e) - torch.outer(v_d, v_d)
    torch.testing.assert_close(after @ rest, before @ rest, atol=1e-7, rtol=0)


@pytest.mark.parametrize(("z0", "rho", "m", "M"), [(0.02, 0.0, 0.1, 0.1), (0.05, 0.02, 0.05, 0.2), (0.1, 0.05, 1, 1)])
@pytest.mark.parametrize("faster", [0.0, 1.0])
def test_the_time_of_lemma_b3_is_never_exceeded(z0: float, rho: float, m: float, M: float, faster: float) -> None:
    z, t = z0, 0
    while z < 0.5:
        z += (1 - faster) * m * (z - rho) ** 2 + faster * M * z**2
        t += 1
    assert t <= time_bound(z0, 0.5, m=m, M=M, rho=rho)
    assert t >= time_bound(z0, 0.5, m=m, M=M, rho=rho) * m / M * ((z0 - rho) / z0) ** 2 / 10  # and of its order


def test_every_step_of_gd_and_of_sam_is_the_theorems() -> None:
    found = growth_statistics(HERE, seeds=[0, 1], name="b", beta_hard=0.4, num=80, iterations=60, lr=1.0).values
    for rule in ("gd", "sam"):
        assert max(found[f"b.{rule}.off"].values()) < 1e-3
    assert found["b.sam.between.easy"] == found["b.sam.between.hard"] == {0: 100.0, 1: 100.0}
    for seed in (0, 1):
        assert found["b.sam.limit"][seed] > found["b.sam.time"][seed] > found["b.gd.time"][seed]
        assert found["b.gd.learned"][seed] == 100.0
        assert found["b.gd.easy"][seed] >= 0.5


def test_what_is_never_learned_is_outside_every_bound() -> None:
    short = growth_statistics(HERE, seeds=[0, 1], name="b", beta_hard=0.4, num=80, iterations=3, lr=1.0).values
    for rule in ("gd", "sam"):
        assert short[f"b.{rule}.learned"] == {0: 0.0, 1: 0.0}
        assert all(short[f"b.{rule}.time"][seed] > short[f"b.{rule}.limit"][seed] > 0 for seed in (0, 1))


def test_the_time_of_lemma_b3_does_not_depend_on_what_was_learned() -> None:
    """Its constants are set: a slower run does not get more time, and one the lemma says nothing of gets none."""
    rising = torch.linspace(0.1, 0.6, 11, dtype=torch.float64)[:, None]
    slower = torch.linspace(0.1, 0.6, 101, dtype=torch.float64)[:, None]
    quick, slow = (Trajectory(*[z] * 6) for z in (rising, slower))
    expected = time_bound(0.1, 0.5, m=1.0, M=1.5, rho=0.02)
    assert (
        feature_growth._time_and_bound(quick, 0.02, 1.0)["limit"]
        == feature_growth._time_and_bound(slow, 0.02, 1.0)["limit"]
        == pytest.approx(expected)
    )
    assert (
        feature_growth._time_and_bound(quick, 0.02, 1.0)["time"],
        feature_growth._time_and_bound(slow, 0.02, 1.0)["time"],
    ) == (8.0, 80.0)
    assert (
        feature_growth._time_and_bound(slow, 0.0, 1.0)["limit"] < feature_growth._time_and_bound(slow, 0.0, 1.0)["time"]
    )  # too slow for the lemma
    assert (
        feature_growth._time_and_bound(quick, 0.1, 1.0)["limit"]
        == feature_growth._time_and_bound(quick, 0.02, 0.0)["limit"]
        == 0.0
    )


def test_a_reversed_ascent_is_not_between() -> None:
    inside = torch.tensor([[0.05, 0.04]])
    assert feature_growth._between(inside - 0.01, inside, 0.02) == 100.0
    assert feature_growth._between(inside + 0.01, inside, 0.02) == 0.0
    assert feature_growth._between(inside - 0.03, inside, 0.02) == 0.0


def test_predictions_of_another_learning_rate_are_off() -> None:
    data = [patches()]
    models = [with_assumed_alignments(network(0, bias=False).double(), data[0], 0.02)]
    found = feature_growth.trajectories(data, models, iterations=10, lr=1.0, rho=0.02, betas=(1.0, 0.2))["gd"]
    made = found.easy[1:] - found.easy[:-1]
    torch.testing.assert_close(made, found.move_easy[:-1], rtol=1e-4, atol=1e-12)
    assert not torch.allclose(made, 1.1 * found.move_easy[:-1], rtol=1e-2)


def test_the_lines_of_theorem_a16_are_shares_of_the_steps_until_gd_has_learned() -> None:
    def run(easy: list[float], hard: list[float], perturbed_easy: list[float]) -> Trajectory:
        e, d, p = (torch.tensor(each, dtype=torch.float64)[:, None] for each in (easy, hard, perturbed_easy))
        return Trajectory(e, d, p, d, e, d)

    gd = run([0.10, 0.20, 0.30, 0.40, 0.60], [0.05, 0.06, 0.07, 0.08, 0.09], [0.0] * 5)
    sam = run([0.10, 0.15, 0.20, 0.25, 0.30], [0.05, 0.14, 0.06, 0.07, 0.08], [0.1, 0.13, 0.18, 0.05, 0.28])
    shares = feature_growth._gap_shares(gd, sam, rho=0.02)
    assert shares["easy.ahead"] == 75.0  # (60) fails at t = 1: 0.02 + 0.14 > 0.15
    assert shares["easy.ahead.perturbed"] == 50.0  # (61) fails at t = 1 and t = 3
    assert shares["easy.less"] == 100.0
    assert shares["hard.less"] == 75.0  # (63) fails at t = 1
    assert shares["evenly"] == 100.0


def test_the_easy_feature_stays_ahead_at_the_weights_and_at_those_that_sam_looks_at() -> None:
    values = growth_statistics(HERE, seeds=[0, 1], name="b", beta_hard=0.4, num=80, iterations=60, lr=1.0).values
    assert values["b.easy.ahead"] == values["b.easy.ahead.perturbed"] == {0: 100.0, 1: 100.0}
