"""The gradients of random batches at fixed weights: their mean norm and their mean square.

Shapes: P parameters.
"""

from collections.abc import Iterator

import torch
from torch import Tensor, nn

from evenly.curvature.chunks import as_chunks, outputs_of
from evenly.curvature.losses import Loss, mean_loss
from evenly.data.labelled import Labelled
from evenly.errors import UsageError
from evenly.models.observation import flatten, observing, trainable_parameters

BATCHES = 32


def mean_gradient_norm(
    model: nn.Module,
    data: Labelled,
    *,
    batch: int,
    rng: torch.Generator,
    loss: Loss | None = None,
    num: int = BATCHES,
    replacement: bool = False,
) -> float:
    """E‖∇L_B‖ over `num` random batches, drawn with or without `replacement`: the α that models SAM's normalisation.

    >>> data = Labelled(torch.tensor([[3.0, 4.0]] * 4), torch.zeros(4, dtype=torch.int64), ("a", "b"))
    >>> model = nn.Linear(2, 1, bias=False)
    >>> _ = nn.init.zeros_(model.weight)
    >>> mean_gradient_norm(model, data, batch=2, rng=torch.Generator(), loss="squared")  # f − y = 1
    5.0
    """
    drawn = _gradients(model, data, batch=batch, rng=rng, loss=loss, num=num, replacement=replacement)
    norms = [float(g_P.norm()) for g_P in drawn]
    return sum(norms) / len(norms)


def mean_square_gradient(
    model: nn.Module,
    data: Labelled,
    *,
    batch: int,
    rng: torch.Generator,
    loss: Loss | None = None,
    num: int = BATCHES,
    replacement: bool = False,
) -> Tensor:
    """E[g²] of a batch's gradient g, entry by entry (P): the limit of Adam's second moments at fixed weights."""
    total_P: Tensor | None = None
    for g_P in _gradients(model, data, batch=batch, rng=rng, loss=loss, num=num, replacement=replacement):
        total_P = g_P.square() if total_P is None else total_P + g_P.square()
    assert total_P is not None
    return total_P / num


def _gradients(
    model: nn.Module,
    data: Labelled,
    *,
    batch: int,
    rng: torch.Generator,
    loss: Loss | None,
    num: int,
    replacement: bool,
) -> Iterator[Tensor]:
    if batch < 1 or (batch > len(data) and not replacement):
        raise UsageError(f"batch = {batch}: the data have {len(data)} examples; give 1 to {len(data)}.")
    params = list(trainable_parameters(model).values())
    with observing(model):
        few = data.subset(range(min(4, len(data))))
        outputs, labels = outputs_of(model, few)
        mean = mean_loss(loss, outputs, labels)
        for _ in range(num):
            if replacement:
                chosen = torch.randint(len(data), (batch,), generator=rng)
            else:
                chosen = torch.randperm(len(data), generator=rng)[:batch]
            drawn = data.subset(chosen)
            with torch.enable_grad():
                total: list[Tensor] | None = None
                for x, y in as_chunks(drawn, model=model):
                    assert y is not None
                    value = mean(model(x), y) * len(x) / batch
                    grads = list(torch.autograd.grad(value, params, materialize_grads=True))
                    total = grads if total is None else list(torch._foreach_add(total, grads))
            yield flatten(total or [])
