"""SAM of the last layer in one pass through the body, whose features do not change with the ascent."""

import contextlib
import math
from collections.abc import Callable
from typing import Any, Protocol

from torch import Tensor, nn

from evenly import tree
from evenly.errors import UsageError
from evenly.optim.cached_weights import forget_cached_weights
from evenly.optim.closures import Result, differentiate, evaluate, gradients
from evenly.optim.device_space import space_of
from evenly.optim.displaced_gradient import DisplacedGradient
from evenly.optim.groups import Batch
from evenly.optim.radius import radius_at
from evenly.optim.replay import Overwritten, Replay
from evenly.optim.rule import Point


class LastLayer(Protocol):
    """The attributes of `LSAM` that other `DisplacedGradient`s lack."""

    head_name: str
    head: nn.Module
    replay: Replay


def options_need_two_passes(
    *, m: Any = None, fraction: float = 1.0, weight_decay: float = 0.0, same_dropout: bool = False, **_: Any
) -> bool:
    """Whether these options of a rule take two passes through the body, as for any other rule.

    >>> options_need_two_passes(every=2), options_need_two_passes(m=4)
    (False, True)
    """
    return m is not None or fraction < 1 or bool(weight_decay) or same_dropout


def one_pass_suffices(sam: DisplacedGradient, last: LastLayer) -> bool:
    """Whether one pass through the body is enough for a step that displaces.

    Two passes, with the same result, are needed where the batch is divided, parameters are sharded, torch.compile hides
    the head, a framework calls backward itself, random numbers are repeated (the body may have drawn some), or the
    model changes in place what its body returns.
    """
    if options_need_two_passes(
        m=sam.m, fraction=sam.fraction, weight_decay=sam.weight_decay, same_dropout=sam.same_dropout
    ):
        return False
    if sam.replicas.sharded or sam.radii or sam.own_backward is not None or last.replay.lost:
        return False
    return not _is_compiled(sam.model, last.head) and not any(p._post_accumulate_grad_hooks for p in sam.params)


def displaces(sam: DisplacedGradient) -> bool:
    """Whether the next call displaces the head, or is a plain step."""
    step, _ = sam.begin()
    return step % sam.every == 0 and radius_at(sam._rho, step) != 0


def backward_once(sam: DisplacedGradient, last: LastLayer, closure: Callable[..., Any], batch: Batch) -> Any:
    """`DisplacedGradient.backward` with one pass through the body."""
    step, micro = sam.begin()
    sam.refuse_frozen()
    at = [i for i in sam.moved if sam.params[i].requires_grad]
    replay = last.replay
    watch = sam.statistics.watch_step() if sam.statistics else None
    watched = sam.watched
    try:
        with replay.recording(), sam.replicas.no_sync():
            result = evaluate(closure, batch, watched)
        grads = gradients(sam.scale_loss(result.loss), [sam.params[i] for i in at])
        here = [(i, t) for i, t in zip(at, grads, strict=True) if t is not None]
        w = [sam.params[i] for i, _ in here]
        g = [t.to_dense() if t.is_sparse else t for _, t in here]
        adaptive = None if sam.adaptive is None else [sam.adaptive[i] for i, _ in here]
        space = space_of(w, adaptive)
        ascent = sam.rule.ascent(Point(space, w, g, None, step), radius_at(sam._rho, step))
        size = 0.0 if ascent is None else ascent.size
        if isinstance(size, Tensor):
            size = sam.skips.note(size)
        elif not math.isfinite(size):
            sam.skipped += 1
            size = 0.0
        moves = ascent is not None and (isinstance(size, Tensor) or size != 0)
        home = tree.displace(w, ascent.direction, size) if ascent is not None and moves else None
        forget_cached_weights()
        try:
            with watch.later_pass() if watch is not None else contextlib.nullcontext():
                try:
                    with replay.replaying():
                        again = evaluate(closure, batch, watched)
                except Overwritten:
                    replay.lost, sam.passes = True, 2
                    replay.forget()
                    result = Result(result.loss.detach(), result.rest)  # Free its graph before the body runs again.
                    again = evaluate(closure, batch, watched)
            _differentiate(sam.scale_loss(again.loss), last)
        finally:
            if home is not None:
                tree.restore(home)
                forget_cached_weights()
    finally:
        replay.forget()
        if watch is not None:
            watch.restore()
    sam.num_steps, sam.micro = step + 1, micro
    sam.note()
    return result.detach()


def _differentiate(loss: Tensor, last: LastLayer) -> None:
    try:
        differentiate(loss)
    except RuntimeError as error:
        if "second time" in str(error):
            raise UsageError(
                f"the closure is compiled as a whole, so that the head {last.head_name!r} cannot be told from the "
                "body: compile the model or its body, not the closure"
            ) from error
        raise


def _is_compiled(model: nn.Module | None, head: nn.Module) -> bool:
    """Whether the head is part of a compiled module."""
    if model is None:
        return False
    compiled = [m for m in model.modules() if hasattr(m, "_orig_mod") or m._compiled_call_impl is not None]
    return any(inner is head for m in compiled for inner in m.modules())
