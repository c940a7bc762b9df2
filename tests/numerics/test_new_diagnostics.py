"""Adaptive sharpness, m-sharpness, SAM's edge, worst groups, layer probes, connectivity and the learning coefficient:
each against a closed form and against another way to compute it."""

import copy
import math
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from evenly.curvature import fisher, gauss_newton, hessian, lanczos, per_example_gradients
from evenly.data import Labelled, load
from evenly.diagnostics import (
    adaptive_sharpness,
    group_errors,
    layer_probes,
    learning_coefficient,
    m_sharpness,
    measure,
    mode_connectivity,
    sam_edge,
    worst_rise,
)
from evenly.errors import DataError, UsageError
from evenly.measurements import MEASUREMENTS
from evenly.report.blocks import Plot
from evenly.report.experiments.measurements import features_section, geometry_section


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def relu_network() -> tuple[nn.Sequential, torch.Tensor, torch.Tensor]:
    rng = generator(1)
    model = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 2)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape, generator=rng, dtype=p.dtype))
    return model, torch.randn(30, 4, generator=rng, dtype=torch.float64), torch.arange(30) % 2


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    with torch.no_grad():
        return float(F.cross_entropy(model(x), y))


def test_adaptive_sharpness_of_a_quadratic_is_its_closed_form() -> None:
    """L = ½Σ hᵢwᵢ²: over ‖ε/|w|‖ ≤ ρ with one weight that matters, the rise is ½h w²((1 + ρ)² − 1)."""
    model = nn.Linear(2, 1, bias=False).double()
    with torch.no_grad():
        model.weight.copy_(torch.tensor([[2.0, 0.0]]))
    x = torch.tensor([[3.0, 0.0]], dtype=torch.float64)
    found = adaptive_sharpness(model, (x, torch.zeros(1, dtype=torch.float64)), rho=0.1, rng=generator())
    assert found.rise == pytest.approx(0.5 * 9 * 4 * (1.1**2 - 1), rel=1e-9)
    assert found.first_order == pytest.approx(0.1 * 2 * 9 * 2)  # ρ‖|w|∘g‖


def test_adaptive_sharpness_is_blind_to_rescaling_and_worst_rise_is_not() -> None:
    model, x, y = relu_network()
    twin = copy.deepcopy(model)
    with torch.no_grad():
        twin[0].weight *= 10
        twin[0].bias *= 10
        twin[2].weight /= 10
    torch.testing.assert_close(model(x), twin(x))
    ours = [adaptive_sharpness(m, (x, y), rho=0.05, rng=generator()).rise for m in (model, twin)]
    plain = [worst_rise(m, (x, y), rho=0.05, rng=generator()).rise for m in (model, twin)]
    assert ours[1] == pytest.approx(ours[0], rel=1e-3)
    assert not 0.5 < plain[1] / plain[0] < 2


def test_adaptive_sharpness_beats_random_points_of_its_ball() -> None:
    model, x, y = relu_network()
    rise = adaptive_sharpness(model, (x, y), rho=0.2, rng=generator()).rise
    before = loss_of(model, x, y)
    for seed in range(20):
        other = copy.deepcopy(model)
        rng = generator(seed)
        directions = [torch.randn(p.shape, generator=rng, dtype=p.dtype) for p in other.parameters()]
        length = math.sqrt(sum(float(d.square().sum()) for d in directions))
        with torch.no_grad():
            for p, d in zip(other.parameters(), directions, strict=True):
                p += 0.2 * p.abs() * d / length
        assert loss_of(other, x, y) - before <= rise + 1e-9


def test_m_sharpness_is_the_mean_over_groups_of_a_plain_sam_step() -> None:
    model, x, y = relu_network()
    data = Labelled(x, y, ("a", "b"))
    whole = m_sharpness(model, data, rho=0.1, m=30, rng=generator())
    loss = F.cross_entropy(model(x), y)
    gradient = torch.autograd.grad(loss, list(model.parameters()))
    size = torch.sqrt(sum(g.square().sum() for g in gradient))  # type: ignore[arg-type]
    moved = copy.deepcopy(model)
    with torch.no_grad():
        for p, g in zip(moved.parameters(), gradient, strict=True):
            p += 0.1 * g / size
    assert whole.rise == pytest.approx(loss_of(moved, x, y) - loss_of(model, x, y), rel=1e-9)
    single = m_sharpness(model, data, rho=0.1, m=1, rng=generator())
    assert (single.groups, whole.groups) == (30, 1)
    assert single.rise > whole.rise  # every example climbs by itself
    with pytest.raises(UsageError, match="m = 31"):
        m_sharpness(model, data, rho=0.1, m=31, rng=generator())


@pytest.mark.parametrize(("norm", "lr", "rho"), [(0.3, 0.1, 0.05), (1e-4, 0.5, 0.1), (5.0, 0.01, 1.0)])
def test_sam_edge_is_where_a_sam_step_of_a_quadratic_neither_grows_nor_shrinks(
    norm: float, lr: float, rho: float
) -> None:
    edge = sam_edge(norm, lr=lr, rho=rho)
    assert lr * edge * (1 + rho * edge / norm) == pytest.approx(2)
    w = norm / edge  # the point of ½λw² with that gradient
    after = w - lr * edge * (w + rho)  # a step of SAM: ε = ρ g/‖g‖
    assert after == pytest.approx(-w, rel=1e-9)
    assert sam_edge(norm, lr=lr, rho=0.0) == 2 / lr


def test_sam_edge_is_measured_with_the_networks_own_gradient_norm() -> None:
    model, x, y = relu_network()
    numbers = measure(model, (x, y), "sam_edge", rng=generator(), rho=0.1, lr=0.2)
    gradient = torch.autograd.grad(F.cross_entropy(model(x), y), list(model.parameters()))
    norm = math.sqrt(sum(float(g.square().sum()) for g in gradient))
    assert numbers["sam_edge_gradient_norm"] == pytest.approx(norm)
    top = float(lanczos(hessian(model, (x, y)), k=1, rng=generator()).values[0])
    assert numbers["lambda_max_over_edge"] == pytest.approx(top / sam_edge(norm, lr=0.2, rho=0.1), rel=1e-3)
    with pytest.raises(UsageError, match="sam_edge needs the learning rate"):
        measure(model, (x, y), "sam_edge", rng=generator())


def test_worst_group_is_that_of_a_plain_count() -> None:
    rng = generator(3)
    tag, label = torch.randint(3, (200,), generator=rng), torch.randint(2, (200,), generator=rng)
    x = torch.randn(200, 2, generator=rng)
    data = Labelled(x, label, ("a", "b"), {"tag": tag})
    model = nn.Linear(2, 2)
    groups = {g.name: g for g in group_errors(model, data, attribute="tag")}
    wrong = (model(x).argmax(1) != label).numpy()
    for value in range(3):
        for name, number in (("a", 0), ("b", 1)):
            members = ((tag == value) & (label == number)).numpy()
            group = groups[f"{name}, tag={value}"]
            assert (group.error, group.num) == (pytest.approx(wrong[members].mean()), members.sum())
    numbers = measure(model, data, "worst_group", rng=generator())
    assert numbers["worst_group_error"] == max(g.error for g in groups.values())
    assert numbers["group_mean_error"] == pytest.approx(np.mean([g.error for g in groups.values()]))
    with pytest.raises(DataError, match="no attribute with several values"):
        measure(model, (x, label), "worst_group", rng=generator())


def test_a_model_that_reads_the_easy_feature_fails_the_groups_where_it_misleads() -> None:
    """Spirals: the line decides; where it contradicts the label every answer is wrong."""
    splits = load("spirals", num_train=50, num_test=400)
    rng = generator()
    easy = splits["balanced"].attribute("easy")
    x = splits["balanced"].gather(range(len(easy)))
    probe = nn.Linear(x.shape[1], 2)
    optimizer = torch.optim.Adam(probe.parameters(), lr=0.1)
    for _ in range(100):
        optimizer.zero_grad()
        F.cross_entropy(probe(x), easy).backward()
        optimizer.step()
    numbers = measure(probe, splits, "worst_group", rng=rng, options={"worst_group": {"split": "balanced"}})
    assert numbers["worst_group_error"] > 0.95
    assert numbers["group_mean_error"] < 0.7


def test_layer_probes_see_a_feature_until_the_layer_that_drops_it() -> None:
    """The second layer keeps the easy coordinates only: the hard feature is readable before it and lost behind it."""
    splits = load("spirals", num_train=50, num_test=600)
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.Linear(4, 2, bias=False), nn.Linear(2, 2, bias=False))
    with torch.no_grad():
        model[0].weight.copy_(torch.eye(4))
        model[1].weight.copy_(torch.tensor([[1.0, 0, 0, 0], [0, 1.0, 0, 0]]))
        model[2].weight.copy_(torch.eye(2))
    found = {p.layer: p for p in layer_probes(model, splits, rng=generator(), refits=1)}
    assert list(found) == ["0", "1", "2"]
    easy = [found[layer].probes["easy"].error for layer in "012"]
    assert found["0"].num_features == 4
    assert found["2"].num_features == 2
    assert max(easy) - min(easy) < 0.05
    last = measure(
        model, splits, "probing", rng=generator(), options={"probing": {"balance": "subsample", "refits": 1}}
    )
    assert found["2"].probes["hard"].error == pytest.approx(last["hard"], abs=0.08)
    rows = measure(model, splits, "layer_probes", rng=generator())["layer_probes"]
    assert [row["layer"] for row in rows] == ["0", "1", "2"]


def test_a_convex_loss_has_no_barrier_and_a_permuted_network_has_one() -> None:
    model, x, y = relu_network()
    first, second = nn.Linear(4, 2).double(), nn.Linear(4, 2).double()
    assert mode_connectivity(first, second, (x, y)).barrier <= 1e-12
    twin = copy.deepcopy(model)
    order = [1, 2, 3, 4, 5, 0]
    with torch.no_grad():
        twin[0].weight.copy_(model[0].weight[order])
        twin[0].bias.copy_(model[0].bias[order])
        twin[2].weight.copy_(model[2].weight[:, order])
    labels = model(x).argmax(1)
    line = mode_connectivity(model, twin, (x, labels), points=5)
    assert line.losses[0] == pytest.approx(line.losses[-1])
    assert line.errors[0] == line.errors[-1] == 0
    assert line.barrier > 0.05
    halfway = copy.deepcopy(model)
    with torch.no_grad():
        for p, q in zip(halfway.parameters(), twin.parameters(), strict=True):
            p.copy_((p + q) / 2)
    assert line.losses[2] == pytest.approx(loss_of(halfway, x, labels))
    with pytest.raises(UsageError, match="not of one shape"):
        mode_connectivity(first, model, (x, y))


def test_learning_coefficient_of_a_regular_model_is_half_its_parameters() -> None:
    """Linear regression with d weights at its minimum: λ = d/2, and exactly E = d/2 without a pull."""
    d, num = 4, 400
    x = torch.randn(num, d, generator=generator(), dtype=torch.float64)
    model = nn.Linear(d, 1, bias=False).double()
    nn.init.zeros_(model.weight)
    data = (x, torch.zeros(num, dtype=torch.float64))
    found = learning_coefficient(model, data, rng=generator(1), step=0.012, pull=0.0, draws=600, chains=3)
    assert 0.5 < found.accepted < 1
    assert found.value == pytest.approx(d / 2, abs=0.35)


def test_learning_coefficient_fits_its_own_step_to_curvatures_that_differ_a_thousandfold() -> None:
    """For L = ½Σhᵢwᵢ² and a pull γ, E[nβL] = ½Σ nβhᵢ/(nβhᵢ + γ), exactly."""
    x = torch.randn(300, 6, generator=generator(), dtype=torch.float64) * torch.tensor([30.0, 10, 3, 1, 0.3, 0.1])
    model = nn.Linear(6, 1, bias=False).double()
    nn.init.zeros_(model.weight)
    data = (x, torch.zeros(300, dtype=torch.float64))
    settings = {"pull": 2000.0, "draws": 700, "burn_in": 150}
    found = learning_coefficient(model, data, rng=generator(1), **settings)  # type: ignore[arg-type]
    curvature = 300 / math.log(300) * torch.linalg.eigvalsh(x.mT @ x / 300)
    exact = float((curvature / (curvature + 2000)).sum() / 2)
    assert 0.4 < found.accepted < 0.75
    assert found.mixing < 1.1
    assert found.value == pytest.approx(exact, abs=5 * found.standard_error + 0.02)
    given = learning_coefficient(model, data, rng=generator(2), step=found.step / 2, **settings)  # type: ignore[arg-type]
    assert given.value == pytest.approx(found.value, abs=5 * (found.standard_error + given.standard_error))


@pytest.mark.parametrize(("name", "value"), [("pull", -0.5), ("step", 0.0), ("draws", 1), ("chains", 0)])
def test_a_walk_without_meaning_is_refused(name: str, value: float) -> None:
    model, x, y = relu_network()
    with pytest.raises(UsageError, match=f"{name} = {value}"):
        learning_coefficient(model, (x, y), rng=generator(), **{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("step", [10.0, 1e-9])
def test_a_walk_that_is_stuck_or_has_not_left_its_start_is_said(step: float) -> None:
    model, x, y = relu_network()
    with pytest.warns(UserWarning, match="learning coefficient has not mixed"):
        found = learning_coefficient(model, (x, y), rng=generator(), step=step, draws=40, burn_in=5)
    assert found.mixing > 1.2 or found.accepted < 0.1


def test_learning_coefficient_of_a_singular_model_is_below_that_of_a_regular_one() -> None:
    """f = a·b·x at a = b = 0 has two parameters and λ = ½, where a regular model of two has 1 (Watanabe, 2009)."""

    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Parameter(torch.zeros(1).double()), nn.Parameter(torch.zeros(1).double())

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.a * self.b * x

    x = torch.randn(1000, 1, generator=generator(), dtype=torch.float64)
    data = (x, torch.zeros(1000, dtype=torch.float64))
    found = learning_coefficient(Product(), data, rng=generator(1), step=0.05, pull=1.0, draws=1500, chains=3)
    # E[nβL] under exp(−nβ a²b²x̄²/2 − (a² + b²)/2) by a grid: the second oracle.
    grid = torch.linspace(-6, 6, 801, dtype=torch.float64)
    energy = 1000 / math.log(1000) * (grid[:, None] * grid).square() * float(x.square().mean()) / 2
    weight = torch.exp(-energy - (grid[:, None].square() + grid.square()) / 2)
    exact = float((weight * energy).sum() / weight.sum())
    assert found.value == pytest.approx(exact, abs=0.12)
    assert found.value < 0.75


def test_an_operator_is_a_scipy_operator_with_the_same_eigenvalues() -> None:
    from scipy.sparse.linalg import eigsh

    model, x, y = relu_network()
    for make in (hessian, gauss_newton):
        operator = make(model, (x, y))
        scipys = operator.as_scipy()
        v = torch.randn(operator.size, 2, generator=generator(), dtype=torch.float64)
        np.testing.assert_allclose(scipys @ v.numpy(), operator.dense().numpy() @ v.numpy(), rtol=1e-9, atol=1e-12)
        top = eigsh(scipys, k=2, which="LA", return_eigenvectors=False)
        np.testing.assert_allclose(np.sort(top)[::-1], torch.linalg.eigvalsh(operator.dense()).flip(0)[:2], rtol=1e-8)


def test_residuals_are_never_below_the_rounding_of_a_product() -> None:
    model, x, y = relu_network()
    single = model.float()
    operator = hessian(single, (x.float(), y))
    found = lanczos(operator, k=3, tol=1e-12, rng=generator(), max_products=operator.size)
    floor = torch.finfo(torch.float32).eps * float(found.values.abs().max())
    assert float(found.residuals.min()) >= floor
    exact = torch.linalg.eigvalsh(hessian(model.double(), (x, y)).dense()).flip(0)[:3]
    assert bool(((found.values - exact).abs() <= 10 * found.residuals).all())


@pytest.mark.parametrize("outputs", [1, 3])
def test_the_fisher_is_the_mean_over_labels_of_gradients_and_the_empirical_one_over_those_of_the_data(
    outputs: int,
) -> None:
    """By one backward pass for every example and every label, weighted with the network's own probabilities."""
    rng = generator(4)
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, outputs)).double()
    x, y = torch.randn(9, 4, generator=rng, dtype=torch.float64), torch.arange(9) % max(outputs, 2)

    def log_probabilities(one: torch.Tensor) -> torch.Tensor:
        f = model(one[None])[0]
        return F.log_softmax(torch.cat([torch.zeros(1, dtype=f.dtype), f]) if outputs == 1 else f, 0)

    true, empirical = 0.0, 0.0
    for one, label in zip(x, y, strict=True):
        for number, chance in enumerate(log_probabilities(one).exp().tolist()):
            gradient = torch.autograd.grad(log_probabilities(one)[number], list(model.parameters()))
            g = torch.cat([part.flatten() for part in gradient])
            true = true + chance * g.outer(g) / 9
            empirical = empirical + (number == label) * g.outer(g) / 9
    torch.testing.assert_close(fisher(model, (x, y), chunk=4).dense(), true, rtol=1e-9, atol=1e-12)
    by_data = fisher(model, (x, y), labels="data", chunk=4)
    torch.testing.assert_close(by_data.dense(), empirical, rtol=1e-9, atol=1e-12)
    rows = per_example_gradients(model, (x, y))
    torch.testing.assert_close(by_data.dense(), rows.mT @ rows / 9)
    numbers = measure(model, (x, y), "fisher", rng=generator())
    for name, matrix in (("fisher", true), ("empirical_fisher", empirical)):
        assert numbers[f"{name}_trace"] == pytest.approx(float(matrix.trace()), rel=1e-6)  # type: ignore[attr-defined]
        assert numbers[f"{name}_lambda_max"] == pytest.approx(float(torch.linalg.eigvalsh(matrix)[-1]), rel=1e-3)


def test_the_fisher_of_a_loss_without_a_distribution_is_refused_and_the_empirical_one_is_not() -> None:
    model, x, y = relu_network()

    def mine(f: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(f, labels, reduction="none")

    with pytest.raises(UsageError, match="needs to know the distribution of the labels"):
        fisher(model, (x, y), loss=mine)
    torch.testing.assert_close(
        fisher(model, (x, y), loss=mine, labels="data").dense(), fisher(model, (x, y), labels="data").dense()
    )
    with pytest.raises(UsageError, match="labels = 'datum'"):
        fisher(model, (x, y), labels="datum")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_every_measurement_is_drawn_on_the_page(name: str) -> None:
    splits = load("spirals", num_train=60, num_test=200)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few draws of a walk
        options = {
            "learning_coefficient": {"draws": 4, "burn_in": 2, "chains": 2},
            "density": {"probes": 1, "steps": 5},
            "worst_group": {"attribute": "easy"},  # that of these data equals the label
        }
        more = {name: options[name]} if name in options else {}
        numbers = {"epoch": 1, **measure(model, splits, name, rng=generator(), lr=0.1, options=more)}
    sections = [features_section({"a": [numbers]}), geometry_section({"a": [numbers]}, {})]
    assert any(isinstance(block, Plot) for section in sections if section is not None for block in section.blocks)
