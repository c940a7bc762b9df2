"""Training from noisy (C, r)-solutions, against a plain loop."""

from pathlib import Path

import pytest
import torch

from evenly.data.batches import order
from evenly.optim import SAM
from evenly.papers.chang2025.decimal_log import decimal_log
from evenly.papers.chang2025.fig1d import noisy_solution, train_from_solutions
from evenly.papers.chang2025.parity_runs import draw_examples
from evenly.papers.experiment import Context

CONTEXT = Context(Path("unused"))


def test_a_descent_of_figure_1d_is_a_plain_loop_from_the_solution_with_noise() -> None:
    sizes = {"dim": 6, "num": 20, "width": 8}
    seen = train_from_solutions(CONTEXT, name="sam", rho=0.05, seeds=[2], features=[2, 3], epochs=2, **sizes)
    model = noisy_solution(3, dim=6, width=8, noise=0.1, seed=2)
    x = draw_examples(2, num=20, dim=6).gather(range(20)).double()
    y = x[:, 0] * x[:, 1]
    sgd, sam = torch.optim.SGD(model.parameters(), lr=0.01), SAM(model, rho=0.05)
    for epoch in range(2):
        for rows in order(20, seed=2, epoch=epoch).split(10):
            sgd.zero_grad()
            sam.backward(lambda rows=rows: (model(x[rows]).squeeze(1) - y[rows]).square().mean())
            sgd.step()
    loss = (model(x).squeeze(1) - y).square().mean()
    assert seen.values["sam.C3"][2] == pytest.approx(loss.log10().item(), rel=1e-9)
    assert len(seen.series["curves"]["sam.C3"][0]) == 3


def test_every_c_starts_with_the_same_noise() -> None:
    two, three = (noisy_solution(c, dim=6, width=8, noise=0.1, seed=0).state_dict() for c in (2, 3))
    bare = [noisy_solution(c, dim=6, width=8, noise=0.0, seed=0).state_dict() for c in (2, 3)]
    assert torch.allclose(
        two["hidden.weight"] - bare[0]["hidden.weight"], three["hidden.weight"] - bare[1]["hidden.weight"]
    )


def test_a_logarithm_is_a_number_for_whatever_a_run_ends_at() -> None:
    ends = torch.tensor([0.0, 1e-40, 1e-3, 1e40, float("inf"), float("nan")], dtype=torch.float64)
    assert decimal_log(ends).tolist() == pytest.approx([-30, -30, -3, 30, 30, 30])
