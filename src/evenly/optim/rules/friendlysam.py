"""FriendlySAM: without the part of the gradient that all batches share."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from torch import nn

from evenly.errors import UsageError
from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.options import Options
from evenly.optim.radius import Radius
from evenly.optim.rule import Point, Rule
from evenly.optim.space import Vector
from evenly.rules import RULES


@dataclass(frozen=True)
class Friendly(Rule):
    """Remembers m, the running mean of the gradients before this one, as in the authors' code."""

    remembers: ClassVar[bool] = True
    ascent_checks_input: ClassVar[bool] = True
    sigma: float = 1.0
    decay: float = 0.9

    def direction(self, here: Point) -> Vector:
        """The direction d = g − σ m; the first step has no m and equals SAM's."""
        return here.g if here.memory is None else here.space.add(here.g, here.memory, -self.sigma)

    def memory_input(self, here: Point) -> Vector:
        """The gradient g."""
        return here.g

    def update_memory(self, here: Point, memory_input: Vector) -> Vector:
        """Update m ← λ m + (1 − λ) g; the first m is the first g."""
        return memory_input if here.memory is None else here.space.blend(here.memory, memory_input, 1 - self.decay)


class FriendlySAM(DisplacedGradient):
    """SAM along d = ∇L − σ m, m the running mean of the gradients with decay λ (Li et al., 2024)."""

    rule_type = Friendly

    def __init__(
        self, model: nn.Module | Iterable[Any], *, rho: Radius = RULES["friendlysam"].rho, sigma: float = 1.0,
        decay: float = 0.9, **options: Unpack[Options],
    ) -> None:  # fmt: skip
        if not 0 <= decay < 1:
            raise UsageError(f"decay={decay} is not that of a running mean: give a number in [0, 1)")
        super().__init__(model, Friendly(sigma=sigma, decay=decay), rho=rho, **options)
