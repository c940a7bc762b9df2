"""Random perturbations: noise in place of a gradient."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Unpack

from torch import nn

from evenly.optim.ascent import Ascent
from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.options import Options
from evenly.optim.radius import Radius
from evenly.optim.rule import Point, Rule
from evenly.optim.space import Number
from evenly.rules import RULES


@dataclass(frozen=True)
class Random(Rule):
    """Noise of a fixed size, drawn afresh every step."""

    needs_gradient, normalises, climbs = False, False, False
    seed: int = 0

    def ascent(self, here: Point, rho: Number) -> Ascent:
        """δ ~ N(0, σ² I)."""
        return Ascent(here.space.noise(here.w, seed=self.seed, step=here.step, group=here.group), rho)


class RandomPerturbation(DisplacedGradient):
    """The gradient at w + δ, δ ~ N(0, σ² I) drawn afresh every step (Chang & Khanna, 2025); one pass.

    `sigma` stands in place of ρ. The numbers are a function of (seed, step, group): a resumed run draws the same, the
    global generator is not touched. The loss returned is the one at w + δ.

    >>> import torch
    >>> w = nn.Parameter(torch.zeros(2))
    >>> _ = RandomPerturbation([w], sigma=0.1, seed=1).backward(lambda: (w**2).sum() / 2)
    >>> bool(0 < w.grad.norm() < 1), w.data
    (True, tensor([0., 0.]))
    """

    rule_type, passes = Random, 1

    def __init__(
        self, model: nn.Module | Iterable[Any], *, sigma: Radius = RULES["random"].rho, seed: int = 0,
        **options: Unpack[Options],
    ) -> None:  # fmt: skip
        super().__init__(model, Random(seed=seed), rho=sigma, **options)
