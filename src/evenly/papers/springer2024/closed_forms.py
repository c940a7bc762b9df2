"""Appendix D: the closed forms for the norm of ∇f, and the re-weighting log(λ̃/λ) that they foretell.

Shapes: N examples, D inputs, H hidden units.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from evenly.diagnostics import reweighting
from evenly.errors import UsageError
from evenly.papers.experiment import Context, Found
from evenly.papers.springer2024.toys import Grown, Toy
from evenly.rng import generator

DIM, WIDTH, EXAMPLES = 6, 8, 50


def norms(context: Context, *, seeds: Sequence[int], layers: int) -> Found:
    """‖∇f‖² of random networks by autograd beside the appendix's formulas: the largest error of each over the mean.

    `two_layer.printed` is eq. 29 as it stands, ‖Wx‖² + ‖v‖²‖x‖; `two_layer.squared` has ‖x‖². `linear` is eq. 33 and
    `relu` eq. 39 with v and the last mask in a_j, where they belong; `relu.printed` is eq. 39 with a_j as printed.
    """
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for seed in seeds:
        rng = generator(seed, "appendixD")
        x_ND = torch.randn(EXAMPLES, DIM, generator=rng, dtype=torch.float64)
        v_H = torch.randn(WIDTH, generator=rng, dtype=torch.float64) / math.sqrt(WIDTH)
        sizes = [WIDTH] * (layers - 1) + [DIM]
        weights = [torch.randn(WIDTH, size, generator=rng, dtype=torch.float64) / math.sqrt(size) for size in sizes]
        two = [weights[-1]]
        exact_two = by_autograd(v_H, two, x_ND, relu=False)
        wx_NH = x_ND @ weights[-1].T
        printed = wx_NH.square().sum(1) + v_H.square().sum() * x_ND.norm(dim=1)
        values["two_layer.printed"][seed] = _worst(printed, exact_two)
        values["two_layer.squared"][seed] = _worst(layer_sum(v_H, two, x_ND, relu=False), exact_two)
        for name, relu in (("linear", False), ("relu", True)):
            exact = by_autograd(v_H, weights, x_ND, relu=relu)
            values[name][seed] = _worst(layer_sum(v_H, weights, x_ND, relu=relu), exact)
        exact = by_autograd(v_H, weights, x_ND, relu=True)
        values["relu.printed"][seed] = _worst(layer_sum(v_H, weights, x_ND, relu=True, printed=True), exact)
    return Found(dict(values))


def foretold(
    context: Context, *, seeds: Sequence[int], chi: float, rho: float, epochs: int, sizes: Mapping[str, int]
) -> Found:
    """log(λ̃/λ) of every training example of the toy under its own ascent, beside ρ‖∇f‖ (eq. 25) and ρ‖φ‖ (eq. 27).

    `KIND.correlation` of measured and foretold over the examples (KIND `sam` or `lsam`); `.error` the median relative
    error of the exponential loss's formula, `.error_fitted` that among examples with λ < 0.01, whose share is
    `fitted`, and `.error_logistic` that of the logistic loss's, (1 − λ)·ρ‖∇f‖. `norm.error`: ‖∇_v f‖ beside ‖φ(x)‖.
    """
    grown = Grown([Toy(seed, chi) for seed in seeds], **sizes)
    for _ in grown.epochs([epochs]):
        pass
    seen = grown.seen()
    values: dict[str, dict[int, float]] = defaultdict(dict)
    drawn: dict[str, dict[str, list[float]]] = {}
    for place, seed in enumerate(seeds):
        model, train = grown.ensemble.member(place), grown.data[place].train
        fitted = seen.importance[place] < 0.01
        if not fitted.any():
            raise UsageError(
                f"seed {seed}: after {epochs} epochs no example has λ < 0.01, and eq. 25 is about such: train longer."
            )
        values["fitted"][seed] = float(fitted.double().mean())
        for kind, only in (("sam", None), ("lsam", ["head"])):
            found = reweighting(model, train, rho=rho, only=only)
            truth = found.measured.double()
            error_N = (found.predicted.double() / truth - 1).abs()
            stacked = torch.stack([truth, found.predicted.double()])
            values[f"{kind}.correlation"][seed] = float(torch.corrcoef(stacked)[0, 1])
            values[f"{kind}.error"][seed] = float(error_N.quantile(0.5))
            values[f"{kind}.error_fitted"][seed] = float(error_N[fitted].quantile(0.5))
            values[f"{kind}.error_logistic"][seed] = float(
                (found.predicted_logistic.double() / truth - 1).abs().quantile(0.5)
            )
            if only:
                norm = rho * torch.linalg.vector_norm(seen.phi[place], dim=1).double()
                values["norm.error"][seed] = _worst(found.predicted.double(), norm)
            if place == 0:
                drawn[kind] = {"measured": _short(truth), "predicted": _short(found.predicted)}
    return Found(dict(values), drawn)


def by_autograd(v_H: Tensor, weights: Sequence[Tensor], x_ND: Tensor, *, relu: bool) -> Tensor:
    """‖∇f‖² over v and all W of f = vᵀσ(W₁σ(W₂ … x)), an example at a time; σ is ReLU or nothing."""
    params = [p.clone().requires_grad_() for p in (v_H, *weights)]
    found = []
    for x_D in x_ND:
        h = x_D
        for weight in reversed(params[1:]):
            h = (weight @ h).relu() if relu else weight @ h
        found.append(sum(g.square().sum() for g in torch.autograd.grad(params[0] @ h, params)))
    return torch.stack(found)  # type: ignore[arg-type]  # a sum of tensors, and never the 0 of an empty one


def layer_sum(v_H: Tensor, weights: Sequence[Tensor], x_ND: Tensor, *, relu: bool, printed: bool = False) -> Tensor:
    """Σ_j a_j ‖σ_j(x)‖² (eqs. 33, 39): a_j is the squared norm of what comes back to layer j from the output.

    `printed` takes a_j = ‖A₁W₁ ⋯ A_{j−1}W_{j−1}‖² as eq. 39 has it, without v and without the last mask.
    """
    found = []
    for x_D in x_ND:
        outputs, masks = [x_D], []  # from the input upwards
        for weight in reversed(weights):
            z = weight @ outputs[-1]
            masks.append((z > 0).to(z) if relu else torch.ones_like(z))
            outputs.append(z * masks[-1])
        outputs.reverse()  # σ_1, …, σ_{L−1}, x
        masks.reverse()
        total = outputs[0].square().sum()  # j = 1: a_1 = 1
        back = v_H
        product = torch.eye(len(v_H), dtype=v_H.dtype)
        for weight, mask, output in zip(weights, masks, outputs[1:], strict=True):
            product = product @ (mask[:, None] * weight)
            scale = product.square().sum() if printed else (back * mask).square().sum()
            total = total + scale * output.square().sum()
            back = weight.T @ (back * mask)
        found.append(total)
    return torch.stack(found)


def _worst(found: Tensor, exact: Tensor) -> float:
    """The largest error over the mean: where no unit of an example is active, the gradient itself is zero."""
    return float((found - exact.to(found)).abs().max() / exact.to(found).mean())


def _short(values: Tensor) -> list[float]:
    return [round(float(value), 5) for value in values]
