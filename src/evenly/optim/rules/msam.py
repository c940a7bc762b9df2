"""MSAM: looks ahead along the momentum, and so needs no gradient of its own."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack

from torch import nn

from evenly.errors import UsageError
from evenly.optim.ascent import Ascent, steepest_ascent
from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.options import Options
from evenly.optim.radius import Radius
from evenly.optim.rule import Point, Rule
from evenly.optim.space import Number, Vector
from evenly.rules import RULES


@dataclass(frozen=True)
class Momentum(Rule):
    """Remembers v, the optimizer's momentum; the optimizer moves against it."""

    needs_gradient, combines, remembers, climbs = False, True, True, False
    follows = True  # The optimizer's momentum has the gradient of every step.
    momentum: float = 0.9
    weight_decay: float | None = None

    def ascent(self, here: Point, rho: Number) -> Ascent | None:
        """−ρ v/‖v‖; nowhere until there is a v."""
        return None if here.memory is None else steepest_ascent(here.space, here.w, here.memory, -rho)

    def descent(self, here: Point) -> Vector:
        """∇L(w + ε) + λ ε: the optimizer adds λ w, so that the displaced weights decay."""
        d, e = self.weight_decay, here.ascent
        return here.g_adv if d is None or e is None else here.space.mix(here.g_adv, 1.0, e.direction, d * e.size)

    def memory_input(self, here: Point) -> Vector:
        """∇L(w + ε) + λ (w + ε)."""
        return here.left if self.weight_decay is None else here.space.add(here.left, here.w, self.weight_decay)

    def update_memory(self, here: Point, memory_input: Vector) -> Vector:
        """Update v ← μ v + the new input; the first is copied, because the caller may change `.grad`."""
        v = here.memory
        return here.space.scale(memory_input, 1.0) if v is None else here.space.add(memory_input, v, self.momentum)


class MSAM(DisplacedGradient):
    """Momentum-SAM: the gradient at w − ρ v/‖v‖, v the optimizer's momentum (Becker et al., 2024); one pass.

    `momentum` and `weight_decay` are SGD's, or AdamW's β₁ and 0. The loss is the one at the displaced weights.
    """

    rule_type, passes = Momentum, 1

    def __init__(self, model: nn.Module | Iterable[Any], *, rho: Radius = RULES["msam"].rho,
                 momentum: float = 0.9, **options: Unpack[Options]) -> None:  # fmt: skip
        decay = options.pop("weight_decay", 0.0)
        if not (0 <= momentum < 1 and decay >= 0):
            raise UsageError(f"momentum={momentum}, weight_decay={decay}: give the optimizer's, 0 ≤ μ < 1 and λ ≥ 0")
        super().__init__(model, Momentum(momentum=momentum, weight_decay=decay or None), rho=rho, **options)
