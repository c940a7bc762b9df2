"""GSAM: also narrows the gap between the loss at the weights and at the displaced weights."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from torch import nn

from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.options import Options
from evenly.optim.radius import Radius
from evenly.optim.rule import Point, Rule
from evenly.optim.space import Vector
from evenly.rules import RULES


@dataclass(frozen=True)
class Gap(Rule):
    """The displaced gradient, less α of the part of ∇L that is orthogonal to it."""

    combines: ClassVar[bool] = True
    alpha: float = 0.4

    def descent(self, here: Point) -> Vector:
        """g_adv − α g⊥ = (1 + α c) g_adv − α g, with c = ⟨g, g_adv⟩/‖g_adv‖²."""
        c = here.space.share(here.g, here.g_adv)
        return here.space.mix(here.g_adv, 1 + self.alpha * c, here.g, -self.alpha)


class GSAM(DisplacedGradient):
    """Surrogate-gap SAM: SAM's gradient, less α of the part of ∇L(w) orthogonal to it (Zhuang et al., 2022).

    >>> import torch
    >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> _ = GSAM([w], rho=0.5).backward(lambda: (w**2).sum() / 2)   # both gradients point along w
    >>> w.grad
    tensor([3.3000, 4.4000])
    """

    rule_type = Gap

    def __init__(
        self,
        model: nn.Module | Iterable[Any],
        *,
        rho: Radius = RULES["gsam"].rho,
        alpha: float = 0.4,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(model, Gap(alpha=alpha), rho=rho, **options)
