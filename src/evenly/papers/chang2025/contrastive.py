"""SGD on (f − y)² plus a contrastive term on the hidden units, for many small networks at once.

The term reads pairs of hidden vectors, which a loss of an ensemble does not see; so the few steps are taken here.
Shapes: K members, N examples, B of a batch, D inputs, M hidden units.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from evenly.data.batches import order

NAMES = ("hidden.weight", "hidden.bias", "head.weight")
MARGIN = 1.0
Weights = Mapping[str, Tensor]


def run(
    start: Weights,
    x_KND: Tensor,
    *,
    weight_K: Tensor,
    seeds: Sequence[int],
    lr: float,
    batch: int,
    epochs: int,
    measure: Callable[[Weights], dict[str, Tensor]],
) -> dict[str, Tensor]:
    """What `measure` sees before the first epoch and after each, stacked; batches are those of an ensemble's."""
    now = {name: start[name].double().clone().requires_grad_(True) for name in NAMES}
    seen = [_measure(measure, now)]
    num = x_KND.shape[1]
    for epoch in range(epochs):
        order_KN = torch.stack([order(num, seed=seed, epoch=epoch) for seed in seeds])
        for first in range(0, num, batch):
            rows_KB = order_KN[:, first : first + batch]
            x_KBD = x_KND.gather(1, rows_KB[..., None].expand(-1, -1, x_KND.shape[2]))
            slopes = torch.autograd.grad(objective(now, x_KBD, weight_K).sum(), list(now.values()))
            with torch.no_grad():
                for value, slope in zip(now.values(), slopes, strict=True):
                    value -= lr * slope
        seen.append(_measure(measure, now))
    return {name: torch.stack([each[name] for each in seen]) for name in seen[0]}


def objective(weights: Weights, x_KBD: Tensor, weight_K: Tensor) -> Tensor:
    """Mean (f − y)² of a batch plus weight · contrast, one number per member."""
    hidden_KBM = (x_KBD @ weights["hidden.weight"].mT + weights["hidden.bias"][:, None]).relu()
    f_KB = (hidden_KBM * weights["head.weight"].reshape(len(x_KBD), 1, -1)).sum(2)
    y_KB = x_KBD[..., 0] * x_KBD[..., 1]
    return (f_KB - y_KB).square().mean(1) + weight_K * contrastive(hidden_KBM, y_KB)


def contrastive(hidden_KBM: Tensor, y_KB: Tensor) -> Tensor:
    """Pairs of one class are drawn together, others pushed apart to the margin 1 (Hadsell et al., 2006).

    meanᵢ≠ⱼ of d²_ij where yᵢ = yⱼ, and of max(0, 1 − d_ij)² where not; d_ij = ‖hᵢ − hⱼ‖.

    >>> contrastive(torch.tensor([[[0.0], [2.0]]]), torch.tensor([[1.0, 1.0]])).tolist()
    [4.0]
    """
    square_KBB = (hidden_KBM[:, :, None] - hidden_KBM[:, None]).square().sum(3)
    # The root has no slope at 0, where examples that no unit sees coincide.
    apart_KBB = torch.where(square_KBB > 0, square_KBB, 1.0).sqrt() * (square_KBB > 0)
    alike_KBB = y_KB[:, :, None] == y_KB[:, None]
    each_KBB = torch.where(alike_KBB, square_KBB, (MARGIN - apart_KBB).clamp_min(0).square())
    num = y_KB.shape[1]
    others = 1 - torch.eye(num, dtype=each_KBB.dtype)
    return (each_KBB * others).sum((1, 2)) / max(1, num * (num - 1))


def _measure(measure: Callable[[Weights], dict[str, Tensor]], now: Weights) -> dict[str, Tensor]:
    with torch.no_grad():
        return measure(now)
