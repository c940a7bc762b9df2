"""LookSAM: SAM every k steps, and its direction remembered in between."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from torch import nn

from evenly.errors import UsageError
from evenly.numbers import is_whole
from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.options import Options
from evenly.optim.radius import Radius
from evenly.optim.rule import Point, Rule
from evenly.optim.space import Vector, orthogonal
from evenly.rules import RULES


@dataclass(frozen=True)
class Look(Rule):
    """Remembers g_v, the part of SAM's gradient that is orthogonal to ∇L."""

    combines: ClassVar[bool] = True
    remembers: ClassVar[bool] = True
    k: int = 5
    alpha: float = 0.7

    def displaces(self, step: int) -> bool:
        """Every k-th step."""
        return step % self.k == 0

    def descent(self, here: Point) -> Vector:
        """SAM's gradient; in between g + α (‖g‖/‖g_v‖) g_v."""
        if here.g_adv is not None or here.memory is None:
            return here.g if here.g_adv is None else here.g_adv
        size = here.space.ratio(self.alpha * here.space.length(here.g), here.space.length(here.memory))
        return here.space.mix(here.g, 1.0, here.memory, size)

    def memory_input(self, here: Point) -> Vector | None:
        """g_v, in the steps that look."""
        return None if here.g_adv is None else orthogonal(here.space, here.g_adv, here.g)


class LookSAM(DisplacedGradient):
    """SAM every k steps; in between ∇L + α (‖∇L‖/‖g_v‖) g_v, g_v the part of SAM's gradient orthogonal to ∇L.

    Liu et al., 2022, with whole-network norms as in their equations.
    """

    rule_type = Look

    def __init__(
        self, model: nn.Module | Iterable[Any], *, rho: Radius = RULES["looksam"].rho, k: int = 5, alpha: float = 0.7,
        **options: Unpack[Options],
    ) -> None:  # fmt: skip
        if not is_whole(k):
            raise UsageError(f"k={k} is not a number of steps: LookSAM needs k=1 or more")
        super().__init__(model, Look(k=int(k), alpha=alpha), rho=rho, **options)
