"""The user's closure: what it must return, how its loss is differentiated, how its random numbers are repeated."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor

from evenly import rng
from evenly.errors import UsageError

# Private names of torch. Without them a tiny step takes a tenth longer; results are the same.
_engine: Callable[..., Any] | None
try:
    from torch._C import _are_functorch_transforms_active as _transforming
    from torch.autograd.graph import _engine_run_backward as _engine
except (ImportError, AttributeError):
    _engine = None


class Result(NamedTuple):
    """A closure's return value: the loss, and everything after it."""

    loss: Tensor
    #: Everything after the loss, as a tuple; None if the closure returned the loss alone.
    rest: tuple[Any, ...] | None = None

    def detach(self) -> Any:
        """The return value of `backward`: the loss without its graph, and everything after it."""
        return self.loss.detach() if self.rest is None else (self.loss.detach(), *self.rest)


def evaluate(closure: Callable[..., Any], batch: tuple[Any, ...], watched: Tensor | None) -> Result:
    """Call the closure; return its loss, checked to be differentiable, and whatever else it returned.

    The closure must not change the `.grad` of the `watched` parameter.

    >>> evaluate(lambda: 1.0, (), None)
    Traceback (most recent call last):
    evenly.errors.UsageError: the closure returned float, not a tensor: return the loss, as in ...
    """
    if not callable(closure):
        raise UsageError(
            f"backward was given a {type(closure).__name__}, but the loss is computed more than once: give a function: "
            "sam.backward(lambda: F.cross_entropy(model(x), y))"
        )
    before = None if watched is None else watched.grad
    version = None if before is None else before._version
    if torch.is_grad_enabled():
        loss = closure(*batch)
    else:
        with torch.enable_grad():
            loss = closure(*batch)
    rest = None
    if type(loss) is tuple and loss:
        loss, *others = loss
        rest = tuple(others)
    if not isinstance(loss, Tensor):
        raise UsageError(
            f"the closure returned {type(loss).__name__}, not a tensor: return the loss, as in "
            "sam.backward(lambda: F.cross_entropy(model(x), y)), or (loss, outputs)"
        )
    if loss.numel() != 1:
        raise UsageError(f"the closure returned a tensor of shape {tuple(loss.shape)}: return one number, loss.mean()")
    if not loss.requires_grad:
        raise UsageError(
            "the loss needs no gradient: do not detach it, take it out of torch.no_grad(), and check that the model "
            "has parameters with requires_grad=True"
        )
    if watched is not None and (watched.grad is not before or (before is not None and before._version != version)):
        raise UsageError(
            "the closure changed .grad: it called backward or zero_grad itself. Return the loss only, and call "
            "optimizer.zero_grad() outside; closures that do call backward go to evenly.optim.SharpnessAware"
        )
    return Result(loss, rest)


def gradients(loss: Tensor, inputs: Sequence[Tensor]) -> list[Tensor | None]:
    """The gradient of each input; no `.grad` is written and no accumulation hook runs.

    >>> w = torch.tensor(3.0, requires_grad=True)
    >>> gradients(w**2, [w]), w.grad
    ([tensor(6.)], None)
    """
    if _engine is not None and type(loss) is Tensor and loss.is_floating_point() and not _transforming():
        root = torch.ones_like(loss)
        grads = _engine((loss,), (root,), False, False, tuple(inputs), allow_unreachable=True, accumulate_grad=False)
    else:
        grads = torch.autograd.grad(loss, list(inputs), allow_unused=True)
    hidden = [g for g in grads if g is None]
    if hidden and any(type(node).__name__ == "CheckpointFunctionBackward" for node in _nodes(loss)):
        raise UsageError(
            "the model uses reentrant checkpointing, which hides parameters from a gradient that leaves .grad alone: "
            "checkpoint(..., use_reentrant=False), or gradient_checkpointing_kwargs={'use_reentrant': False}"
        )
    return list(grads)


def _nodes(loss: Tensor) -> Iterator[Any]:
    """Each node of the graph behind a loss, once."""
    seen: set[Any] = set()
    nodes = [loss.grad_fn]
    while nodes:
        node = nodes.pop()
        if node is not None and node not in seen:
            seen.add(node)
            yield node
            nodes += [following for following, _ in node.next_functions]


def other_leaves(loss: Tensor, known: set[int]) -> list[Tensor]:
    """The tensors outside `known` (by id) whose `.grad` a backward pass would change: inputs, other models.

    >>> w, x = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    >>> [leaf is x for leaf in other_leaves((w * x).sum(), {id(w)})]
    [True]
    """
    leaves = [getattr(node, "variable", None) for node in _nodes(loss)]
    return [leaf for leaf in leaves if isinstance(leaf, Tensor) and id(leaf) not in known]


def differentiate(loss: Tensor, weight: float = 1.0) -> None:
    """Add weight · gradient to `.grad`, like `loss.backward()` without the checks that `evaluate` has made already.

    The checks take a tenth of a pass through a tiny network.

    >>> w = torch.tensor(3.0, requires_grad=True)
    >>> differentiate(w**2, 0.5)
    >>> w.grad
    tensor(3.)
    """
    root = torch.ones_like(loss) if weight == 1.0 else torch.full_like(loss, weight)
    if _engine is not None and type(loss) is Tensor and loss.is_floating_point() and not _transforming():
        _engine((loss,), (root,), False, False, (), allow_unreachable=True, accumulate_grad=True)
    else:
        torch.autograd.backward(loss, None if weight == 1.0 else root)


def add_to_grad(params: Sequence[Tensor], gradients: Sequence[Tensor | None], weight: float | Tensor = 1.0) -> None:
    """Add weight · gradients to `.grad`.

    >>> w = torch.tensor(3.0, requires_grad=True)
    >>> add_to_grad([w], [torch.tensor(4.0)], 0.5), add_to_grad([w], [torch.tensor(1.0)])
    (None, None)
    >>> w.grad
    tensor(3.)
    """
    whole = not isinstance(weight, Tensor) and weight == 1.0  # a number on a device is not read
    for p, new in zip(params, gradients, strict=True):
        if new is not None:
            new = new if whole else new * weight
            p.grad = new if p.grad is None else p.grad + new


def repeat_random_numbers(params: Sequence[Tensor]) -> Callable[[], contextlib.AbstractContextManager[None]]:
    """A context manager that draws the same random numbers from the global generators each time it is entered.

    After each use the generators are in the state that one pass leaves, so later draws equal those of a one-pass step.

    >>> same = repeat_random_numbers([])
    >>> with same():
    ...     a = torch.rand(1)
    >>> with same():
    ...     b = torch.rand(1)
    >>> torch.equal(a, b)
    True
    """
    generators = [torch.default_generator, *rng.device_generators(p.device for p in params)]
    states = [generator.get_state() for generator in generators]

    @contextlib.contextmanager
    def same() -> Iterator[None]:
        for generator, state in zip(generators, states, strict=True):
            generator.set_state(state)
        yield

    return same


class WithGradients(torch.autograd.Function):
    """A loss with precomputed gradients: calling backward on it, at any scale, adds those to `.grad`."""

    @staticmethod
    def forward(ctx: Any, loss: Tensor, done: Callable[[], None], gradients: list[Tensor], *inputs: Tensor) -> Tensor:
        """The value of the loss."""
        ctx.gradients, ctx.done = gradients, done
        return loss.clone()

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Tensor) -> Any:
        """The gradients, times the factor that the loss was multiplied by."""
        (factor,) = grad_outputs
        given, ctx.gradients = ctx.gradients, None
        if given is None:
            raise UsageError("backward was called twice on a loss of sam.loss: its gradients are used up")
        torch.autograd.Variable._execution_engine.queue_callback(ctx.done)
        one = bool(factor == 1)
        return (None, None, None, *(g if one else _times(g, factor) for g in given))


def _times(g: Tensor, factor: Tensor) -> Tensor:
    """The product, in a precision that holds the factor, which half precision may not; autograd casts it back."""
    return g.to(torch.promote_types(g.dtype, factor.dtype)) * factor.to(g.device)
