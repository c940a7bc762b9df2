"""‖∇f‖² of linear and ReLU networks, by autograd and by the closed forms of appendix D.

Shapes: N examples, D inputs, H hidden units.
"""

from collections.abc import Sequence

import torch
from torch import Tensor


def by_autograd(v_H: Tensor, weights: Sequence[Tensor], x_ND: Tensor, *, relu: bool) -> Tensor:
    """‖∇f‖² over v and all W of f = vᵀσ(W₁σ(W₂ … x)), an example at a time; σ is ReLU or nothing."""
    params = [p.clone().requires_grad_() for p in (v_H, *weights)]
    norms = []
    for x_D in x_ND:
        h = x_D
        for weight in reversed(params[1:]):
            h = (weight @ h).relu() if relu else weight @ h
        norms.append(sum(g.square().sum() for g in torch.autograd.grad(params[0] @ h, params)))
    return torch.stack(norms)  # type: ignore[arg-type]  # a sum of tensors, and never the 0 of an empty one


def layer_sum(v_H: Tensor, weights: Sequence[Tensor], x_ND: Tensor, *, relu: bool, printed: bool = False) -> Tensor:
    """Σ_j a_j ‖σ_j(x)‖² (eqs. 33, 39): a_j is the squared norm of what comes back to layer j from the output.

    `printed` takes a_j = ‖A₁W₁ ⋯ A_{j−1}W_{j−1}‖² as eq. 39 has it, without v and without the last mask.
    """
    sums = []
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
        sums.append(total)
    return torch.stack(sums)


def worst_error(formula: Tensor, exact: Tensor) -> float:
    """The largest error over the mean: where no unit of an example is active, the gradient itself is zero."""
    return float((formula - exact.to(formula)).abs().max() / exact.to(formula).mean())
