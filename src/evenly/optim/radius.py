"""The radius ρ: a number, a function of the step, or one for each parameter group."""

import math
from collections.abc import Callable
from typing import Any

from torch import Tensor

from evenly.errors import UsageError

Radius = float | Callable[[int], float]
LARGEST = 1e6  # single precision holds weights displaced by this much, whatever the gradient it is divided by


def radius_at(rho: Any, step: int) -> float:
    """The radius of a step, counted from 0.

    >>> radius_at(0.05, 3), radius_at(lambda step: 0.1 * step, 3)
    (0.05, 0.30000000000000004)
    >>> radius_at(-1.0, 0)
    Traceback (most recent call last):
    evenly.errors.UsageError: rho=-1.0 is not a radius: give a number from 0 to 1e6 (0.05 is usual for SAM)
    """
    value = rho(step) if callable(rho) else rho
    try:
        size = float(value)
    except (TypeError, ValueError):
        size = math.nan
    if not 0 <= size <= LARGEST:
        where = f" at step {step}" if callable(rho) else ""
        raise UsageError(f"rho={value!r}{where} is not a radius: give a number from 0 to 1e6 (0.05 is usual for SAM)")
    return size


class GroupRadii:
    """Radii of single parameter groups, `{"params": ..., "rho": 0.1}`, read again at every step.

    The norm that divides is over all groups, as in davda54's and pytorch_optimizer's SAM.
    """

    def __init__(self, groups: list[tuple[dict[str, Any], list[Tensor]]], params: list[Tensor]) -> None:
        places = {id(p): i for i, p in enumerate(params)}
        self.groups = [(group, [places[id(p)] for p in members]) for group, members in groups]

    def at(self, step: int, default: float, num: int) -> list[float]:
        """The radius of each of `num` parameters."""
        radii = [default] * num
        for group, places in self.groups:
            own = radius_at(group["rho"], step)
            for i in places:
                radii[i] = own
        return radii

    def follow(self, optimizer: Any) -> list[tuple[float, float]]:
        """Read the radii of an optimizer from its groups of now: its `load_state_dict` puts new ones in their place.

        Returns the old and the new radius of each group where they differ.
        """
        now = {id(group): group for group in optimizer.param_groups}
        changed = []
        for place, (old, places) in enumerate(self.groups):
            if id(old) in now or "lr" not in old:  # without the optimizer's settings it was never one of its groups
                continue
            members = set(map(id, old["params"]))
            for group in now.values():
                if "rho" in group and set(map(id, group["params"])) == members:
                    self.groups[place] = (group, places)
                    if group["rho"] != old["rho"]:
                        changed.append((old["rho"], group["rho"]))
        return changed

    def __bool__(self) -> bool:
        return bool(self.groups)
