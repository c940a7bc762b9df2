"""A trained network as a stability problem, and how close it is to a minimum.

Shapes: N examples, C outputs of one example, P parameters.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, jacrev

from evenly.curvature.chunks import Data, as_chunks, outputs_of
from evenly.curvature.gram import block_gram, check_room
from evenly.curvature.losses import Loss, Name, loss_name, mean_loss
from evenly.errors import UsageError
from evenly.models.observation import flatten, observing, trainable_parameters, unflatten
from evenly.stability.problem import Problem
from evenly.stability.tables import threshold_report

MEMORY = 2 << 30  # bytes that exact per-example Hessians may take
RANK = 300  # leading directions kept of a large Gram matrix
DENSE = 1200  # rows up to which all directions of a Gram matrix are kept


@dataclass(frozen=True)
class Nearness:
    """How close a network is to a minimum of its mean loss: both numbers are 0 where it fits every example.

    `residual` is maxᵢ ‖∂lossᵢ/∂f(xᵢ)‖, the largest |f − y| under squared loss.
    """

    gradient_norm: float
    residual: float


def network_problem(
    model: nn.Module,
    data: Data,
    *,
    loss: Name | None = None,
    only: Sequence[str] | None = None,
    rank: int | None = None,
) -> Problem:
    """The Gauss–Newton curvatures Hᵢ = JᵢᵀQᵢJᵢ of a network's examples, from their block Gram.

    Qᵢ is the Hessian of the loss in the outputs. Hᵢ is the exact Hessian where the residual is 0, and positive
    semidefinite everywhere. `loss` is "squared", "logistic" or "cross-entropy", by default as for `curvature.gram`.
    With `rank`, a Gram of more than 1,200 rows (examples × outputs) is kept in so many leading directions, and the
    problem's `truncation` bounds the error: seconds instead of minutes for 500 examples of ten classes. A Gram that
    would not fit into memory is refused beforehand, with the number of examples that fit.

    >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    >>> network_problem(nn.Linear(2, 1, bias=False), (x, torch.zeros(2)), loss="squared").trace  # mean ‖x‖²
    15.0
    """
    with observing(model, training=None):
        outputs, labels = outputs_of(model, data)
    name = loss_name(loss, outputs, labels)
    _check_room(*outputs.flatten(1).shape, entry=outputs.element_size(), rank=rank)
    gram = block_gram(model, data, loss=name, only=only)
    kept = rank if len(gram) > DENSE else None
    return Problem.from_gram(gram, num_outputs=outputs[0].numel(), rank=kept)


def _check_room(num: int, width: int, *, entry: int, rank: int | None) -> None:
    """Refuse, before the work begins, a Gram matrix whose copies would not fit into memory.

    K and its symmetric part are kept in its own precision. In double there are K, its eigenvectors and what `eigh`
    works with, or for leading directions only Tr HᵢHⱼ, twice while it is made.
    """
    is_dense = rank is None or num * width <= DENSE
    check_room(num, width, entry=2 * entry + (40 if is_dense else 16 / width**2), device="cpu")


def nearness(model: nn.Module, data: Data, *, loss: Loss | None = None) -> Nearness:
    """The norm of the gradient of the mean loss, and the largest residual.

    >>> x = torch.tensor([[3.0, 4.0]])
    >>> zero = nn.Linear(2, 1, bias=False).requires_grad_(True)
    >>> _ = nn.init.zeros_(zero.weight)
    >>> nearness(zero, (x, torch.ones(1)), loss="squared")  # f − y = −1, gradient −x
    Nearness(gradient_norm=5.0, residual=1.0)
    """
    chunks = as_chunks(data, model=model)
    params = list(trainable_parameters(model).values())
    total = [torch.zeros_like(p) for p in params]
    worst = 0.0
    with observing(model, training=None), torch.enable_grad():
        for x, y in chunks:
            outputs = model(x)
            leaf = outputs.detach().requires_grad_(True)
            mean = mean_loss(loss, leaf, y)
            assert y is not None  # `mean_loss` has refused data without labels
            (slopes,) = torch.autograd.grad(len(x) * mean(leaf, y), leaf)
            worst = max(worst, float(slopes.flatten(1).norm(dim=1).max() if slopes.ndim > 1 else slopes.abs().max()))
            grads = torch.autograd.grad(outputs, params, slopes / chunks.num_examples, allow_unused=True)
            for sum_so_far, gradient in zip(total, grads, strict=True):
                if gradient is not None:
                    sum_so_far += gradient
    return Nearness(float(torch.stack([t.norm() for t in total]).norm()), worst)


def per_example_hessians(model: nn.Module, data: Data, *, loss: Loss | None = None) -> Tensor:
    """The exact Hessian of every example's loss, N × P × P: for small networks, to compare with Gauss–Newton.

    Away from a minimum they have negative eigenvalues: give them to `coherence_of_hessians`, which counts the pairs for
    which coherence is undefined.

    >>> x = torch.tensor([[1.0, 2.0]])
    >>> per_example_hessians(nn.Linear(2, 1, bias=False), (x, torch.zeros(1)), loss="squared").tolist()
    [[[1.0, 2.0], [2.0, 4.0]]]
    """
    chunks = as_chunks(data, model=model)
    params = trainable_parameters(model)
    w_P = flatten([p.detach() for p in params.values()])
    needed = chunks.num_examples * len(w_P) ** 2 * w_P.element_size()
    if needed > MEMORY:
        raise UsageError(
            f"{chunks.num_examples} Hessians of {len(w_P):,} parameters take {needed / 2**30:.0f} GiB: "
            "take fewer examples, or Gauss–Newton curvature (`network_problem`), which needs N × N only."
        )
    hessians = []
    with observing(model, training=None):
        for x, y in chunks:
            for i in range(len(x)):
                one = None if y is None else y[i : i + 1]

                def value(w: Tensor, x: Tensor = x[i : i + 1], y: Tensor | None = one) -> Tensor:
                    named = dict(zip(params, unflatten(w, list(params.values())), strict=True))
                    outputs = functional_call(model, named, (x,))
                    return mean_loss(loss, outputs, y)(outputs, y)  # type: ignore[arg-type]  # `mean_loss` has refused None

                hessians.append(jacrev(grad(value))(w_P).detach())
    return torch.stack(hessians)


def network_report(
    model: nn.Module,
    data: Data,
    *,
    batch: int,
    lr: float,
    rho_over_alpha: float = 0.0,
    loss: Name | None = None,
) -> dict[str, Any]:
    """`threshold_report` for a network on its training data, with its gradient norm and residual.

    >>> x = torch.eye(4)
    >>> report = network_report(nn.Linear(4, 1, bias=False), (x, torch.ones(4)), batch=2, lr=0.1, loss="squared")
    >>> round(report["methods"]["SGD"]["eta_exact"], 6)
    4.0
    """
    near = nearness(model, data, loss=loss)
    return threshold_report(
        network_problem(model, data, loss=loss),
        batch=batch,
        lr=lr,
        rho_over_alpha=rho_over_alpha,
        gradient_norm=near.gradient_norm,
        residual=near.residual,
    )
