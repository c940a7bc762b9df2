"""VaSSO: ascent along a running mean of the gradients, whose variance is smaller."""

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
class VarianceSuppressed(Rule):
    """Remembers d, the running mean of the gradients."""

    remembers: ClassVar[bool] = True
    ascent_checks_input: ClassVar[bool] = True
    theta: float = 0.4

    def direction(self, here: Point) -> Vector:
        """The direction d, updated with this gradient."""
        return self.update_memory(here, here.g)

    def memory_input(self, here: Point) -> Vector:
        """The gradient g."""
        return here.g

    def update_memory(self, here: Point, memory_input: Vector) -> Vector:
        """Update d ← (1 − θ) d + θ g; the first d is the first g."""
        return memory_input if here.memory is None else here.space.blend(here.memory, memory_input, self.theta)


class VaSSO(DisplacedGradient):
    """Variance-suppressed SAM: the gradient at w + ρ d/‖d‖, d ← (1 − θ) d + θ ∇L (Li & Giannakis, 2023)."""

    rule_type = VarianceSuppressed

    def __init__(
        self, model: nn.Module | Iterable[Any], *, rho: Radius = RULES["vasso"].rho, theta: float = 0.4,
        **options: Unpack[Options],
    ) -> None:  # fmt: skip
        if not 0 < theta <= 1:
            raise UsageError(f"theta={theta} is not the weight of a new gradient: give a number in (0, 1]; 1 is SAM")
        super().__init__(model, VarianceSuppressed(theta=theta), rho=rho, **options)
