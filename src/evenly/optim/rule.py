"""What a rule of the SAM family is: where it looks, what it makes of the gradients, what it remembers."""

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

from evenly.errors import UsageError
from evenly.optim.ascent import Ascent, steepest, unnormalised
from evenly.optim.space import Number, Space, Vector


class Here(NamedTuple):
    """What a rule may look at: the weights, the gradients so far, what it remembers, and when it is asked.

    `ascent` and `g_adv`, the displacement and the gradient there, are None until they are known.
    """

    space: Space
    w: Vector
    g: Vector | None
    memory: Vector | None
    step: int = 0
    group: int = 0
    ascent: Ascent | None = None
    g_adv: Vector | None = None


@dataclass(frozen=True)
class Rule:
    """SAM (Foret et al., 2021), and what the other rules differ from.

    Fields are the settings of a rule. Methods are pure: what lives between steps is one vector, `memory`, made by
    `learn` from what `lesson` returned, averaged over everything that one optimizer step saw (perturbation groups,
    processes, micro-batches).
    """

    #: Whether the gradient at the weights is needed before moving.
    looks_first: ClassVar[bool] = True
    #: Whether the length of the displacement is ρ whatever the length of the direction.
    normalises: ClassVar[bool] = True
    #: Whether the gradient that is left is made from more than the one at the displaced weights.
    combines: ClassVar[bool] = False
    #: Whether the rule has a memory.
    remembers: ClassVar[bool] = False
    #: Whether `weight_decay` is part of the objective that is climbed; rules that do not climb have no use for it.
    climbs: ClassVar[bool] = True
    #: η of ASAM's stretched ball; None is the round ball.
    eta: float | None = None

    def displaces(self, step: int) -> bool:
        """Whether this step moves the weights at all."""
        return True

    def direction(self, here: Here) -> Vector | None:
        """Where to move; None for nowhere yet."""
        return here.g

    def ascent(self, here: Here, rho: Number) -> Ascent | None:
        """How far to move along the direction."""
        d = self.direction(here)
        if d is None:
            return None
        if self.normalises:
            return steepest(here.space, here.w, d, rho, eta=self.eta)
        return unnormalised(here.space, d, rho)

    def descent(self, here: Here) -> Vector:
        """The gradient to leave, for rules that combine; `g_adv` is None in a step that did not displace."""
        return here.g_adv

    def lesson(self, here: Here) -> Vector | None:
        """What this step teaches; None for nothing."""
        return None

    def learn(self, here: Here, lesson: Vector) -> Vector:
        """The memory after a lesson; `here.memory` is None before the first."""
        return lesson

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
