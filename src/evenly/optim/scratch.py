"""Where displaced weights lie while a pass is made there: in memory that is at hand already."""

from typing import Any

import torch
from torch import Tensor

from evenly.tree import Home, Params

#: Tensors of this many bytes or more are worth an operator of their own: memory, not calls, is what they cost.
LARGE = 1 << 20
#: No more than these, so that a step adds a handful of operators whatever the number of tensors.
MOST = 2


class Scratch:
    """Moves plain parameters on the CPU to w + size · direction; `tree.restore` brings them back, bit for bit.

    The parameters point at the new values for a while; their own storage is not touched. The new values of the
    largest tensors lie in memory that is kept from step to step. A step so asks the allocator for no more than two
    plain passes do; otherwise the pages of one copy of the parameters may go back to the system and come again,
    emptied, every step, which costs a large MLP a third of its time.

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
        if self.large:
            there = list(direction)
            if self.small:
                few, along = ([tensors[i] for i in self.small] for tensors in (values, direction))
                for i, new in zip(self.small, torch._foreach_add(few, along, alpha=size), strict=True):
                    there[i] = new
            for k, i in enumerate(self.large):
                self.kept[k] = there[i] = new = _fitting(self.kept[k], values[i])
                torch.add(values[i], direction[i], alpha=size, out=new)
        else:
            there = list(torch._foreach_add(values, direction, alpha=size))
        for p, new in zip(self.params, there, strict=True):
            p.data = new
        return Home(self.params, values, True)

    # What is kept is worth nothing but its place in memory.
    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "kept": [None] * len(self.large)}


def _fitting(old: Tensor | None, value: Tensor) -> Tensor:
    """The old memory if a tensor like `value` fits it; a network may have changed its precision or layout."""
    fits = old is not None and old.dtype is value.dtype and old.shape == value.shape and old.stride() == value.stride()
    return old if old is not None and fits else torch.empty_like(value)
