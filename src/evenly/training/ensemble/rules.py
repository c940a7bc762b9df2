"""One step's gradient under every rule, each member with its own ρ: the SAM family, LSAM, Springer's interventions.

The mathematics is that of `evenly.optim.rules`, over `Columns`: vectors are the rows of a K × P matrix, numbers are
K × 1 columns. A member whose gradient is zero is not displaced; one that diverges disturbs no other.

Shapes: K members, P parameters, N examples, C outputs, F features.
"""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor

from evenly.optim.cost import rule_class
from evenly.optim.rule import Point
from evenly.optim.rule import Rule as Mathematics
from evenly.optim.space import TINY, Lists
from evenly.rules import FORMER_NAMES
from evenly.rules import RULES as FAMILY
from evenly.training.ensemble.feed import Batch
from evenly.training.ensemble.layout import Layout
from evenly.training.ensemble.passes import Passes, Rows

INTERVENTIONS = ("importance", "rate", "both")
#: The rules that displace the weights; their ρ is required, and ρ = 0 makes them plain steps.
DISPLACING = (*FAMILY, *FORMER_NAMES)
RULES = ("sgd", *DISPLACING, *INTERVENTIONS)


class RuleSettings(NamedTuple):
    """The settings of a rule: a number per member (K × 1), or one for all."""

    rho_K1: Tensor
    seeds: Sequence[int]
    eta: float
    adaptive_P: Tensor
    star_K2: Tensor
    momentum_K1: Tensor
    weight_decay_K1: Tensor


class Columns:
    """The vectors of an ensemble, a row for each member, and numbers as columns: a `Space` of `evenly.optim`."""

    def __init__(self, adaptive_P: Tensor, seeds: Sequence[int], layout: Layout) -> None:
        self.adaptive_P, self.seeds, self.layout = adaptive_P, seeds, layout

    def length(self, a: Tensor) -> Tensor:
        """‖a‖ of every member."""
        length_K1: Tensor = torch.linalg.vector_norm(a, dim=1, keepdim=True)
        return length_K1

    def dot(self, a: Tensor, b: Tensor) -> Tensor:
        """⟨a, b⟩ of every member."""
        return (a * b).sum(1, keepdim=True)

    def add(self, a: Tensor, b: Tensor, factor: float | Tensor = 1.0) -> Tensor:
        """The sum a + factor · b."""
        return torch.addcmul(a, b, factor) if isinstance(factor, Tensor) else torch.add(a, b, alpha=factor)

    def scale(self, a: Tensor, factor: float | Tensor) -> Tensor:
        """The product factor · a."""
        return a * factor

    def blend(self, a: Tensor, b: Tensor, weight: float) -> Tensor:
        """The mean (1 − weight) · a + weight · b."""
        return torch.lerp(a, b, weight)

    def mix(self, a: Tensor, s: float | Tensor, b: Tensor, t: float | Tensor) -> Tensor:
        """The sum s · a + t · b, written over a."""
        scaled = a if isinstance(s, float) and s == 1.0 else a.mul_(s)
        return scaled.addcmul_(b, t) if isinstance(t, Tensor) else scaled.add_(b, alpha=t)

    def share(self, a: Tensor, b: Tensor) -> Tensor:
        """The quotient ⟨a, b⟩/‖b‖² of every member."""
        size_K1 = self.length(b)
        return self.ratio(self.ratio(self.dot(a, b), size_K1), size_K1)

    def ratio(self, a: float | Tensor, b: Tensor) -> Tensor:
        """The quotient of every member, and 0 where the divisor is too small."""
        return torch.where(b.isfinite() & (b > TINY), a / b, 0.0)

    def stretch(self, w: Tensor, d: Tensor, eta: float) -> tuple[Tensor, Tensor]:
        """T d and T² d."""
        t = torch.where(self.adaptive_P, w.abs().add_(eta), 1.0)
        once = t * d
        return once, t.mul_(once)

    def noise(self, w: Tensor, *, seed: int, step: int, group: int) -> Tensor:
        """The same numbers as `RandomPerturbation(seed=…)` for each member's seed."""
        like = [view[0] for view in self.layout.views(w).values()]  # for its shapes only
        drawn = [Lists().noise(like, seed=own, step=step, group=group) for own in self.seeds]
        return torch.stack([torch.cat([t.flatten() for t in tensors]) for tensors in drawn])


class Rule(Protocol):
    """The gradient of one step, left in `g`."""

    def __call__(self, passes: Passes, w: Rows, g: Rows, batch: Batch, step: int) -> None:
        """Compute it."""


def rule_of(name: str, settings: RuleSettings, layout: Layout) -> Rule:
    """The rule of that name for members with these settings."""
    name = FORMER_NAMES.get(name, name)
    if name == "sgd":
        return lambda passes, w, g, batch, step: passes.gradient(w, g, batch)
    space = Columns(settings.adaptive_P, settings.seeds, layout)
    if name == "lsam":
        return lambda passes, w, g, batch, step: _lsam(passes, w, g, batch, settings.rho_K1, space)
    if name in INTERVENTIONS:
        return lambda passes, w, g, batch, step: _intervention(passes, w, g, batch, name, settings.star_K2)
    return Displaced(_mathematics(name, settings), space, settings.rho_K1)


def _mathematics(name: str, settings: RuleSettings) -> Mathematics:
    """The rule, with the numbers that it shares with the members' SGD."""
    kind = rule_class(name).rule_type
    decays = bool(settings.weight_decay_K1.any())
    shared: dict[str, Any] = {
        "momentum": settings.momentum_K1,
        "weight_decay": settings.weight_decay_K1 if decays else None,
        "eta": settings.eta if name == "asam" else None,
    }
    made: Mathematics = kind(**{f.name: shared[f.name] for f in fields(kind) if f.name in shared})
    return made


class Displaced:
    """The step of a rule of `evenly.optim` for all members at once, with the rule's memory."""

    def __init__(self, rule: Mathematics, space: Columns, rho_K1: Tensor) -> None:
        self.rule, self.space, self.rho_K1 = rule, space, rho_K1
        self.memory_KP: Tensor | None = None
        self._there: Rows | None = None

    def __call__(self, passes: Passes, w: Rows, g: Rows, batch: Batch, step: int) -> None:
        """Leave the gradient in `g`."""
        rule = self.rule
        keeps = rule.combines or rule.remembers
        here = Point(self.space, w.flat_KP, None, self.memory_KP, step)
        if rule.needs_gradient:
            passes.gradient(w, g, batch)
            here = here._replace(g=g.flat_KP.clone() if keeps else g.flat_KP)
        if rule.displaces(step):
            ascent = rule.ascent(here, self.rho_K1)
            there = w
            if ascent is not None:
                there = self._there = self._there or Rows(passes.layout, torch.empty_like(w.flat_KP))
                torch.addcmul(w.flat_KP, ascent.direction, ascent.size, out=there.flat_KP)
            passes.gradient(there, g, batch)
            here = here._replace(ascent=ascent, g_adv=g.flat_KP)
        if rule.combines:
            g.flat_KP.copy_(rule.descent(here))
            here = here._replace(left=g.flat_KP)
        memory_input: Any = rule.memory_input(here) if rule.remembers else None
        if memory_input is not None:
            self.memory_KP = rule.update_memory(here, memory_input)


def _lsam(passes: Passes, w: Rows, g: Rows, batch: Batch, rho_K1: Tensor, space: Columns) -> None:
    """SAM of the head alone; the features do not change, so the body is passed once (Springer et al., eq. 5)."""
    for part in passes.whole_batches(w, g, batch):
        body, names = part.body(), passes.head_names
        part.head_gradient(body.features, part.slope(body.features, part.p))
        squares = [part.g[name].flatten(1).square().sum(1) for name in names]
        size_K1 = space.ratio(rho_K1[part.members], torch.stack(squares).sum(0).sqrt()[:, None])
        there = dict(part.p)
        for name in names:
            there[name] = torch.addcmul(part.p[name], part.g[name], size_K1.view(-1, *[1] * (part.g[name].ndim - 1)))
        slope_KNC = part.slope(body.features, there)
        part.head_gradient(body.features, slope_KNC)
        part.body_gradient(body, torch.bmm(slope_KNC, there[names[0]]))


def _intervention(passes: Passes, w: Rows, g: Rows, batch: Batch, effect: str, star_K2: Tensor) -> None:
    """v* for v in the importance weights, in the feature learning rates, or in both (Springer et al., eqs. 7–12).

    The head itself has its ordinary gradient.
    """
    for part in passes.whole_batches(w, g, batch):
        body, v = part.body(), passes.head_names[0]
        star = star_K2[part.members, None, :].expand_as(part.p[v])
        slope_KNC = part.slope(body.features, part.p)
        part.head_gradient(body.features, slope_KNC)
        if effect != "rate":
            slope_KNC = part.slope(body.features, {**part.p, v: star})
        part.body_gradient(body, torch.bmm(slope_KNC, part.p[v] if effect == "importance" else star))
