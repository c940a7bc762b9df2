"""Lists of tensors on a device other than the CPU, computed with there: nothing is read, so no step waits.

Numbers are tensors of no dimension on the device. What is not finite is not found out in the step: a size that is not a
number becomes 0, and is counted.
"""

from typing import Any

import torch
from torch import Tensor

from evenly import tree
from evenly.optim.space import TINY, Lists
from evenly.tree import Params


class OnDevice(Lists):
    """`Lists` whose lengths and products stay where the tensors are.

    >>> space = OnDevice()
    >>> d = [torch.tensor([3.0]), torch.tensor([4.0])]
    >>> space.ratio(0.1, space.length(d)), space.ratio(0.1, torch.tensor(0.0))
    (tensor(0.0200), tensor(0.))
    >>> [t.item() for t in space.add(d, d, torch.tensor(-1.0))]
    [0.0, 0.0]
    """

    def length(self, a: Params) -> Any:
        """‖a‖, on the device."""
        return tree.norm(a)

    def dot(self, a: Params, b: Params) -> Any:
        """⟨a, b⟩, on the device: two copies and one product rather than a sum for every tensor."""
        x, y = (torch.cat([t.reshape(-1).float() for t in each]) for each in (a, b))
        return torch.dot(x, y)

    def add(self, a: Params, b: Params, factor: Any = 1.0) -> list[Tensor]:
        """The sum a + factor · b."""
        if isinstance(factor, Tensor):
            return list(torch._foreach_add(list(a), torch._foreach_mul(list(b), factor)))
        return tree.add(a, b, factor)

    def ratio(self, a: Any, b: Any) -> Any:
        """The quotient a/b: 0 where b is too small to divide by, NaN where it is not finite."""
        if not isinstance(b, Tensor):
            return super().ratio(a, b)
        found = torch.where(b > TINY, a / b, 0.0)
        return torch.where(torch.isfinite(b), found, torch.nan)


class Skips:
    """How many ascents were left out; those on a device are counted there until somebody asks.

    >>> skips = Skips()
    >>> skips.note(torch.tensor(float("nan"))), skips.note(torch.tensor(0.1))
    (tensor(0.), tensor(0.1000))
    >>> skips.total()
    1
    """

    def __init__(self, known: int = 0) -> None:
        self._known = known
        self._there: Tensor | None = None

    def note(self, size: Tensor) -> Tensor:
        """The size to go: 0 where it is not finite, which is counted."""
        bad = torch.isfinite(size).logical_not()
        self._there = bad.int() if self._there is None else self._there + bad
        return torch.nan_to_num(size, nan=0.0, posinf=0.0, neginf=0.0)

    def total(self) -> int:
        """All so far; where some were counted on a device, it is waited for."""
        if self._there is not None:
            self._known, self._there = self._known + int(self._there), None
        return self._known


def space_of(params: Params, adaptive: list[bool] | None = None, *, scaler: Any = None) -> Lists:
    """Where a rule computes: on the host for the CPU and for shards, on the device otherwise.

    With a GradScaler gradients that are not finite are an everyday matter, and a rule that remembers must not learn
    from them: they are found out at once, on the host.

    >>> type(space_of([torch.zeros(1)])).__name__
    'Lists'
    """
    if scaler is not None or not params or any(t.is_cpu or tree.is_shard(t) for t in params):
        return Lists(adaptive)
    return OnDevice(adaptive) if len({t.device for t in params}) == 1 else Lists(adaptive)
