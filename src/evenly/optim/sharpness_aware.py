"""The gradient at displaced weights: two passes where a plain step has one, and no trace but `.grad`."""

import contextlib
import math
from collections.abc import Callable, Iterable
from typing import Any, Self

import torch
from torch import Tensor, nn

from evenly import tree
from evenly.errors import UsageError
from evenly.optim import groups
from evenly.optim.closures import differentiate, evaluate, leave, replayed
from evenly.optim.options import check, refuse_unknown
from evenly.optim.replicas import Replicas
from evenly.optim.room import Room
from evenly.optim.rules import Gradients, Memory, Moment, Rule, recalled, settings
from evenly.optim.select import Where, held, named_parameters, select
from evenly.optim.statistics import Once, RunningStatistics
from evenly.optim.two_passes import two_passes

Closure = Callable[..., Tensor]
#: How a pass is made: evaluate the closure on a batch, add weight · gradient to `.grad`, return the loss.
Pass = Callable[[groups.Batch, float], Tensor]

_NOTHING = contextlib.nullcontext()


def _same() -> contextlib.AbstractContextManager[None]:
    return _NOTHING


class Displaced:
    """A gradient computation: `backward(closure)` fills `.grad` with the gradient at displaced weights.

    The weights are bit for bit what they were, BatchNorm's statistics advance once, the first loss is returned.
    Optimizer, scheduler, clipping and checkpoints stay the user's.

    Parameters
    ----------
    model
        A module, or parameters as an optimizer takes them. Only with the module can running statistics be kept
        from advancing twice, and DDP be asked to wait. Wrap and shard (DDP, FSDP2) first, as for an optimizer.
    rule
        Where to move, and what to make of the gradients.
    rho
        The size of the displacement; an attribute that may be set between steps. 0 is exactly a plain step.
    where
        Which parameters move, the others being in no norm: name patterns, modules, types of module, or a function.
    every
        Displace every k-th step only; the others are plain.
    fraction
        Climb on the first part of the batch only; needs the batch: `backward(loss, x, y)`.
    m
        The perturbation group: examples that share one displacement. None is what one rank is given; smaller
        values divide the batch (for a loss that is a mean over examples); batch × ranks makes all ranks share one.
        Needs the batch.
    weight_decay
        λ‖w‖²/2 in the objective that is climbed, as in the authors' JAX code; it adds nothing to `.grad`.
    same_dropout
        Whether the second pass draws the random numbers of the first again, as in the authors' JAX code.
    scaler
        A GradScaler; the closure then returns the unscaled loss. Without it, a closure that scales the loss itself
        is right too for rules that divide by a norm.
    """

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse what no `__init__` below takes, before any of them runs."""
        refuse_unknown(cls, options)
        return super().__new__(cls)

    def __init__(
        self,
        model: nn.Module | Iterable[Any],
        rule: Rule,
        *,
        rho: float,
        where: Where = None,
        every: int = 1,
        fraction: float = 1.0,
        m: int | None = None,
        weight_decay: float = 0.0,
        same_dropout: bool = False,
        scaler: Any = None,
    ) -> None:
        model = held(model)
        named = named_parameters(model)
        chosen = {id(p) for _, p in select(model, named, where)}
        self.model = model if isinstance(model, nn.Module) else None
        self.names = [name for name, _ in named]
        self.params = [p for _, p in named]
        self.moved = [i for i, p in enumerate(self.params) if id(p) in chosen]
        self.rule = rule
        self.rho = rho
        self.every, self.fraction, self.m = every, fraction, m
        self.weight_decay, self.same_dropout, self.scaler = weight_decay, same_dropout, scaler
        check(rule, every=every, fraction=fraction, m=m, weight_decay=weight_decay, same_dropout=same_dropout)
        self.step = 0
        #: How many ascents were left out because their gradient was not finite.
        self.skipped = 0
        self.memories: dict[int, Memory] = {}
        self.statistics = RunningStatistics(model)
        self.replicas = Replicas(model, self.params)
        several = m is not None or fraction < 1 or same_dropout or bool(self.statistics) or bool(self.replicas.wrappers)
        self._whole = len(self.moved) == len(self.params)
        self._plain = tree.swappable(self.params)
        spent = rule.looks_first and not rule.combines and self._whole
        self._simple = spent and scaler is None and not several
        self.room = Room(self.params) if spent and self._plain and not self.replicas.wrappers else None

    @property
    def rho(self) -> float:
        """The size of the displacement."""
        return self._rho

    @rho.setter
    def rho(self, value: float) -> None:
        if not (math.isfinite(value) and value >= 0):
            raise UsageError(f"rho={value!r} is not a radius: give a finite number, 0 or more (0.05 is usual for SAM)")
        self._rho = float(value)

    def backward(self, closure: Closure, *batch: Any) -> Tensor:
        """Add the gradient at the displaced weights to `.grad`, and return the loss at the weights, detached.

        `closure` returns the loss and does not call backward. It is called with `batch`, if one is given.
        """
        if self._simple and self._rho and not self.step % self.every:
            return two_passes(self, closure, batch)

        def make(part: groups.Batch, weight: float) -> Tensor:
            loss = evaluate(closure, part, self.params)
            differentiate(loss if self.scaler is None else self.scaler.scale(loss), weight)
            return loss.detach()

        return self.gradient(make, closure, batch)

    def gradient(self, make: Pass, closure: Closure | None, batch: groups.Batch) -> Tensor:
        """`backward` for passes made in some other way; `closure` is None if it cannot be differentiated from here."""
        if self._rho == 0 or self.step % self.every:
            loss = make(batch, 1.0)
        else:
            divided, spans = [batch], False
            if self.m is not None:
                divided, spans = groups.divided(groups.needed(batch, f"m={self.m}"), self.m, self.replicas.count)
            once = self.statistics.once() if self.statistics else None
            try:
                losses = [
                    self._group(make, closure, part, (place, len(divided), spans), once)
                    for place, part in enumerate(divided)
                ]
            finally:
                if once is not None:
                    once.done()
            loss = losses[0] if len(losses) == 1 else torch.stack(losses).mean()
        self.step += 1
        return loss

    def scaled(self, loss: Tensor) -> Tensor:
        """The loss as it is differentiated: times the GradScaler's factor, if there is one."""
        return loss if self.scaler is None else self.scaler.scale(loss)

    def _group(
        self, make: Pass, closure: Closure | None, batch: groups.Batch, of: tuple[int, int, bool], once: Once | None
    ) -> Tensor:
        """One perturbation group: climb, differentiate there, come back."""
        place, num, spans = of
        rule = self.rule
        group = place if not self.replicas.wrappers else self.replicas.rank * num + place
        now = Moment(self._rho, self.step, group, self.memories.setdefault(place, {}), self.moved, self._loss_scale())
        displaces = rule.displaces(self.step)
        draws = replayed(self.params) if self.same_dropout else _same
        loss, g, g_adv = None, None, None
        if rule.looks_first:
            early = batch if self.fraction == 1.0 else groups.head_of(batch, self.fraction)
            with draws(), once.again() if once is not None and place else _NOTHING:
                loss, g = self._alone(make, closure, early)
            if spans:
                g = self.replicas.mean(g)
        home = self.climb(g, now) if displaces else None
        if not rule.combines:
            g = None  # Its memory is the second pass's to use.
        try:
            with draws(), once.again() if once is not None and (rule.looks_first or place) else _NOTHING:
                if not rule.combines:
                    with self.replicas.alone() if self.replicas.wrappers and place < num - 1 else _NOTHING:
                        there = make(batch, 1.0 / num)
                elif displaces:
                    there, g_adv = self._alone(make, closure, batch)
        finally:
            if home is not None:
                tree.restore(home)
        if rule.combines:
            leave(self.params, self.replicas.mean(rule.descent(g, g_adv, now)), 1.0 / num)
        return there if loss is None else loss

    def _loss_scale(self) -> float:
        return self.scaler.get_scale() if self.scaler is not None and self.scaler.is_enabled() else 1.0

    def climb(self, g: Gradients | None, now: Moment) -> tree.Home | None:
        """Displace the weights by what the rule says; None where there is nowhere to go."""
        params, room = self.params, self.room
        w: list[Tensor] = params
        directions: list[Tensor] = g  # type: ignore[assignment]  # as soon as it is known to have no gaps
        if g is None or not self._whole or [t for t in g if t is None or t.is_sparse]:
            at = [i for i in self.moved if (params[i].requires_grad if g is None else g[i] is not None)]
            directions = (
                [] if g is None else [t.to_dense() if t.is_sparse else t for i in at if (t := g[i]) is not None]
            )
            w, now, room = [params[i] for i in at], now._replace(at=at), None
            if not w:
                return None
        if directions and now.loss_scale != 1.0:
            directions = tree.scale(directions, 1.0 / now.loss_scale)
        if directions and self.weight_decay:
            directions = tree.add(directions, [p.detach() for p in w], self.weight_decay)
        direction, size = self.rule.ascent(w, directions, now)
        if not math.isfinite(size):
            self.skipped += 1
            return None
        if room is not None and size and w[0].is_cpu:
            return room.displace(direction, size)
        return tree.displace(w, direction, size, swap=self._plain and w[0].is_cpu) if size else None

    def _alone(self, make: Pass, closure: Closure | None, batch: groups.Batch) -> tuple[Tensor, Gradients]:
        """The loss and this pass's own gradients, of this rank's examples; `.grad` is left as it was."""
        params = self.params
        all_move = len(self.moved) == len(params) or self.rule.combines
        if closure is not None and (self.replicas.wrappers or not all_move) and not self.replicas.sharded:
            wanted = range(len(params)) if all_move else self.moved
            live = [i for i in wanted if params[i].requires_grad]
            with self.replicas.alone():
                loss = evaluate(closure, batch, params)
            found = torch.autograd.grad(self.scaled(loss), [params[i] for i in live], allow_unused=True)
            g: Gradients = [None] * len(params)
            for i, t in zip(live, found, strict=True):
                g[i] = t
            return loss.detach(), g
        return self._fresh(make, batch)

    def _fresh(self, make: Pass, batch: groups.Batch) -> tuple[Tensor, Gradients]:
        """The loss and the gradients of one pass alone; `.grad` is left as it was."""
        params, held = self.params, [p.grad for p in self.params]
        for p in params:
            p.grad = None
        try:
            return make(batch, 1.0), [p.grad for p in params]
        finally:
            for p, old in zip(params, held, strict=True):
                p.grad = old

    def state_dict(self) -> dict[str, Any]:
        """What a resumed run needs to go on bit for bit: the step, the count of skipped ascents, what rules remember.

        The settings are there to be read, and checked when the state is loaded.
        """
        return {
            "step": self.step,
            "skipped": self.skipped,
            "rho": self._rho,
            "settings": settings(self.rule),
            "memories": {k: {name: dict(v) for name, v in memory.items()} for k, memory in self.memories.items()},
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from a `state_dict` of the same rule."""
        if state["settings"] != settings(self.rule):
            raise UsageError(
                f"the state is of {state['settings']}, this is {settings(self.rule)}: build the same rule to resume"
            )
        self.step, self.skipped, self.rho = int(state["step"]), int(state["skipped"]), float(state["rho"])
        self.memories = recalled(state["memories"], self.params)

    def __repr__(self) -> str:
        moved = f"{len(self.moved)} of {len(self.params)} parameters"
        return f"{type(self).__name__}(rho={self._rho:g}, displaces {moved}, step {self.step})"
