"""Springer's interventions: LSAM's two effects on the body's gradient, one at a time.

For logistic loss the gradient of the body is Σ λ_i g_i, an importance weight λ_i and a sum of feature gradients
g_i = v_easy ∇Φ_easy + v_hard ∇Φ_hard. Displacing v changes both. Here fixed v* = (1, v*_hard) stands in for v in one
of them or in both (Springer et al., 2024, eqs. 7-12). The head itself gets its ordinary gradient, since the paper's
equations are for θ alone.
"""

from typing import Any, Literal

import torch
from torch import Tensor, nn

from evenly.errors import UsageError, did_you_mean
from evenly.optim.closures import evaluate
from evenly.optim.displaced_gradient import Closure
from evenly.optim.replay import Replay, find_head
from evenly.optim.select import named_parameters

Effect = Literal["importance", "rate", "both"]


class Intervention:
    """The gradient with v* in place of v: in the importance weights, in the feature learning rates, or in both.

    The head is a linear layer from the features (easy, hard), in this order, to the output. Any differentiable loss
    of its output will do: dL/df takes the place of −yλ.

    >>> head = nn.Linear(2, 1, bias=False)
    >>> _ = head.weight.data.copy_(torch.tensor([[1.0, 0.5]]))
    >>> net = nn.Sequential(nn.Identity(), head)
    >>> features = torch.ones(1, 2, requires_grad=True)
    >>> _ = Intervention(net, effect="rate", hard=3.0).backward(lambda: net(features).sum())
    >>> features.grad.tolist(), head.weight.grad.tolist()
    ([[1.0, 3.0]], [[1.0, 1.0]])
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        effect: Effect,
        hard: float,
        easy: float = 1.0,
        head: nn.Module | str | None = None,
    ) -> None:
        if effect not in ("importance", "rate", "both"):
            raise UsageError(f"effect={effect!r} is not known. {did_you_mean(effect, ['importance', 'rate', 'both'])}")
        self.name, layer = find_head(model, head)
        if not isinstance(layer, nn.Linear) or layer.in_features != 2:
            raise UsageError(
                f"the head {self.name!r} is {layer}: an intervention needs nn.Linear(2, ...) over the features "
                "(easy, hard)"
            )
        self.head, self.effect, self.easy, self.hard = layer, effect, float(easy), float(hard)
        self.params = [p for _, p in named_parameters(model)]
        self.replay = Replay(model, self.name, layer)

    def backward(self, closure: Closure, *batch: Any) -> Tensor:
        """Add the intervened gradient to `.grad`, and return the ordinary loss, detached."""
        head, replay = self.head, self.replay
        v = head.weight.detach()
        v_star = torch.tensor([self.easy, self.hard], dtype=v.dtype, device=v.device).expand_as(v)
        try:
            loss, output = self._outputs(closure, batch, replay.recording())
            if len(replay.features) != 1:
                raise UsageError(f"the head {self.name!r} is called {len(replay.features)} times: call the model once")
            features = replay.features[0]
            wanted = [p for p in head.parameters() if p.requires_grad]
            slope, *own = torch.autograd.grad(loss, [output, *wanted])
            if self.effect != "rate":
                kept = head.weight.data
                head.weight.data = v_star.clone()
                try:
                    again, output = self._outputs(closure, batch, replay.replaying())
                    (slope,) = torch.autograd.grad(again, [output])
                finally:
                    head.weight.data = kept
            if features.requires_grad:
                torch.autograd.backward(features, slope @ (v if self.effect == "importance" else v_star))
        finally:
            replay.forget()
        for p, g in zip(wanted, own, strict=True):
            p.grad = g if p.grad is None else p.grad + g
        return loss.detach()

    def _outputs(self, closure: Closure, batch: tuple[Any, ...], context: Any) -> tuple[Tensor, Tensor]:
        """The loss and the head's output."""
        caught: list[Tensor] = []
        hook = self.head.register_forward_hook(lambda module, inputs, output: caught.append(output))
        try:
            with context:
                loss = evaluate(closure, batch, self.params).loss
        finally:
            hook.remove()
        return loss, caught[-1]
