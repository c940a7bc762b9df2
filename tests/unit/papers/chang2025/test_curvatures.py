"""Curvatures of many networks at once, against explicit Hessians."""

import pytest
import torch

from evenly.papers.chang2025.curvatures import curvatures
from evenly.papers.chang2025.parity_runs import draw_examples, initial_network
from evenly.stability import Problem, coherence


def test_curvatures_are_those_of_explicit_hessians_of_the_squared_error_without_a_half() -> None:
    model = initial_network(3, dim=4, width=5)
    x = draw_examples(3, num=7, dim=4).gather(range(7)).double()
    y = x[:, 0] * x[:, 1]
    hessians = []
    for i in range(7):
        g = torch.cat([p.flatten() for p in torch.autograd.grad(model(x[i : i + 1]).sum(), list(model.parameters()))])
        hessians.append(2 * torch.outer(g, g))
    wanted = coherence(Problem.from_dense(torch.stack(hessians)))
    seen = {
        name: float(value)
        for name, value in curvatures({name: p.detach()[None] for name, p in model.named_parameters()}, x[None]).items()
    }
    assert seen["sigma"] == pytest.approx(wanted.sigma)
    assert seen["lambda_max_s"] == pytest.approx(wanted.lambda_max_s)
    assert seen["lambda_max_s_printed"] == pytest.approx(wanted.lambda_max_s_without_root)
    assert seen["sigma_printed"] == pytest.approx(wanted.sigma_without_root)
    assert seen["largest"] == pytest.approx(wanted.largest_example)
    assert seen["lambda_max"] == pytest.approx(wanted.lambda_max)
    assert seen["trace"] == pytest.approx(wanted.trace)
    assert seen["n_trace"] == pytest.approx(7 * wanted.trace)
    assert seen["loss"] == pytest.approx((model(x).squeeze(1) - y).square().mean().item())
