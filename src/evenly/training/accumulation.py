"""Gradient accumulation: a batch in parts, with the gradient of the whole and the memory of one part.

Each part is differentiated as soon as its loss is known, and its activations are freed; only the sum of the gradients,
one copy of the parameters, is kept. The loss that is returned has that sum as its gradient, so an optimizer's closure
or SAM differentiates it like any other loss.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor


def in_parts(
    loss: Callable[..., Tensor], batch: Sequence[Tensor], *, num: int, params: Sequence[Tensor], scaler: Any = None
) -> Tensor:
    """The loss of a batch, a mean over examples, computed in `num` parts; `scaler` is the GradScaler of fp16, if any.

    BatchNorm normalises each part separately, as on that many devices.

    >>> w = torch.ones(2, requires_grad=True)
    >>> x = torch.arange(6.0).view(3, 2)
    >>> in_parts(lambda x: (x @ w).mean(), [x], num=2, params=[w]).backward()
    >>> w.grad  # the mean over all three
    tensor([2., 3.])
    """
    parts = list(zip(*(tensor.tensor_split(min(num, len(batch[0]))) for tensor in batch), strict=True))
    scale = None if scaler is None else scaler.scale(torch.ones((), device=params[0].device))
    total: Tensor = _InParts.apply(loss, parts, len(batch[0]), scale, *params)  # type: ignore[no-untyped-call]  # torch's own
    return total


class _InParts(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, loss: Callable[..., Tensor], parts: list[Any], num: int, scale: Tensor | None, *params: Tensor
    ) -> Tensor:
        total: Tensor | None = None
        sums: list[Tensor | None] = [None] * len(params)
        for part in parts:
            with torch.enable_grad():
                one = loss(*part) * (len(part[0]) / num)
                # Half precision needs the loss scale here, where gradients are small; it is divided out below.
                gradients = torch.autograd.grad(one if scale is None else one * scale, params, allow_unused=True)
            total = one.detach() if total is None else total + one.detach()
            _add(sums, gradients)
        assert total is not None
        ctx.sums, ctx.scale = sums, scale
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Any:
        factor = grads[0] if ctx.scale is None else grads[0] / ctx.scale
        scaled = iter(torch._foreach_mul([g for g in ctx.sums if g is not None], factor))
        return None, None, None, None, *(None if g is None else next(scaled) for g in ctx.sums)


def _add(sums: list[Tensor | None], gradients: Sequence[Tensor | None]) -> None:
    """Add the gradients of a part to those before; None is the gradient of a parameter that has not been used."""
    begun = [(total, g) for total, g in zip(sums, gradients, strict=True) if total is not None and g is not None]
    if begun:
        torch._foreach_add_(*map(list, zip(*begun, strict=True)))
    for place, g in enumerate(gradients):
        if g is not None and sums[place] is None:
            # A copy: one tensor may be the gradient of several parameters, or a single number expanded.
            sums[place] = g.clone()
