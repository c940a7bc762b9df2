"""The runs behind table 1 and figures 2 to 4, against plain loops."""

from pathlib import Path

import pytest
import torch
from torch import nn

from evenly.data.batches import order
from evenly.optim import SAM
from evenly.papers.chang2025.curvatures import curvatures
from evenly.papers.chang2025.parity_runs import (
    draw_examples,
    initial_network,
    line_fit,
    summarise,
    train_methods,
    train_with_contrast,
)
from evenly.papers.experiment import Context

CONTEXT = Context(Path("unused"))
TINY = {"dim": 5, "width": 6, "num": 20, "epochs": 3}


def stacked(model: nn.Module) -> dict[str, torch.Tensor]:
    return {name: p.detach()[None] for name, p in model.named_parameters()}


def example(seed: int, *, num: int, dim: int) -> tuple[torch.Tensor, torch.Tensor]:
    x = draw_examples(seed, num=num, dim=dim).gather(range(num)).double()
    return x, x[:, 0] * x[:, 1]


def by_plain_loop(model: nn.Module, x: torch.Tensor, y: torch.Tensor, *, seed: int, lr: float, rho: float, epochs: int):
    """(f − y)² itself, batch by batch, with the library's SAM."""
    sgd, sam = torch.optim.SGD(model.parameters(), lr=lr), SAM(model, rho=rho)
    for epoch in range(epochs):
        for rows in order(len(x), seed=seed, epoch=epoch).split(10):
            sgd.zero_grad()
            sam.backward(lambda rows=rows: (model(x[rows]).squeeze(1) - y[rows]).square().mean())
            sgd.step()


@pytest.mark.parametrize("rho", [0.0, 0.3])
def test_a_run_of_table_1_is_a_plain_loop_on_the_squared_error_without_a_half(rho: float) -> None:
    seen = train_methods(CONTEXT, seeds=[0, 4], lr=0.05, methods=[["a", rho]], **TINY)
    model = initial_network(4, dim=5, width=6)
    x, y = example(4, num=20, dim=5)
    by_plain_loop(model, x, y, seed=4, lr=0.05, rho=rho, epochs=3)
    wanted = {name: float(value) for name, value in curvatures(stacked(model), x[None]).items()}
    for quantity in ("sigma", "largest", "trace", "loss"):
        assert seen.values[f"a.{quantity}"][4] == pytest.approx(wanted[quantity], rel=1e-5)


def test_a_contrastive_weight_of_zero_is_plain_sgd() -> None:
    plain = train_methods(CONTEXT, seeds=[0, 1], lr=0.05, methods=[["sgd", 0.0]], **TINY)
    other = train_with_contrast(CONTEXT, seeds=[0, 1], lr=0.05, weights=[0.0, 0.5], **TINY)
    for seed in (0, 1):
        assert other.values["contrast0.largest"][seed] == pytest.approx(plain.values["sgd.largest"][seed], rel=1e-9)
        assert other.values["contrast0.5.largest"][seed] != pytest.approx(plain.values["sgd.largest"][seed], rel=1e-3)


def test_a_run_that_blows_up_keeps_what_it_last_had_and_is_counted() -> None:
    nan = float("nan")
    names = ("sigma", "sigma_printed", "lambda_max_s", "lambda_max_s_printed", "largest")
    track = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, nan], [4.0, 9.0]])
    seen = summarise([("a", 0), ("a", 1)], dict.fromkeys(names, track))
    assert seen.values["a.lost"] == {0: 0.0, 1: 100.0}
    assert seen.values["a.largest"] == {0: 4.0, 1: 2.0}
    assert seen.values["a.mean.largest"] == {0: 3.0, 1: 2.0}


def test_what_is_kept_of_sigma_is_relative_to_the_first_method() -> None:
    names = ("sigma", "sigma_printed", "lambda_max_s", "lambda_max_s_printed", "largest")
    track = torch.tensor([[1.0, 1.0], [8.0, 2.0]])
    seen = summarise([("first", 7), ("second", 7)], dict.fromkeys(names, track))
    assert seen.values["second.sigma_kept"] == {7: 0.25}


def test_a_run_without_an_active_unit_from_the_start_is_lost_and_its_numbers_are_finite() -> None:
    nan = float("nan")
    tracks = dict.fromkeys(("sigma", "sigma_printed", "lambda_max_s_printed"), torch.tensor([[nan], [nan]]))
    seen = summarise([("a", 0)], tracks | {"largest": torch.zeros(2, 1)})
    assert seen.values["a.lost"] == {0: 100.0}
    assert all(torch.tensor(list(by.values())).isfinite().all() for by in seen.values.values())


def test_a_line_through_huge_numbers_does_not_overflow() -> None:
    huge = torch.tensor([1e180, 2e180, 3e180], dtype=torch.float64)
    assert line_fit(huge, 2 * huge) == pytest.approx(1)
    assert line_fit(huge, torch.ones(3, dtype=torch.float64)) == 0
