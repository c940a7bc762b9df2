"""USAM: the gradient itself, not divided by its norm."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Unpack

from torch import nn

from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.options import Options
from evenly.optim.radius import Radius
from evenly.optim.rule import Rule
from evenly.rules import RULES


@dataclass(frozen=True)
class Unnormalised(Rule):
    """ε = ρ ∇L."""

    normalises: ClassVar[bool] = False


class USAM(DisplacedGradient):
    """Unnormalised SAM: the gradient at w + ρ ∇L (Andriushchenko & Flammarion, 2022).

    >>> import torch
    >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> _ = USAM([w], rho=0.5).backward(lambda: (w**2).sum() / 2)
    >>> w.grad
    tensor([4.5000, 6.0000])
    """

    rule_type = Unnormalised

    def __init__(
        self, model: nn.Module | Iterable[Any], *, rho: Radius = RULES["usam"].rho, **options: Unpack[Options]
    ) -> None:
        super().__init__(model, Unnormalised(), rho=rho, **options)
