"""One call of `backward`: each perturbation group is displaced, differentiated at the new point, and restored."""

import contextlib
import math
from typing import Any, Protocol

import torch
from torch import Tensor

from evenly import tree
from evenly.errors import UsageError
from evenly.optim import groups
from evenly.optim.ascent import Ascent
from evenly.optim.cached_weights import forget_cached_weights
from evenly.optim.closures import Result, add_to_grad, repeat_random_numbers
from evenly.optim.device_space import Skips, loss_scale, space_of
from evenly.optim.memory import Memory
from evenly.optim.passes import Passes
from evenly.optim.radius import GroupRadii, radius_at
from evenly.optim.replicas import Gradients, Replicas
from evenly.optim.rule import Point, Rule
from evenly.optim.scratch import Scratch
from evenly.optim.statistics import RunningStatistics, StepWatch

_NOTHING = contextlib.nullcontext()


def _draw_freely() -> contextlib.AbstractContextManager[None]:
    return _NOTHING


class Owner(Protocol):
    """The attributes of `DisplacedGradient` that a step uses."""

    params: list[Tensor]
    moved: list[int]
    rule: Rule
    radii: GroupRadii
    every: int
    fraction: float
    m: Any
    weight_decay: float
    same_dropout: bool
    adaptive: list[bool] | None
    scaler: Any
    skipped: int
    skips: Skips
    memory: Memory
    statistics: RunningStatistics
    replicas: Replicas
    whole: bool
    plain: bool
    scratch: Scratch | None
    aside: list[Tensor] | None
    _rho: Any

    def refuse_frozen(self) -> None:
        """Refuse to displace nothing."""


class Collector:
    """Gradients held back for a backward call that the caller makes."""

    def __init__(self) -> None:
        self.own: Gradients = []
        self.others: dict[int, tuple[Tensor, Tensor]] = {}

    def add(self, own: Gradients, others: list[Tensor], gradients: Gradients, weight: float) -> None:
        """Add weight · gradients, for the parameters and for every other leaf."""
        mine = [None if g is None else g if weight == 1.0 else g * weight for g in own]
        if not self.own:
            self.own = mine
        elif mine:
            self.own = [b if a is None else a if b is None else a + b for a, b in zip(self.own, mine, strict=True)]
        for leaf, g in zip(others, gradients, strict=True):
            if g is not None:
                before = self.others.get(id(leaf))
                self.others[id(leaf)] = (leaf, weight * g if before is None else before[1] + weight * g)

    def pairs(self, params: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        """The leaves that have a gradient, and the gradients."""
        pairs = [(p, g) for p, g in zip(params, self.own, strict=True) if g is not None] + list(self.others.values())
        return [p for p, _ in pairs], [g for _, g in pairs]


class Step:
    """The passes of one call, at optimizer step `step`, micro-batch `micro`."""

    def __init__(self, owner: Owner, passes: Passes, step: int, micro: int) -> None:
        self.owner, self.passes, self.step, self.micro = owner, passes, step, micro
        self.rho = radius_at(owner._rho, step)
        self.plain = bool((self.rho == 0 and not owner.radii) or step % owner.every)
        self.loss_scale = loss_scale(owner.scaler, owner.params)

    def take(self, batch: groups.Batch, into: Collector | None) -> Result:
        """Process all groups in turn, and return the mean of their losses."""
        owner = self.owner
        if self.plain and not owner.rule.follows:
            return self._plain(batch, into)
        parts, spans = [batch], False
        if owner.m == "all":
            spans = owner.replicas.count > 1
        elif owner.m is not None:
            given = groups.require_batch(batch, f"m={owner.m}")
            parts, spans = groups.divide(given, owner.m, owner.replicas.count)
            if owner.replicas.sharded and not spans:
                raise UsageError(f'm={owner.m}: under FSDP2 all processes share one displacement: give m="all"')
        owner.refuse_frozen()
        watch = owner.statistics.watch_step() if owner.statistics else None
        try:
            results = [self._group(part, place, len(parts), spans, watch, into) for place, part in enumerate(parts)]
        finally:
            if watch is not None:
                watch.restore()
        if len(results) == 1:
            return results[0]
        rests = [r.rest for r in results if r.rest is not None]
        rest = tuple(list(each) for each in zip(*rests, strict=True)) if rests else None
        return Result(torch.stack([r.loss.detach() for r in results]).mean(), rest)

    def _plain(self, batch: groups.Batch, into: Collector | None) -> Result:
        if into is None:
            return self.passes.accumulate(batch, 1.0)
        result, g, others, theirs = self.passes.leaf_gradients(batch)
        into.add(self.owner.replicas.mean(g, self.owner.params), others, theirs, 1.0)
        return result

    def _group(
        self,
        batch: groups.Batch,
        place: int,
        num: int,
        spans: bool,
        watch: StepWatch | None,
        into: Collector | None,
    ) -> Result:
        """One perturbation group: displace the weights, differentiate there, restore them."""
        owner, rule, replicas = self.owner, self.owner.rule, self.owner.replicas
        draws = repeat_random_numbers(owner.params) if owner.same_dropout else _draw_freely
        displaces = rule.displaces(self.step)
        asked = owner.moved if displaces and not rule.combines else range(len(owner.params))
        part = owner.fraction < 1 and displaces
        first: Result | None = None
        second: Result | None = None
        g: Gradients | None = None
        g_adv: Gradients | None = None
        home, here = None, None
        at: list[int] = []
        if rule.needs_gradient:
            # With a part of the batch the running statistics are left to the pass that sees all of it.
            tracking: contextlib.AbstractContextManager[None] = _NOTHING
            if watch is not None and (place or part):
                tracking = watch.later_pass() if place else watch.early_pass()
            with draws(), tracking:
                if displaces:
                    early, weight = self._early(batch, spans) if part else (batch, None)
                    first, g = self.passes.gradients(early, asked, weight)
                else:
                    first, g = self._last(batch, num, into)
            g = self._unscale(replicas.mean(g, owner.params, asked) if spans else g)
        if displaces:
            share = self.micro if spans else self.micro * replicas.count + replicas.rank
            group = share * num + place
            here, at, home = self._climb(g, group)
            if not (rule.combines or rule.remembers):
                g = here = None  # Free its memory for the second pass.
            forget_cached_weights()
            again = watch is not None and ((rule.needs_gradient and not part) or place > 0)
            try:
                with draws(), watch.later_pass() if watch is not None and again else _NOTHING:
                    if rule.combines or into is not None:
                        second, g_adv = self._last(batch, num, into)
                    else:
                        with replicas.no_sync() if place < num - 1 else _NOTHING:
                            second = self.passes.accumulate(batch, 1.0 / num)
            finally:
                if home is not None:
                    tree.restore(home)
                    forget_cached_weights()
            g_adv = self._unscale(replicas.mean(g_adv, owner.params) if spans and g_adv is not None else g_adv)
        left = g_adv
        if rule.combines:
            left, here, at = self._combine(g, g_adv, here, at, shared=into is not None)
        if left is not None:
            left = left if spans else replicas.mean(left, owner.params)
            if into is not None:
                into.add(left, [], [], 1.0 / num)
            else:
                add_to_grad(owner.params, left, self.loss_scale / num)
        if rule.remembers and displaces:
            self._learn(here, at, spans)
        result = first if first is not None else second
        assert result is not None
        return result

    def _early(self, batch: groups.Batch, spans: bool) -> tuple[groups.Batch, Tensor | None]:
        """The part of the batch to climb on, and its weight where all ranks climb together."""
        early = groups.first_part(batch, self.owner.fraction)
        if not spans:
            return early, None
        used, given = groups.size_of(early), groups.size_of(batch)
        return early, self.owner.replicas.part_weight(used, given, self.owner.params[0].device)

    def _last(self, batch: groups.Batch, num: int, into: Collector | None) -> tuple[Result, Gradients]:
        """The last pass when its gradient is still to be combined: the gradients are returned, not stored."""
        if into is not None:
            result, g, others, theirs = self.passes.leaf_gradients(batch)
            into.add([], others, theirs, 1.0 / num)
            return result, g
        result, g = self.passes.gradients_apart(batch, 1.0 / num)
        return result, g if num == 1 else [None if t is None else t * num for t in g]

    def _climb(self, g: Gradients | None, group: int) -> tuple[Point | None, list[int], tree.Home | None]:
        """Displace the weights as the rule says; `Home` is None if the displacement is zero or not finite."""
        owner, params, scratch = self.owner, self.owner.params, self.owner.scratch
        at, w = owner.moved, params
        directions: list[Tensor] = g  # type: ignore[assignment]  # once it is known to have no gaps
        gaps = [p for p in params if not p.requires_grad] if g is None else [t for t in g if t is None or t.is_sparse]
        if gaps or not owner.whole:
            at = [i for i in owner.moved if (params[i].requires_grad if g is None else g[i] is not None)]
            directions = [] if g is None else [_dense(g[i]) for i in at]
            w, scratch = [params[i] for i in at], None
            if not w:
                return None, at, None
        directions = directions or []
        if directions and owner.weight_decay:
            directions = tree.add(directions, [p.detach() for p in w], owner.weight_decay)
        rule, adaptive = owner.rule, owner.adaptive
        space = space_of(w, None if adaptive is None else [adaptive[i] for i in at])
        memory = owner.memory.recall(at, w) if rule.remembers else None
        here = Point(space, w, directions, memory, self.step, group)
        if self.plain:
            return here, at, None
        ascent = rule.ascent(here, 1.0 if owner.radii else self.rho)
        if ascent is None:
            return here, at, None
        if owner.radii:
            radii = owner.radii.at(self.step, self.rho, len(params))
            ascent = Ascent(torch._foreach_mul(list(ascent.direction), [radii[i] for i in at]), ascent.size)
        direction, size = ascent
        here = here._replace(ascent=ascent)
        if isinstance(size, Tensor):  # stays on the device: reading it to test for zero would wait
            size = owner.skips.note(size)
        elif not math.isfinite(size):
            owner.skipped += 1
            return here, at, None
        elif not size:
            return here, at, None
        if scratch is not None and w[0].is_cpu:
            home = scratch.displace(direction, size)
        else:
            swap = owner.plain and w[0].is_cpu
            home = tree.displace(w, direction, size, swap=swap, aside=owner.aside)
            owner.aside = None if swap else home.values
        return here, at, home

    def _combine(
        self, g: Gradients | None, g_adv: Gradients | None, climbed: Point | None, moved: list[int], *, shared: bool
    ) -> tuple[Gradients, Point | None, list[int]]:
        """Combine the gradients of parameters that have all of them; other parameters keep the last gradient.

        The rule may write over the last gradients; those of `autograd.grad` may share memory and are copied before.
        """
        owner, params = self.owner, self.owner.params
        last = g_adv if g_adv is not None else g
        assert last is not None
        if shared or any(t is not None and t.is_conj() for t in last):  # nothing is written to a lazy conjugate
            last = [None if t is None else t.resolve_conj().clone() for t in last]
            g, g_adv = (g, last) if g_adv is not None else (last, None)
        both = [each for each in (g, g_adv) if each is not None]
        gaps = [t for each in both for t in each if t is None or t.is_sparse]
        at = list(range(len(params)))
        if gaps:
            at = [i for i in at if all(each[i] is not None for each in both)]
        ascent = climbed.ascent if climbed is not None else None
        known = ascent is not None and not isinstance(ascent.size, Tensor)
        if not at or (ascent is not None and known and not math.isfinite(ascent.size)):
            return last, None, at  # Nothing was displaced: the last gradient is a plain one.
        if ascent is not None and at != moved:
            along = dict(zip(moved, ascent.direction, strict=True))
            ascent = Ascent([along[i] if i in along else torch.zeros_like(params[i]) for i in at], ascent.size)
        w = [params[i].data for i in at]
        memory = owner.memory.recall(at, w) if owner.rule.remembers else None
        own: list[Any] = [g, g_adv]
        if gaps:
            own = [None if each is None else [_dense(each[i]) for i in at] for each in own]
        here = Point(space_of(w), w, own[0], memory, self.step, 0, ascent, own[1])
        final = own[0] if own[1] is None else own[1]
        before = [t._version for t in final] if gaps else None
        made = owner.rule.descent(here)
        here = here._replace(left=made)
        if before is None:
            return made, here, at
        result = list(last)
        for i, t, old, version in zip(at, made, final, before, strict=True):
            if t is not old or t._version != version:  # A sparse gradient that is left as it is stays sparse.
                result[i] = t
        return result, here, at

    def _learn(self, here: Point | None, at: list[int], spans: bool) -> None:
        """Learn from this group; nothing if it has no gradient or its displacement was not finite.

        Every rank learns the mean of what the groups of all ranks have to teach, whether its own has any or not.
        """
        owner, params = self.owner, self.owner.params
        ascent = None if here is None else here.ascent
        skipped = ascent is not None and not isinstance(ascent.size, Tensor) and not math.isfinite(ascent.size)
        memory_input = None if here is None or skipped else owner.rule.memory_input(here)
        if owner.replicas.wrappers and not spans:
            own = {} if memory_input is None else dict(zip(at, memory_input, strict=True))
            among = None if owner.rule.combines else owner.moved
            mean = owner.replicas.mean_of_present([own.get(i) for i in range(len(params))], params, among)
            at = [i for i, t in enumerate(mean) if t is not None]
            memory_input = [t for t in mean if t is not None]
        if memory_input:
            space = space_of(params) if here is None else here.space
            owner.memory.add(owner.rule, space, at, memory_input, step=self.step)

    def _unscale(self, g: Gradients | None) -> Any:
        if g is None or (isinstance(self.loss_scale, float) and self.loss_scale == 1.0):
            return g
        return [None if t is None else t / self.loss_scale for t in g]


def _dense(g: Tensor | None) -> Tensor:
    assert g is not None
    return g.to_dense() if g.is_sparse else g
