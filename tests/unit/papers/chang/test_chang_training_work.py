"""The runs behind table 1 and figures 1d to 4, against plain loops and explicit Hessians."""

from pathlib import Path

import pytest
import torch
from torch import nn

from evenly.data.batches import order
from evenly.optim import SAM
from evenly.papers.chang2025 import contrast
from evenly.papers.chang2025.curving import curvatures
from evenly.papers.chang2025.descending import descended, started
from evenly.papers.chang2025.learning_parity import contrasted, drawn, found, learned, start
from evenly.papers.experiment import Context
from evenly.stability import Problem, coherence

CONTEXT = Context(Path("unused"))
TINY = {"dim": 5, "width": 6, "num": 20, "epochs": 3}


def stacked(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.detach()[None] for name, p in model.named_parameters()}


def example(seed: int, *, num: int, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = drawn(seed, num=num, dim=dim).gather(range(num)).double()
    return x, x[:, 0] * x[:, 1]


def by_plain_loop(model: nn.Module, x: torch.Tensor, y: torch.Tensor, *, seed: int, lr: float, rho: float, epochs: int):
    """(f − y)² itself, batch by batch, with the library's SAM."""
    sgd, sam = torch.optim.SGD(model.parameters(), lr=lr), SAM(model, rho=rho)
    for epoch in range(epochs):
        for rows in order(len(x), seed=seed, epoch=epoch).split(10):
            sgd.zero_grad()
            sam.backward(lambda rows=rows: (model(x[rows]).squeeze(1) - y[rows]).square().mean())
            sgd.step()


def test_curvatures_are_those_of_explicit_hessians_of_the_squared_error_without_a_half() -> None:
    model = start(3, dim=4, width=5)
    x, y = example(3, num=7, dim=4)
    hessians = []
    for i in range(7):
        g = torch.cat([p.flatten() for p in torch.autograd.grad(model(x[i : i + 1]).sum(), list(model.parameters()))])
        hessians.append(2 * torch.outer(g, g))
    wanted = coherence(Problem.from_dense(torch.stack(hessians)))
    seen = {name: float(value) for name, value in curvatures(stacked(model), x[None]).items()}
    assert seen["sigma"] == pytest.approx(wanted.sigma)
    assert seen["lambda_max_s"] == pytest.approx(wanted.lambda_max_s)
    assert seen["lambda_max_s_printed"] == pytest.approx(wanted.lambda_max_s_without_root)
    assert seen["sigma_printed"] == pytest.approx(wanted.sigma_without_root)
    assert seen["largest"] == pytest.approx(wanted.largest_example)
    assert seen["lambda_max"] == pytest.approx(wanted.lambda_max)
    assert seen["trace"] == pytest.approx(wanted.trace)
    assert seen["n_trace"] == pytest.approx(7 * wanted.trace)
    assert seen["loss"] == pytest.approx((model(x).squeeze(1) - y).square().mean().item())


@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_a_run_of_table_1_is_a_plain_loop_on_the_squared_error_without_a_half(rho: float) -> None:
    seen = learned(CONTEXT, seeds=[0, 4], lr=0.05, methods=[["a", rho]], **TINY)
    model = start(4, dim=5, width=6)
    x, y = example(4, num=20, dim=5)
    by_plain_loop(model, x, y, seed=4, lr=0.05, rho=rho, epochs=3)
    wanted = {name: float(value) for name, value in curvatures(stacked(model), x[None]).items()}
    for quantity in ("sigma", "largest", "trace", "loss"):
        assert seen.values[f"a.{quantity}"][4] == pytest.approx(wanted[quantity], rel=1e-5)


def test_a_contrastive_weight_of_zero_is_plain_sgd() -> None:
    plain = learned(CONTEXT, seeds=[0, 1], lr=0.05, methods=[["sgd", 0.0]], **TINY)
    other = contrasted(CONTEXT, seeds=[0, 1], lr=0.05, weights=[0.0, 0.5], **TINY)
    for seed in (0, 1):
        assert other.values["contrast0.largest"][seed] == pytest.approx(plain.values["sgd.largest"][seed], rel=1e-9)
        assert other.values["contrast0.5.largest"][seed] != pytest.approx(plain.values["sgd.largest"][seed], rel=1e-3)


def test_the_contrastive_term_is_its_sum_over_pairs_and_its_steps_lower_it() -> None:
    x, y = example(0, num=8, dim=5)
    hidden = torch.randn(8, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64).relu()
    total = 0.0
    for i in range(8):
        for j in range(8):
            apart = float((hidden[i] - hidden[j]).norm())
            if i != j:
                total += apart**2 if y[i] == y[j] else max(0.0, 1 - apart) ** 2
    assert float(contrast.contrastive(hidden[None], y[None])) == pytest.approx(total / 56)
    ends = []
    for weight in (0.0, 1.0):
        seen = contrast.run(
            stacked(start(0, dim=5, width=6)),
            x[None],
            weight_K=torch.tensor([weight], dtype=torch.float64),
            seeds=[0],
            lr=0.05,
            batch=8,
            epochs=20,
            measure=lambda now: {"term": contrast.objective(now, x[None], torch.ones(1)) - fit(now, x[None])},
        )
        ends.append(float(seen["term"][-1, 0]))
    assert ends[1] < ends[0]


def fit(now: contrast.Weights, x: torch.Tensor) -> torch.Tensor:
    return contrast.objective(now, x, torch.zeros(1))


def test_a_gradient_of_the_contrastive_term_is_finite_where_examples_coincide() -> None:
    hidden = torch.zeros(1, 4, 2, dtype=torch.float64, requires_grad=True)
    contrast.contrastive(hidden, torch.tensor([[1.0, -1.0, 1.0, -1.0]])).sum().backward()
    assert hidden.grad is not None
    assert hidden.grad.isfinite().all()


def test_a_run_that_blows_up_keeps_what_it_last_had_and_is_counted() -> None:
    nan = float("nan")
    names = ("sigma", "sigma_printed", "lambda_max_s", "lambda_max_s_printed", "largest")
    track = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, nan], [4.0, 9.0]])
    seen = found([("a", 0), ("a", 1)], dict.fromkeys(names, track))
    assert seen.values["a.lost"] == {0: 0.0, 1: 100.0}
    assert seen.values["a.largest"] == {0: 4.0, 1: 2.0}
    assert seen.values["a.mean.largest"] == {0: 3.0, 1: 2.0}


def test_what_is_kept_of_sigma_is_relative_to_the_first_method() -> None:
    names = ("sigma", "sigma_printed", "lambda_max_s", "lambda_max_s_printed", "largest")
    track = torch.tensor([[1.0, 1.0], [8.0, 2.0]])
    seen = found([("first", 7), ("second", 7)], dict.fromkeys(names, track))
    assert seen.values["second.sigma_kept"] == {7: 0.25}


def test_a_descent_of_figure_1d_is_a_plain_loop_from_the_solution_with_noise() -> None:
    sizes = {"dim": 6, "num": 20, "width": 8}
    seen = descended(CONTEXT, name="sam", rho=0.05, seeds=[2], features=[2, 3], epochs=2, **sizes)
    model = started(3, dim=6, width=8, noise=0.1, seed=2)
    x, y = example(2, num=20, dim=6)
    by_plain_loop(model, x, y, seed=2, lr=0.01, rho=0.05, epochs=2)
    loss = (model(x).squeeze(1) - y).square().mean()
    assert seen.values["sam.C3"][2] == pytest.approx(loss.log10().item(), rel=1e-9)
    assert len(seen.series["curves"]["sam.C3"][0]) == 3


def test_every_c_starts_with_the_same_noise() -> None:
    two, three = (started(c, dim=6, width=8, noise=0.1, seed=0).state_dict() for c in (2, 3))
    bare = [started(c, dim=6, width=8, noise=0.0, seed=0).state_dict() for c in (2, 3)]
    assert torch.allclose(
        two["hidden.weight"] - bare[0]["hidden.weight"], three["hidden.weight"] - bare[1]["hidden.weight"]
    )
