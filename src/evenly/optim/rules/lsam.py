"""LSAM: only the last layer is displaced, so one pass through the body is enough."""

from collections.abc import Mapping
from typing import Any, Unpack

from torch import nn

from evenly.errors import UsageError
from evenly.optim.displaced_gradient import Closure, DisplacedGradient
from evenly.optim.last_layer import backward_once, displaces, one_pass_suffices, options_need_two_passes
from evenly.optim.options import Options
from evenly.optim.radius import Radius
from evenly.optim.replay import Replay, find_head
from evenly.optim.rule import Rule
from evenly.rules import RULES


class LSAM(DisplacedGradient):
    """SAM of the last layer v: the gradient at (θ, v + ρ ∇_v L/‖∇_v L‖) (Springer et al., 2024, eq. 5).

    The descent updates everything; only the ascent is restricted to the head, and only the head's norm divides. The
    features are the same before and after, so the body is run forward and backward once; the result is, bit for
    bit, that of two passes, which are made where one is not enough. `head` names the last layer; by default it is the
    last `nn.Linear`.

    >>> import torch
    >>> net = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Linear(1, 1, bias=False))
    >>> _ = torch.nn.init.ones_(net[0].weight), torch.nn.init.ones_(net[1].weight)
    >>> LSAM(net, rho=0.5).backward(lambda: net(torch.ones(1, 2)).sum())   # f = v·(θ·x): ∂f/∂v = 2, ṽ = 1.5
    tensor(2.)
    >>> net[0].weight.grad, net[1].weight.grad                             # ∂f/∂θ = ṽ·x, ∂f/∂v = θ·x
    (tensor([[1.5000, 1.5000]]), tensor([[2.]]))
    """

    passes = 1

    def __init__(
        self, model: nn.Module, *, rho: Radius = RULES["lsam"].rho, head: nn.Module | str | None = None,
        **options: Unpack[Options],
    ) -> None:  # fmt: skip
        if "where" in options:
            raise UsageError("LSAM displaces its head: name it with head=, or use SAM(model, where=...)")
        self.head_name, self.head = find_head(model, head)
        options["where"] = self.head
        super().__init__(model, Rule(), rho=rho, **options)
        self.replay = Replay(model, self.head_name, self.head)

    @classmethod
    def passes_with(cls, options: Mapping[str, Any]) -> int:
        """Two with options that divide the batch or repeat random numbers."""
        return 2 if options_need_two_passes(**options) else 1

    def backward(self, closure: Closure, *batch: Any) -> Any:
        """Add the gradient at the displaced head to `.grad`, and return the loss at the weights, detached."""
        self.passes = 1 if one_pass_suffices(self, self) else 2
        if self.passes == 1 and displaces(self):
            return backward_once(self, self, closure, batch)
        return super().backward(closure, *batch)
