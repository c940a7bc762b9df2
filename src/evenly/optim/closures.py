"""Calling the user's closure: what it must return, how it is differentiated, and the same random numbers twice."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from evenly.errors import UsageError

# Torch promises neither name: a version without them is slower here, by a tenth of a tiny step, and as right.
_engine: Callable[..., Any] | None
try:
    from torch._C import _are_functorch_transforms_active as _transforming
    from torch.autograd.graph import _engine_run_backward as _engine
except (ImportError, AttributeError):
    _engine = None


def evaluate(closure: Callable[..., Tensor], batch: tuple[Any, ...], params: Sequence[Tensor]) -> Tensor:
    """The loss, if it is one that can be differentiated.

    >>> evaluate(lambda: 1.0, (), [torch.zeros(1)])
    Traceback (most recent call last):
    evenly.errors.UsageError: the closure returned float, not a tensor: return the loss, as in ...
    """
    if not callable(closure):
        raise UsageError(
            f"backward was given a {type(closure).__name__}, but the loss is computed more than once: give a function: "
            "sam.backward(lambda: F.cross_entropy(model(x), y))"
        )
    first = params[0]
    before = first.grad
    version = None if before is None else before._version
    if torch.is_grad_enabled():
        loss = closure(*batch)
    else:
        with torch.enable_grad():
            loss = closure(*batch)
    if not isinstance(loss, Tensor):
        raise UsageError(
            f"the closure returned {type(loss).__name__}, not a tensor: return the loss, as in "
            "sam.backward(lambda: F.cross_entropy(model(x), y))"
        )
    if loss.numel() != 1:
        raise UsageError(f"the closure returned a tensor of shape {tuple(loss.shape)}: return one number, loss.mean()")
    if not loss.requires_grad:
        raise UsageError(
            "the loss needs no gradient: do not detach it, take it out of torch.no_grad(), and check that the model "
            "has parameters with requires_grad=True"
        )
    if first.grad is not before or (before is not None and before._version != version):
        raise UsageError(
            "the closure changed .grad: it called backward or zero_grad itself. Return the loss only, and call "
            "optimizer.zero_grad() outside; closures that do call backward go to evenly.optim.SharpnessAware"
        )
    return loss


def differentiate(loss: Tensor, weight: float = 1.0) -> None:
    """Add weight · gradient to `.grad`: `loss.backward()` without asking again what `evaluate` has asked.

    The asking is a tenth of a pass through a tiny network.

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


def leave(params: Sequence[Tensor], gradients: Sequence[Tensor | None], weight: float = 1.0) -> None:
    """Add weight · gradients that were made by hand to `.grad`.

    >>> w = torch.tensor(3.0, requires_grad=True)
    >>> leave([w], [torch.tensor(4.0)], 0.5), leave([w], [torch.tensor(1.0)])
    (None, None)
    >>> w.grad
    tensor(3.)
    """
    for p, new in zip(params, gradients, strict=True):
        if new is not None:
            new = new if weight == 1.0 else new * weight
            p.grad = new if p.grad is None else p.grad + new


def replayed(params: Sequence[Tensor]) -> Callable[[], contextlib.AbstractContextManager[None]]:
    """A context whose every use draws the same random numbers from the global generators.

    After each use the generators stand where one pass leaves them, so the numbers drawn later are those of a step
    with one pass.

    >>> same = replayed([])
    >>> with same():
    ...     a = torch.rand(1)
    >>> with same():
    ...     b = torch.rand(1)
    >>> torch.equal(a, b)
    True
    """
    devices = sorted({p.device for p in params if p.device.type == "cuda"}, key=str)
    cpu = torch.get_rng_state()
    others = [torch.cuda.get_rng_state(device) for device in devices]

    @contextlib.contextmanager
    def same() -> Iterator[None]:
        torch.set_rng_state(cpu)
        for device, state in zip(devices, others, strict=True):
            torch.cuda.set_rng_state(state, device)
        yield

    return same
