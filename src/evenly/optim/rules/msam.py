"""MSAM: looks ahead along the momentum, and so needs no gradient of its own."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack

from torch import nn

from evenly.errors import UsageError
from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.options import Options
from evenly.optim.radius import Radius
from evenly.optim.rule import Here, Rule, Vector
from evenly.rules import RULES


@dataclass(frozen=True)
class Momentum(Rule):
    """Remembers −v, minus the optimizer's momentum, which is the direction it moves in."""

    looks_first, combines, remembers, climbs = False, True, True, False
    momentum: float = 0.9
    weight_decay: float = 0.0

    def direction(self, here: Here) -> Vector | None:
        """−v; nowhere until there is one."""
        return here.memory

    def descent(self, here: Here) -> Vector:
        """∇L(w + ε) + λ ε: the optimizer adds λ w, so that the displaced weights decay."""
        if here.ascent is None or (isinstance(self.weight_decay, float) and not self.weight_decay):
            return here.g_adv
        return here.space.add(here.g_adv, here.ascent.direction, self.weight_decay * here.ascent.size)

    def lesson(self, here: Here) -> Vector:
        """−(∇L(w + ε) + λ (w + ε))."""
        return here.space.scale(here.space.add(self.descent(here), here.w, self.weight_decay), -1.0)

    def learn(self, here: Here, lesson: Vector) -> Vector:
        """V ← μ v + lesson."""
        return lesson if here.memory is None else here.space.add(lesson, here.memory, self.momentum)


class MSAM(DisplacedGradient):
    """Momentum-SAM: the gradient at w − ρ v/‖v‖, v the optimizer's momentum (Becker et al., 2024); one pass.

    Give `momentum` and `weight_decay` as the optimizer has them: SGD's, or for AdamW β₁ and, since its decay is not
    in the momentum, 0. The loss returned is the one at the displaced weights.
    """

    rule_type, passes = Momentum, 1

    def __init__(
        self, model: nn.Module | Iterable[Any], *, rho: Radius = RULES["msam"].rho, momentum: float = 0.9,
        **options: Unpack[Options],
    ) -> None:  # fmt: skip
        decay = options.pop("weight_decay", 0.0)
        if not (0 <= momentum < 1 and decay >= 0):
            raise UsageError(f"momentum={momentum}, weight_decay={decay}: give the optimizer's, μ in [0, 1), λ ≥ 0")
        super().__init__(model, Momentum(momentum=momentum, weight_decay=decay), rho=rho, **options)
