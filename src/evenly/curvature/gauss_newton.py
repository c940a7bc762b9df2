"""The Gauss–Newton matrix of the mean loss, as products that reuse one graph."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from evenly.curvature.chunks import Data, as_chunks
from evenly.curvature.losses import Loss, Mean, mean_loss_of
from evenly.curvature.operator import GIBIBYTE, Operator, Product
from evenly.models.observation import trainable_parameters


def gauss_newton(
    model: nn.Module,
    data: Data,
    *,
    loss: Loss | None = None,
    only: Sequence[str] | None = None,
    chunk: int = 250,
    memory: int = GIBIBYTE,
) -> Operator:
    """G = (1/N) Σ_i J_iᵀ Q_i J_i, the Hessian without the curvature of the network itself (Schraudolph, 2002).

    J_i is the Jacobian of the outputs, Q_i the Hessian of the loss in them. G is positive semi-definite for the
    losses known by name, and equals the Hessian where residuals vanish. Arguments as for `hessian`.

    >>> model = nn.Linear(2, 1, bias=False)
    >>> x = torch.tensor([[1.0, 0.0], [1.0, 2.0]])
    >>> (gauss_newton(model, (x, torch.zeros(2)), loss="squared") @ torch.tensor([1.0, 0.0])).tolist()
    [1.0, 1.0]
    """
    params = list(trainable_parameters(model, only=only).values())
    chunks = as_chunks(data, model=model, size=chunk)
    mean = mean_loss_of(model, chunks, loss)

    def build(x: Tensor, y: Tensor | None, weight: float) -> Product:
        assert y is not None  # mean_loss has refused data without labels
        return gauss_newton_product(model(x), y, mean, params, weight=weight)

    return Operator(build, model=model, params=params, chunks=chunks, memory=memory)


def gauss_newton_product(
    outputs: Tensor, labels: Tensor, mean: Mean, params: Sequence[Tensor], *, weight: float = 1.0
) -> Product:
    """The map v ↦ weight · Jᵀ Q J v with Q the Hessian of the mean loss in the outputs; the graphs are kept.

    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> square = lambda f, y: (f - y).square().sum() / 2
    >>> gauss_newton_product(3 * w, torch.zeros(2), square, [w])([torch.tensor([1.0, 0.0])])[0].tolist()
    [9.0, 0.0]
    """
    leaf = outputs.detach().requires_grad_(True)
    (slope,) = torch.autograd.grad(mean(leaf, labels), leaf, create_graph=True)

    def curve(pushed: Tensor) -> Tensor:
        if not slope.requires_grad:
            return torch.zeros_like(pushed)
        (curved,) = torch.autograd.grad(slope, leaf, weight * pushed, retain_graph=True)
        return curved

    return output_product(outputs, params, curve)


def output_product(outputs: Tensor, params: Sequence[Tensor], curve: Callable[[Tensor], Tensor]) -> Product:
    """The map v ↦ Jᵀ curve(J v) for a linear map `curve` of the outputs; the graph is kept.

    J v comes from two backward passes: u ↦ Jᵀu is linear, and its derivative transposed is J.

    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> output_product(3 * w, [w], lambda f: 2 * f)([torch.tensor([1.0, 0.0])])[0].tolist()
    [18.0, 0.0]
    """
    u = torch.zeros_like(outputs, requires_grad=True)
    pulled = torch.autograd.grad(outputs, params, u, create_graph=True, materialize_grads=True)
    used = [i for i, g in enumerate(pulled) if g.requires_grad]

    def product(v: Sequence[Tensor]) -> Sequence[Tensor]:
        if not used:
            return [torch.zeros_like(p) for p in params]
        (pushed,) = torch.autograd.grad([pulled[i] for i in used], u, [v[i] for i in used], retain_graph=True)
        return torch.autograd.grad(outputs, params, curve(pushed), retain_graph=True, materialize_grads=True)

    return product
