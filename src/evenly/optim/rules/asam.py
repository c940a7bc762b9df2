"""ASAM: the ball scales with the weights."""

from collections.abc import Iterable
from typing import Any, Unpack

from torch import nn

from evenly.errors import UsageError
from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.options import Options
from evenly.optim.radius import Radius
from evenly.optim.rule import Rule
from evenly.rules import RULES


class ASAM(DisplacedGradient):
    """Adaptive SAM: the gradient at w + ρ T²∇L/‖T∇L‖, T = |w| + η for weights and 1 for the rest (Kwon et al., 2021).

    `adapt` is a pattern over parameter names, `eta` is η. By default they are those of the authors' code, "*weight*"
    and 0.01; "*" is the paper's formula. Parameters given without names all adapt. ASAM is
    `SAM(model, adaptive=True)`, which does the same for other rules; its ρ is about ten times SAM's.

    >>> import torch
    >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> _ = ASAM([w], rho=0.5, eta=0.0).backward(lambda: w.sum())
    >>> w.grad
    tensor([1., 1.])
    """

    def __init__(
        self, model: nn.Module | Iterable[Any], *, rho: Radius = RULES["asam"].rho, **options: Unpack[Options]
    ) -> None:
        if not options.setdefault("adaptive", True):
            raise UsageError("adaptive=False: ASAM without its adaptive ball is SAM; use evenly.SAM")
        super().__init__(model, Rule(), rho=rho, **options)
