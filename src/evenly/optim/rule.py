"""The interface of a SAM rule: where it moves, how it combines gradients, what it remembers."""

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

from evenly.errors import UsageError
from evenly.optim.ascent import Ascent, steepest_ascent, unnormalised_ascent
from evenly.optim.space import Number, Space, Vector


class Point(NamedTuple):
    """Where a rule computes: the weights, the gradients so far, the memory, the step and the perturbation group.

    `ascent` and `g_adv`, the displacement and the gradient there, and `left`, what `descent` returned, are None until
    they are known.
    """

    space: Space
    w: Vector
    g: Vector | None
    memory: Vector | None
    step: int = 0
    group: int = 0
    ascent: Ascent | None = None
    g_adv: Vector | None = None
    left: Vector | None = None


@dataclass(frozen=True)
class Rule:
    """SAM (Foret et al., 2021); other rules override what differs.

    Fields are the settings of a rule. Methods are pure, except that `descent` may write over the last gradient. Only
    one vector, `memory`, lives between steps. `update_memory` computes it from `memory_input`; the results of an
    optimizer step are averaged over its perturbation groups, processes and micro-batches, so it must be linear in the
    input.
    """

    #: Whether the gradient at the weights is needed before moving.
    needs_gradient: ClassVar[bool] = True
    #: Whether the displacement has length ρ, whatever the length of the direction.
    normalises: ClassVar[bool] = True
    #: Whether `descent` combines the gradient at the displaced weights with others.
    combines: ClassVar[bool] = False
    #: Whether the rule has a memory.
    remembers: ClassVar[bool] = False
    #: Whether it remembers the gradients of plain steps too (ρ = 0, or between those that `every` chooses).
    follows: ClassVar[bool] = False
    #: Whether a finite displacement proves that `memory_input` is finite, so that no check is needed.
    ascent_checks_input: ClassVar[bool] = False
    #: Whether the rule ascends an objective, to which `weight_decay` can be added.
    climbs: ClassVar[bool] = True
    #: η of ASAM's stretched ball; None is the round ball.
    eta: float | None = None

    def displaces(self, step: int) -> bool:
        """Whether this step moves the weights at all."""
        return True

    def direction(self, here: Point) -> Vector | None:
        """Where to move; None for no displacement yet."""
        return here.g

    def ascent(self, here: Point, rho: Number) -> Ascent | None:
        """How far to move along the direction."""
        d = self.direction(here)
        if d is None:
            return None
        if self.normalises:
            return steepest_ascent(here.space, here.w, d, rho, eta=self.eta)
        return unnormalised_ascent(here.space, d, rho)

    def descent(self, here: Point) -> Vector:
        """The final gradient, for rules that combine; `g_adv` is None in a step without displacement.

        It may be written over the last gradient, `g_adv` or else `g`, by `space.mix`.
        """
        return here.g_adv

    def memory_input(self, here: Point) -> Vector | None:
        """The input of `update_memory` from a step that displaces; None for no update."""
        return None

    def update_memory(self, here: Point, memory_input: Vector) -> Vector:
        """The memory after this input; `here.memory` is None before the first."""
        return memory_input

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise UsageError(f"{setting.name}={value!r} is not a finite number")
        if self.eta is not None and self.eta < 0:
            raise UsageError(f"eta={self.eta} would shrink the ball below the weights: give 0 or more")


def settings(rule: Rule) -> dict[str, Any]:
    """A rule's settings, for records and for state_dict.

    >>> settings(Rule())
    {'rule': 'Rule', 'eta': None}
    """
    return {"rule": type(rule).__name__, **{f.name: getattr(rule, f.name) for f in fields(rule)}}
