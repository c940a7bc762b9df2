"""The passes of one closure: which gradients each computes, and where it puts them."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import Tensor

from evenly.optim.closures import Result, differentiate, evaluate, gradients, other_leaves
from evenly.optim.groups import Batch
from evenly.optim.replicas import Gradients, Replicas


class Passes(Protocol):
    """The kinds of pass that a step makes, each at the current weights."""

    def gradients(self, batch: Batch, inputs: Sequence[int], weight: Tensor | None = None) -> tuple[Result, Gradients]:
        """The result and weight · gradient of these parameters; no `.grad` changes."""

    def gradients_apart(self, batch: Batch, weight: float) -> tuple[Result, Gradients]:
        """The result and weight · gradient of all parameters; other leaves get theirs added to `.grad`."""

    def accumulate(self, batch: Batch, weight: float) -> Result:
        """The result; weight · gradient is added to every `.grad` and averaged over ranks."""

    def leaf_gradients(self, batch: Batch) -> tuple[Result, Gradients, list[Tensor], Gradients]:
        """The result, all parameters' gradients, the other leaves and their gradients; no `.grad` changes."""


class ClosurePasses:
    """Passes of a closure that returns its loss."""

    def __init__(
        self,
        closure: Callable[..., Any],
        params: list[Tensor],
        replicas: Replicas,
        scale: Callable[[Tensor], Tensor],
        watched: Tensor | None,
    ) -> None:
        self.closure, self.params, self.replicas, self.scale = closure, params, replicas, scale
        self.watched = watched

    def gradients(self, batch: Batch, inputs: Sequence[int], weight: Tensor | None = None) -> tuple[Result, Gradients]:
        """By `autograd.grad`; by a backward pass for a sharded model, which hides its leaves."""
        if self.replicas.sharded:
            return self._set_aside(batch, weight)[:2]
        params = self.params
        with self.replicas.no_sync():
            result = evaluate(self.closure, batch, self.watched)
        live = [i for i in inputs if params[i].requires_grad]
        grads: Gradients = [None] * len(params)
        loss = self.scale(_weighted(result.loss, weight))
        for i, g in zip(live, gradients(loss, [params[i] for i in live]), strict=True):
            grads[i] = g
        return result, grads

    def leaf_gradients(self, batch: Batch) -> tuple[Result, Gradients, list[Tensor], Gradients]:
        """By `autograd.grad` for every leaf of the graph."""
        if self.replicas.sharded:
            return self._set_aside(batch)
        params = self.params
        with self.replicas.no_sync():
            result = evaluate(self.closure, batch, self.watched)
        others = other_leaves(result.loss, {id(p) for p in params})
        live = [i for i, p in enumerate(params) if p.requires_grad]
        both = gradients(self.scale(result.loss), [*(params[i] for i in live), *others])
        grads: Gradients = [None] * len(params)
        for i, g in zip(live, both, strict=False):
            grads[i] = g
        return result, grads, others, both[len(live) :]

    def gradients_apart(self, batch: Batch, weight: float) -> tuple[Result, Gradients]:
        """With the parameters' `.grad` set aside during the pass."""
        with self.replicas.no_sync():
            result = evaluate(self.closure, batch, self.watched)
            with set_aside(self.params):
                differentiate(self.scale(result.loss), weight)
                return result, [p.grad for p in self.params]

    def accumulate(self, batch: Batch, weight: float) -> Result:
        """An ordinary backward pass."""
        result = evaluate(self.closure, batch, self.watched)
        differentiate(self.scale(result.loss), weight)
        return result

    def _set_aside(
        self, batch: Batch, weight: Tensor | None = None
    ) -> tuple[Result, Gradients, list[Tensor], Gradients]:
        result = evaluate(self.closure, batch, self.watched)
        others = other_leaves(result.loss, {id(p) for p in self.params})
        with set_aside([*self.params, *others]):
            differentiate(self.scale(_weighted(result.loss, weight)))
            return result, [p.grad for p in self.params], others, [leaf.grad for leaf in others]


class BackwardPasses:
    """Passes of a closure that calls backward itself, for frameworks that pass such closures to an optimizer."""

    def __init__(
        self, run: Callable[[], Tensor], params: list[Tensor], others: list[Tensor], replicas: Replicas
    ) -> None:
        self.run, self.params, self.others, self.replicas = run, params, others, replicas

    def gradients(self, batch: Batch, inputs: Sequence[int], weight: Tensor | None = None) -> tuple[Result, Gradients]:
        """With every `.grad` set aside during the pass; such a closure hides its batch, so no part has a weight."""
        with set_aside(self.others):
            return self.gradients_apart(batch, 1.0)

    def gradients_apart(self, batch: Batch, weight: float) -> tuple[Result, Gradients]:
        """With the parameters' `.grad` set aside during the pass."""
        with set_aside(self.params):
            with self.replicas.no_sync():
                loss = self.run()
            return Result(loss), [p.grad for p in self.params]

    def accumulate(self, batch: Batch, weight: float) -> Result:
        """As the closure does."""
        return Result(self.run())

    def leaf_gradients(self, batch: Batch) -> tuple[Result, Gradients, list[Tensor], Gradients]:
        """Not possible: such a closure stores its gradients itself."""
        raise NotImplementedError


def _weighted(loss: Tensor, weight: Tensor | None) -> Tensor:
    return loss if weight is None else loss * weight


@contextlib.contextmanager
def set_aside(leaves: Sequence[Tensor]) -> Any:
    """Within the context the leaves have no `.grad`; afterwards they have their old one.

    >>> import torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> w.grad = torch.ones(1)
    >>> with set_aside([w]):
    ...     w.grad is None
    True
    >>> w.grad
    tensor([1.])
    """
    held = [(p, p.grad) for p in leaves if p.grad is not None]
    for p, _ in held:
        p.grad = None
    try:
        yield
    finally:
        for p in leaves:
            p.grad = None
        for p, old in held:
            p.grad = old
