"""The passes of one closure: which gradients each makes, and where they go."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from torch import Tensor

from evenly.optim.closures import Result, differentiate, evaluate, gradients, other_leaves
from evenly.optim.groups import Batch
from evenly.optim.replicas import Replicas

Gradients = list[Tensor | None]


class Passes(Protocol):
    """How a pass is made, at whatever the weights are at that moment."""

    def own(self, batch: Batch, inputs: Sequence[int]) -> tuple[Result, Gradients]:
        """The result and this pass's own gradients for these parameters; every `.grad` is left as it was."""

    def apart(self, batch: Batch, weight: float) -> tuple[Result, Gradients]:
        """The result and weight · gradient of all parameters, apart; that of other leaves is added to their `.grad`."""

    def leave(self, batch: Batch, weight: float) -> Result:
        """The result; weight · gradient is added to every `.grad`, and averaged between ranks."""

    def all_leaves(self, batch: Batch) -> tuple[Result, Gradients, list[Tensor], Gradients]:
        """The result, the gradients of all parameters, the other leaves and theirs; every `.grad` is left as it was."""


class ClosurePasses:
    """Passes of a closure that returns its loss."""

    def __init__(
        self, closure: Callable[..., Any], params: list[Tensor], replicas: Replicas, scale: Callable[[Tensor], Tensor]
    ) -> None:
        self.closure, self.params, self.replicas, self.scale = closure, params, replicas, scale

    def own(self, batch: Batch, inputs: Sequence[int]) -> tuple[Result, Gradients]:
        """By `autograd.grad`, which touches nothing; a sharded model hides its leaves and is asked by backward."""
        if self.replicas.sharded:
            return self._set_aside(batch)
        params = self.params
        with self.replicas.alone() if self.replicas.wrappers else contextlib.nullcontext():
            result = evaluate(self.closure, batch, params)
        live = [i for i in inputs if params[i].requires_grad]
        found: Gradients = [None] * len(params)
        for i, g in zip(live, gradients(self.scale(result.loss), [params[i] for i in live]), strict=True):
            found[i] = g
        return result, found

    def all_leaves(self, batch: Batch) -> tuple[Result, Gradients, list[Tensor], Gradients]:
        """By `autograd.grad` for every leaf of the graph."""
        if self.replicas.sharded:
            return (*self._set_aside(batch), [], [])
        params = self.params
        with self.replicas.alone() if self.replicas.wrappers else contextlib.nullcontext():
            result = evaluate(self.closure, batch, params)
        others = other_leaves(result.loss, {id(p) for p in params})
        live = [i for i, p in enumerate(params) if p.requires_grad]
        both = gradients(self.scale(result.loss), [*(params[i] for i in live), *others])
        found: Gradients = [None] * len(params)
        for i, g in zip(live, both, strict=False):
            found[i] = g
        return result, found, others, both[len(live) :]

    def apart(self, batch: Batch, weight: float) -> tuple[Result, Gradients]:
        """With the `.grad` of the parameters set aside for the time of the pass."""
        with self.replicas.alone() if self.replicas.wrappers else contextlib.nullcontext():
            result = evaluate(self.closure, batch, self.params)
            with set_aside(self.params):
                differentiate(self.scale(result.loss), weight)
                return result, [p.grad for p in self.params]

    def leave(self, batch: Batch, weight: float) -> Result:
        """An ordinary backward pass."""
        result = evaluate(self.closure, batch, self.params)
        differentiate(self.scale(result.loss), weight)
        return result

    def _set_aside(self, batch: Batch) -> tuple[Result, Gradients]:
        result = evaluate(self.closure, batch, self.params)
        others = other_leaves(result.loss, {id(p) for p in self.params})
        with set_aside([*self.params, *others]):
            differentiate(self.scale(result.loss))
            return result, [p.grad for p in self.params]


class BackwardPasses:
    """Passes of a closure that calls backward itself, for frameworks that pass such closures to an optimizer."""

    def __init__(
        self, run: Callable[[], Tensor], params: list[Tensor], others: list[Tensor], replicas: Replicas
    ) -> None:
        self.run, self.params, self.others, self.replicas = run, params, others, replicas

    def own(self, batch: Batch, inputs: Sequence[int]) -> tuple[Result, Gradients]:
        """With every `.grad` set aside for the time of the pass."""
        with set_aside(self.others):
            return self.apart(batch, 1.0)

    def apart(self, batch: Batch, weight: float) -> tuple[Result, Gradients]:
        """With the `.grad` of the parameters set aside for the time of the pass."""
        with set_aside(self.params):
            with self.replicas.alone() if self.replicas.wrappers else contextlib.nullcontext():
                loss = self.run()
            return Result(loss), [p.grad for p in self.params]

    def leave(self, batch: Batch, weight: float) -> Result:
        """As the closure does it."""
        return Result(self.run())

    def all_leaves(self, batch: Batch) -> tuple[Result, Gradients, list[Tensor], Gradients]:
        """Not for such closures: they leave their gradients themselves."""
        raise NotImplementedError


@contextlib.contextmanager
def set_aside(leaves: Sequence[Tensor]) -> Any:
    """Within the context these have no `.grad`; afterwards they have the one they had.

    >>> import torch
    >>> w = torch.ones(1, requires_grad=True)
    >>> w.grad = torch.ones(1)
    >>> with set_aside([w]):
    ...     w.grad is None
    True
    >>> w.grad
    tensor([1.])
    """
    held = [p.grad for p in leaves]
    for p in leaves:
        p.grad = None
    try:
        yield
    finally:
        for p, old in zip(leaves, held, strict=True):
            p.grad = old
