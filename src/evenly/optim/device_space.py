"""Vector algebra that stays on the device, so that no step waits for a number to be read.

Numbers are zero-dimensional tensors on the device. The step cannot detect a displacement that is not finite: its size
becomes 0, and it is counted.
"""

from typing import Any

import torch
from torch import Tensor

from evenly import tree
from evenly.optim.space import TINY, Lists
from evenly.tree import Params


class DeviceLists(Lists):
    """`Lists` whose lengths and products stay where the tensors are.

    >>> space = DeviceLists()
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
        x, y = (torch.cat([tree.wide(t).reshape(-1) for t in each]) for each in (a, b))
        return torch.dot(x, y)

    def add(self, a: Params, b: Params, factor: Any = 1.0) -> list[Tensor]:
        """The sum a + factor · b."""
        if isinstance(factor, Tensor):
            return list(torch._foreach_add(list(a), torch._foreach_mul(list(b), factor)))
        return tree.add(a, b, factor)

    def mix(self, a: Params, s: Any, b: Params, t: Any) -> Params:
        """The sum s · a + t · b, written over a."""
        return super().mix(a, s, torch._foreach_mul(b, t), 1.0) if isinstance(t, Tensor) else super().mix(a, s, b, t)

    def ratio(self, a: Any, b: Any) -> Any:
        """The quotient a/b: 0 where b is too small to divide by, NaN where it is not finite."""
        if not isinstance(b, Tensor):
            return super().ratio(a, b)
        ratio = torch.where(b > TINY, a / b, 0.0)
        return torch.where(torch.isfinite(b), ratio, torch.nan)


class Skips:
    """The number of skipped ascents; those on a device are counted there until the total is read.

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
        """The size, or 0 if it is not finite, which is counted."""
        bad = torch.isfinite(size).logical_not()
        self._there = bad.int() if self._there is None else self._there + bad
        return torch.nan_to_num(size, nan=0.0, posinf=0.0, neginf=0.0)

    def total(self) -> int:
        """The total so far; reading a count kept on a device waits for the device."""
        if self._there is not None:
            self._known, self._there = self._known + int(self._there), None
        return self._known


def space_of(params: Params, adaptive: list[bool] | None = None) -> Lists:
    """The space a rule computes in: on the host for the CPU and for shards, on the device otherwise.

    >>> type(space_of([torch.zeros(1)])).__name__
    'Lists'
    """
    return DeviceLists(adaptive) if on_one_device(params) else Lists(adaptive)


def on_one_device(params: Params) -> bool:
    """Whether all tensors lie whole on the same device, which is not the CPU.

    >>> on_one_device([torch.zeros(1)])
    False
    """
    if not params or any(t.is_cpu or tree.is_shard(t) for t in params):
        return False
    return len({t.device for t in params}) == 1


def loss_scale(scaler: Any, params: Params) -> float | Tensor:
    """The factor of a GradScaler, 1 without one; a tensor where reading it would wait for a device."""
    if scaler is None or not scaler.is_enabled():
        return 1.0
    if not on_one_device(params):
        return float(scaler.get_scale())
    scale: Tensor = scaler.scale(torch.ones((), device=params[0].device))
    return scale
