"""The Hessian of the mean loss, as products that reuse one graph."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from evenly.curvature.chunks import Data, as_chunks
from evenly.curvature.losses import Loss, mean_loss_of
from evenly.curvature.operator import GIBIBYTE, Operator, Product
from evenly.models.observation import trainable_parameters


def hessian(
    model: nn.Module,
    data: Data,
    *,
    loss: Loss | None = None,
    only: Sequence[str] | None = None,
    chunk: int = 250,
    memory: int = GIBIBYTE,
) -> Operator:
    """H = ∇² (1/N) Σ_i ℓ(f(x_i), y_i) over the trainable parameters, as an operator: `hessian(model, data) @ v`.

    Pearlmutter's (1994) product by double backward, Hv = ∇⟨∇L, v⟩. The graph of ∇L is kept between products.
    Batches of any sizes give the Hessian of the mean over all examples.

    Parameters
    ----------
    loss
        "cross-entropy", "logistic" or "squared", or a function of (outputs, labels) that returns a mean over the
        batch or one loss per example; by default what fits the labels.
    only
        Names of the parameters to keep, whole or their beginning ("head"); the others are held fixed.
    chunk
        Examples per graph.
    memory
        Bytes that kept graphs may take; more examples are computed again for each product.

    Examples
    --------
    >>> model = nn.Linear(2, 1, bias=False)
    >>> x = torch.tensor([[1.0, 0.0], [1.0, 2.0]])
    >>> (hessian(model, (x, torch.zeros(2)), loss="squared") @ torch.tensor([1.0, 0.0])).tolist()  # H = XᵀX/N
    [1.0, 1.0]
    """
    params = list(trainable_parameters(model, only=only).values())
    chunks = as_chunks(data, model=model, size=chunk)
    mean = mean_loss_of(model, chunks, loss)

    def build(x: Tensor, y: Tensor | None, weight: float) -> Product:
        assert y is not None  # mean_loss has refused data without labels
        return hessian_product(weight * mean(model(x), y), params)

    return Operator(build, model=model, params=params, chunks=chunks, memory=memory)


def hessian_product(value: Tensor, params: Sequence[Tensor]) -> Product:
    """The map v ↦ ∇⟨∇value, v⟩, with the graph of ∇value kept.

    >>> w = torch.tensor([1.0, 2.0], requires_grad=True)
    >>> hessian_product((w**3).sum(), [w])([torch.tensor([1.0, 1.0])])[0].tolist()
    [6.0, 12.0]
    """
    gradient = torch.autograd.grad(value, params, create_graph=True, materialize_grads=True)
    # A gradient without a graph is constant in the parameters (a loss linear in them): it adds nothing to H.
    curved = [i for i, g in enumerate(gradient) if g.requires_grad]

    def product(v: Sequence[Tensor]) -> Sequence[Tensor]:
        if not curved:
            return [torch.zeros_like(p) for p in params]
        return torch.autograd.grad(
            [gradient[i] for i in curved],
            params,
            [v[i] for i in curved],
            retain_graph=True,
            materialize_grads=True,
        )

    return product
