"""WSAM: the sharpness as a separately weighted term."""

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
class Weighted(Rule):
    """∇L plus γ/(1 − γ) times the difference of SAM's gradient and ∇L."""

    combines: ClassVar[bool] = True
    gamma: float = 0.9

    def descent(self, here: Point) -> Vector:
        """The gradient g + γ/(1 − γ) (g_adv − g)."""
        weight = self.gamma / (1 - self.gamma)
        return here.space.mix(here.g_adv, weight, here.g, 1 - weight)


class WSAM(DisplacedGradient):
    """Weighted SAM: ∇L(w) + γ/(1 − γ) (∇L(w + ε) − ∇L(w)) (Yue et al., 2023); γ = 0 is SGD, ½ is SAM.

    The authors' code can also keep the second term out of the optimizer and apply it with the bare learning rate
    (`decouple`). That is a change of the optimizer, not a gradient; for SGD without momentum both are the same.

    >>> import torch
    >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> _ = WSAM([w], rho=0.5, gamma=0.75).backward(lambda: (w**2).sum() / 2)   # w + 3 · (0.5 · w/‖w‖)
    >>> w.grad
    tensor([3.9000, 5.2000])
    """

    rule_type = Weighted

    def __init__(
        self, model: nn.Module | Iterable[Any], *, rho: Radius = RULES["wsam"].rho, gamma: float = 0.9,
        **options: Unpack[Options],
    ) -> None:  # fmt: skip
        if not 0 <= gamma < 1:
            raise UsageError(f"gamma={gamma} is not a share of the sharpness: give a number in [0, 1); ½ is SAM")
        super().__init__(model, Weighted(gamma=gamma), rho=rho, **options)
