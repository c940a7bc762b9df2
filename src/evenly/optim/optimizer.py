"""A torch optimizer that steps with a sharpness-aware gradient, for frameworks that pass closures."""

import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from evenly import tree
from evenly.errors import UsageError
from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.passes import BackwardPasses

_KEY = "sharpness_aware"
#: The attribute by which a step marks a gradient it leaves, with the tensor's version; other gradients are the user's.
_LEFT = "evenly_left"


class SharpnessAware(Optimizer):
    """`step(closure)` of any optimizer, with the gradient of any SAM rule; fits Lightning's automatic optimization.

    The closure is the usual one: zero_grad, loss, backward, return the loss. `step` calls it as often as the rule
    needs; do not call it before. The first loss is returned. Parameter groups and state are the wrapped optimizer's, so
    schedulers may be built on either.

    >>> from evenly.optim import SAM
    >>> w = torch.nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> optimizer = SharpnessAware(torch.optim.SGD([w], lr=1.0), SAM([w], rho=0.5))
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (w**2).sum() / 2
    ...     loss.backward()
    ...     return loss
    >>> optimizer.step(closure).item(), w.data
    (12.5, tensor([-0.3000, -0.4000]))
    """

    def __init__(self, optimizer: Optimizer, rule: DisplacedGradient) -> None:
        # Not Optimizer.__init__: __getattr__ returns the groups and state of the wrapped optimizer.
        if not isinstance(optimizer, Optimizer):
            raise UsageError(f"got {type(optimizer).__name__} for the optimizer: SharpnessAware(SGD(...), SAM(model))")
        if not isinstance(rule, DisplacedGradient):
            raise UsageError(f"got {type(rule).__name__} for the rule: SharpnessAware(optimizer, SAM(model, rho=0.05))")
        if rule.m not in (None, "all") or rule.fraction < 1:
            raise UsageError("m and fraction divide the batch, which a closure hides: use sam.backward(loss, x, y)")
        if rule.own_backward is not None:
            raise UsageError("a closure calls backward itself: leave backward= out of the rule")
        closure = inspect.signature(optimizer.step).parameters.get("closure")
        if closure is not None and closure.default is inspect.Parameter.empty:
            raise UsageError(
                f"{type(optimizer).__name__} evaluates the closure itself, many times a step: it has no gradient that "
                "SAM could replace. Use SGD, AdamW or another optimizer that takes one gradient a step"
            )
        if rule.scaler is not None:
            raise UsageError(
                "a closure that scales its loss would leave scaled gradients: use bf16, or call sam.backward"
            )
        stepped = {id(p) for group in optimizer.param_groups for p in group["params"]}
        if not any(id(rule.params[i]) in stepped for i in rule.moved):
            raise UsageError("the rule displaces none of the optimizer's parameters: build both from the same model")
        self.optimizer = optimizer
        self.rule = rule

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """One step of the optimizer with the rule's gradient; returns the first loss."""
        if closure is None:
            raise UsageError(
                "step() needs a closure that computes the loss: optimizer.step(closure). With a GradScaler, or in a "
                "loop of your own, use sam.backward(...) and the plain optimizer"
            )

        rule, params = self.rule, self.rule.params
        hooked = [name for name, p in zip(rule.names, params, strict=True) if p._post_accumulate_grad_hooks]
        if hooked:
            raise UsageError(
                f"{len(hooked)} parameters have post-accumulate-grad hooks ({hooked[0]}), which the closure's backward "
                "would fire in every pass, at displaced weights: use sam.backward(...), which fires them once"
            )
        _refuse_foreign([p.grad for p in params if p.grad is not None])
        held = [p for p in params if p.grad is not None]
        for p in params:
            p.grad = None
        calls = 0

        def run() -> Tensor:
            nonlocal calls
            calls += 1
            # If there were gradients, replace one by NaNs before the first pass: a closure that calls zero_grad
            # clears the mark, one that accumulates adds to it.
            marked = min(held, key=Tensor.numel) if held and calls == 1 else None
            mark = None
            if marked is not None:
                mark = marked.grad = torch.full_like(marked, torch.nan)
            with torch.enable_grad():
                loss = closure()
            if not isinstance(loss, Tensor):
                raise UsageError(f"the closure returned {type(loss).__name__}, not the loss")
            kept = mark is not None and marked is not None and marked.grad is mark and bool(mark.isnan().all())
            if kept and marked is not None:
                marked.grad = None
            if loss.requires_grad and all(p.grad is None for p in params):
                torch.autograd.backward(loss)  # The closure did not call backward itself.
            elif kept:
                raise UsageError(
                    "the closure adds to gradients that are already there (accumulation), and the second pass would "
                    "see one micro-batch only: call optimizer.zero_grad() in the closure, or sam.backward per "
                    "micro-batch; for Lightning's accumulate_grad_batches use evenly.integrations.lightning"
                )
            return loss.detach()

        known = {id(p) for p in params}
        others = [p for group in self.optimizer.param_groups for p in group["params"] if id(p) not in known]
        loss = rule.take(BackwardPasses(run, params, others, rule.replicas), ()).loss
        self.optimizer.step()
        for p in params:
            if p.grad is not None:
                vars(p.grad)[_LEFT] = p.grad._version
        return loss

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Clear the gradients, as the wrapped optimizer does."""
        self.optimizer.zero_grad(set_to_none)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters to the wrapped optimizer; the rule still displaces those it was built with."""
        self.optimizer.add_param_group(param_group)

    def state_dict(self) -> dict[str, Any]:
        """The wrapped optimizer's state, plus the rule's under a key of its own."""
        return {**self.optimizer.state_dict(), _KEY: self.rule.state_dict()}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; with a state of the wrapped optimizer alone, the rule starts afresh."""
        state = dict(state_dict)
        own = state.pop(_KEY, None)
        self.optimizer.load_state_dict(state)
        if own is not None:
            self.rule.load_state_dict(own)

    def __getattr__(self, name: str) -> Any:
        if name in ("optimizer", "rule"):  # Not set yet while being copied or unpickled.
            raise AttributeError(name)
        return getattr(self.optimizer, name)

    def __getstate__(self) -> dict[str, Any]:
        # A scheduler hangs a patched `step` on the instance; a copy must not step the original.
        return {"optimizer": self.optimizer, "rule": self.rule}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    def __repr__(self) -> str:
        return f"SharpnessAware({self.rule!r}, {self.optimizer!r})"


def _refuse_foreign(gradients: list[Tensor]) -> None:
    """Refuse gradients added since the last step: the closure's zero_grad would discard them."""
    foreign = [g for g in gradients if vars(g).get(_LEFT) != g._version]
    if tree.length([g.coalesce().values() if g.is_sparse else g for g in foreign]) != 0:
        raise UsageError(
            f"{len(foreign)} parameters have gradients that no step of this optimizer left (accumulation, or a "
            "closure called before the step), and the closure would throw them away: use sam.backward per "
            "micro-batch and the plain optimizer, or call optimizer.zero_grad() first if they are not needed"
        )
