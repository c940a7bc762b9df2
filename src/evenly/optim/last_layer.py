"""LSAM: only the last layer is displaced, so one pass through the body is enough."""

import contextlib
import math
from typing import Any, Unpack

import torch
from torch import Tensor, nn

from evenly import tree
from evenly.errors import UsageError
from evenly.optim import ascent
from evenly.optim.closures import differentiate, evaluate
from evenly.optim.options import Options
from evenly.optim.replay import Replay, find_head
from evenly.optim.rules import Rule
from evenly.optim.sharpness_aware import Closure, Displaced


class LSAM(Displaced):
    """SAM of the last layer v: the gradient at (θ, v + ρ ∇_v L/‖∇_v L‖) (Springer et al., 2024, eq. 5).

    The descent updates everything; only the ascent is restricted to the head, and only the head's norm divides. The
    features are the same before and after, so the body is run forward and backward once; the result is, bit for
    bit, that of two passes. `head` names the last layer; by default it is the last `nn.Linear`.

    >>> net = nn.Sequential(nn.Linear(2, 1, bias=False), nn.Linear(1, 1, bias=False))
    >>> _ = torch.nn.init.ones_(net[0].weight), torch.nn.init.ones_(net[1].weight)
    >>> LSAM(net, rho=0.5).backward(lambda: net(torch.ones(1, 2)).sum())   # f = v·(θ·x): ∂f/∂v = 2, ṽ = 1.5
    tensor(2.)
    >>> net[0].weight.grad, net[1].weight.grad                             # ∂f/∂θ = ṽ·x, ∂f/∂v = θ·x
    (tensor([[1.5000, 1.5000]]), tensor([[2.]]))
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        rho: float = 0.05,
        head: nn.Module | str | None = None,
        **options: Unpack[Options],
    ) -> None:
        if "where" in options:
            raise UsageError("LSAM displaces its head: name it with head=, or use SAM(model, where=...)")
        self.head_name, self.head = find_head(model, head)
        options["where"] = self.head
        super().__init__(model, Rule(), rho=rho, **options)
        self.replay = Replay(model, self.head_name, self.head)

    def backward(self, closure: Closure, *batch: Any) -> Tensor:
        """Add the gradient at the displaced head to `.grad`, and return the loss at the weights, detached."""
        once = self.m is None and self.fraction == 1.0 and not self.replicas.sharded and not self.weight_decay
        if not once or self._rho == 0 or self.step % self.every:
            # Parts of a batch have features of their own, and shards must be gathered again: two passes.
            return super().backward(closure, *batch)
        w = [p for p in self.head.parameters() if p.requires_grad]
        if not w:
            raise UsageError(f"the head {self.head_name!r} is frozen, so there is nothing to displace")
        replay = self.replay
        try:
            with replay.recording(), self.replicas.alone() if self.replicas.wrappers else contextlib.nullcontext():
                loss = evaluate(closure, batch, self.params)
            found = torch.autograd.grad(self.scaled(loss), w, allow_unused=True)
            here = [(p, t) for p, t in zip(w, found, strict=True) if t is not None]
            g = [t.to_dense() if t.is_sparse else t for _, t in here]
            direction, size = ascent.sam([p for p, _ in here], g, rho=self._rho)
            if not math.isfinite(size):
                self.skipped += 1
                size = 0.0
            home = tree.displace([p for p, _ in here], direction, size) if size else None
            try:
                with replay.replaying(), self.statistics.frozen():
                    again = evaluate(closure, batch, self.params)
                differentiate(self.scaled(again))
            finally:
                if home is not None:
                    tree.restore(home)
        finally:
            replay.forget()
        self.step += 1
        return loss.detach()
