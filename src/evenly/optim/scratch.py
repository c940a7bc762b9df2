"""Reused memory for the displaced weights of a pass."""

from typing import Any

import torch
from torch import Tensor

from evenly.tree import Home, Params, as_addend

#: Tensors of this many bytes or more are worth an operator call of their own.
LARGE = 1 << 20
#: At most this many, so that a step adds a handful of operator calls however many tensors there are.
MOST = 2


class Scratch:
    """Moves plain parameters on the CPU to w + size · direction; `tree.restore` brings them back, bit for bit.

    The parameters point at the new values until they are restored; their own storage is not written. The new values of
    the largest tensors use memory that is kept from step to step. Without it, the allocator may return the pages of one
    copy of the parameters to the system and get them back zeroed in every step, a third of a large MLP's time.

    >>> w = torch.nn.Parameter(torch.tensor([1.0, 2.0]))
    >>> home = Scratch([w]).displace([torch.tensor([1.0, 1.0])], 0.5)
    >>> w.tolist(), home.values
    ([1.5, 2.5], [tensor([1., 2.])])
    """

    def __init__(self, params: list[Tensor]) -> None:
        self.params = params
        large = [i for i, p in enumerate(params) if p.numel() * p.element_size() >= LARGE]
        self.large = sorted(large, key=lambda i: params[i].numel())[-MOST:]
        self.small = [i for i in range(len(params)) if i not in set(self.large)]
        self.kept: list[Tensor | None] = [None] * len(self.large)

    def displace(self, direction: Params, size: float) -> Home:
        """Move the parameters, and return what `tree.restore` needs."""
        values = [p.data for p in self.params]
        direction, size = as_addend(direction, size)
        if self.large:
            there = list(direction)
            if self.small:
                few, along = ([tensors[i] for i in self.small] for tensors in (values, direction))
                for i, new in zip(self.small, torch._foreach_add(few, along, alpha=size), strict=True):
                    there[i] = new
            for k, i in enumerate(self.large):
                self.kept[k] = there[i] = new = _reuse(self.kept[k], values[i])
                torch.add(values[i], direction[i], alpha=size, out=new)
        else:
            there = list(torch._foreach_add(values, direction, alpha=size))
        for p, new in zip(self.params, there, strict=True):
            p.data = new
        return Home(self.params, values, True)

    # The kept memory holds no information: do not pickle it.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "kept": [None] * len(self.large)}


def _reuse(old: Tensor | None, value: Tensor) -> Tensor:
    """The old memory if it fits a tensor like `value`: the network may have changed its precision or layout."""
    fits = old is not None and old.dtype is value.dtype and old.shape == value.shape and old.stride() == value.stride()
    return old if old is not None and fits else torch.empty_like(value)
