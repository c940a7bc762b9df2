"""The instruments on the papers' toys (patches, spirals, parity), with networks whose truth is known."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from evenly.data import Labelled, Splits, load
from evenly.diagnostics import (
    adaptive_sharpness,
    group_errors,
    layer_probes,
    learning_coefficient,
    m_sharpness,
    measure,
    mode_connectivity,
    worst_rise,
)
from evenly.stability import Problem, feature_solution


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


class ReadsFeatures(nn.Module):
    """v_e and v_d read off every patch, added up, and then the easy one alone or both."""

    def __init__(self, planted: Any, *, hard: float) -> None:
        super().__init__()
        self.read, self.keep, self.head = (nn.Linear(a, 2, bias=False) for a in (50, 2, 2))
        with torch.no_grad():
            self.read.weight.copy_(torch.stack([planted["easy"], planted["hard"]]))
            self.keep.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, hard]]))
            self.head.weight.copy_(torch.tensor([[-1.0, -1.0], [1.0, 1.0]]))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.keep(self.read(x).sum(1)))


@pytest.fixture(scope="module")
def patches() -> Splits:
    return load("patches", num_train=500, num_test=3000, alpha=0.9, conflict=0.1, noise=0.02)


def test_who_reads_the_easy_patch_errs_exactly_where_it_contradicts_the_label(patches: Splits) -> None:
    easy_only = ReadsFeatures(patches.train.planted, hard=0.0)
    both = ReadsFeatures(patches.train.planted, hard=100.0)
    for model, worst in ((easy_only, 1.0), (both, 0.0)):
        groups = {g.name: g.error for g in group_errors(model, patches["balanced"], attribute="easy_agrees")}
        assert max(error for name, error in groups.items() if name.endswith("=no")) == pytest.approx(worst, abs=0.02)
        assert max(error for name, error in groups.items() if name.endswith("=yes")) < 0.02
        options = {"worst_group": {"split": "balanced", "attribute": "easy_agrees"}}
        numbers = measure(model, patches, "worst_group", rng=generator(), options=options)
        assert numbers["worst_group_error"] == pytest.approx(worst, abs=0.02)


def test_the_difficult_patch_is_readable_until_the_layer_that_drops_it(patches: Splits) -> None:
    """Also where a linear layer sees patches as tokens: its features are the numbers of a patch, not the patches."""
    found = {}
    for hard in (0.0, 1.0):
        rows = layer_probes(ReadsFeatures(patches.train.planted, hard=hard), patches, rng=generator(), refits=1)
        found[hard] = {row.layer: row for row in rows}
    assert found[0.0]["read"].num_features == 50
    errors = {hard: {layer: p.probes["hard"].error for layer, p in layers.items()} for hard, layers in found.items()}
    assert max(errors[0.0]["read"], errors[0.0]["keep"], *errors[1.0].values()) < 0.05
    assert errors[0.0]["head"] == pytest.approx(0.5, abs=0.07)
    assert max(p.probes["easy"].error for layers in found.values() for p in layers.values()) < 0.05


@pytest.fixture(scope="module")
def solved() -> tuple[nn.Module, Labelled, Problem]:
    """A network that computes the parity by the (2, r)-solution: every example is fitted and its curvature known."""
    train = load("parity", num_train=40, dim=8).train
    solution = feature_solution(2, dim=8)
    model = nn.Sequential(
        nn.Linear(8, len(solution.b_M)), nn.ReLU(), nn.Linear(len(solution.b_M), 1, bias=False)
    ).double()
    with torch.no_grad():
        model[0].weight.copy_(solution.w1_MD)
        model[0].bias.copy_(solution.b_M)
        model[2].weight.copy_(solution.w2_M[None])
    data = Labelled(train.inputs.double(), train.labels, train.classes, dict(train.attributes))
    return model, data, solution.problem(data.inputs)


def test_the_fisher_of_the_parity_solution_is_its_known_curvature(solved: tuple[nn.Module, Labelled, Problem]) -> None:
    model, data, problem = solved
    numbers = measure(model, data, "fisher", "worst_group", "sam_edge", rng=generator(), lr=0.1,
                      options={name: {"loss": "squared"} for name in ("fisher", "sam_edge")})  # fmt: skip
    assert numbers["fisher_trace"] == pytest.approx(problem.trace, rel=1e-6)
    assert numbers["fisher_lambda_max"] == pytest.approx(problem.lambda_max, rel=1e-3)
    assert numbers["sam_edge_lambda_max"] == pytest.approx(problem.lambda_max, rel=1e-3)
    assert numbers["empirical_fisher_trace"] == pytest.approx(0, abs=1e-12)  # every example is fitted
    assert numbers["worst_group_error"] == 0
    assert numbers["sam_edge"] < 1e-3  # no gradient: SAM's edge falls to 0


def test_rises_around_the_parity_solution_are_those_of_its_quadratic(
    solved: tuple[nn.Module, Labelled, Problem],
) -> None:
    """½ρ²λmax(H), and with |w| as the scale ½ρ²λmax(|w|H|w|); groups have no gradient to climb."""
    model, data, problem = solved
    rho = 1e-4
    settings: dict[str, Any] = {"rng": generator(), "loss": "squared", "steps": 300, "restarts": 3}
    assert worst_rise(model, data, rho=rho, **settings).rise == pytest.approx(rho**2 / 2 * problem.lambda_max, rel=0.02)
    rows = []
    for x in data.inputs:
        gradient = torch.autograd.grad(model(x[None]).sum(), list(model.parameters()))
        rows.append(torch.cat([(g * p.abs()).flatten() for g, p in zip(gradient, model.parameters(), strict=True)]))
    scaled = Problem.from_factors(torch.stack(rows).detach())
    found = adaptive_sharpness(model, data, rho=rho, **settings)
    assert found.rise == pytest.approx(rho**2 / 2 * scaled.lambda_max, rel=0.02)
    assert m_sharpness(model, data, rho=rho, m=4, rng=generator(), loss="squared").rise == pytest.approx(0, abs=1e-12)


def test_the_learning_coefficient_of_the_parity_solution_is_that_of_its_eigenvalues(
    solved: tuple[nn.Module, Labelled, Problem],
) -> None:
    """With a strong pull the walk stays where the loss is quadratic: ½Σ nβh/(nβh + γ)."""
    model, data, problem = solved
    pull = 2000.0
    heated = 40 / math.log(40) * problem.eigenvalues_R
    found = learning_coefficient(model, data, rng=generator(), loss="squared", pull=pull, draws=400, burn_in=150)
    assert found.value == pytest.approx(
        float((heated / (heated + pull)).sum() / 2), abs=6 * found.standard_error + 0.01
    )


def test_the_line_between_two_readings_of_the_spiral_data_has_the_errors_of_its_ends() -> None:
    """A network that reads the line and one that answers its opposite: halfway it says nothing."""
    data = load("spirals", num_train=400).train
    reads, opposes = nn.Linear(4, 2, bias=False), nn.Linear(4, 2, bias=False)
    x, easy = data.gather(range(len(data))), data.attribute("easy")
    axis = (x[easy == 1].mean(0) - x[easy == 0].mean(0)) * 20
    with torch.no_grad():
        reads.weight.copy_(torch.stack([-axis, axis]))
        opposes.weight.copy_(-reads.weight)
    line = mode_connectivity(reads, opposes, data, points=3)
    assert line.errors[0] < 0.1
    assert line.errors[-1] > 0.9
    assert line.losses[1] == pytest.approx(math.log(2), rel=1e-5)
    assert line.barrier == 0
