"""SAM: sharpness-aware minimization. Its ε = ρ ∇L/‖∇L‖ is computed in `evenly.optim.ascent`."""

from collections.abc import Iterable
from typing import Any, Unpack

from torch import nn

from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.options import Options
from evenly.optim.radius import Radius
from evenly.optim.rule import Rule
from evenly.rules import RULES


class SAM(DisplacedGradient):
    """Sharpness-aware minimization: the gradient at w + ρ ∇L/‖∇L‖ (Foret et al., 2021).

    >>> import torch
    >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> SAM([w], rho=0.5).backward(lambda: (w**2).sum() / 2)   # the gradient of ‖w‖²/2 is w
    tensor(12.5000)
    >>> w.grad, w.data                                         # at w + 0.5 · w/‖w‖; and w as it was
    (tensor([3.3000, 4.4000]), tensor([3., 4.]))
    """

    def __init__(
        self, model: nn.Module | Iterable[Any], *, rho: Radius = RULES["sam"].rho, **options: Unpack[Options]
    ) -> None:
        super().__init__(model, Rule(), rho=rho, **options)
