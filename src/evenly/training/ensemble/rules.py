"""One step's gradient under every rule, each member with its own ρ: the SAM family, LSAM, Springer's interventions.

The formulas are those of `evenly.optim.ascent`, with a row per member where that has lists of tensors. A member
whose gradient is zero is not displaced; one that diverges disturbs no other.

Shapes: K members, P parameters, N examples, C outputs, F features.
"""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from evenly.optim import ascent
from evenly.training.ensemble.feed import Batch
from evenly.training.ensemble.layout import Layout
from evenly.training.ensemble.passes import Passes, Rows

INTERVENTIONS = ("importance", "rate", "both")
RULES = ("sgd", "sam", "asam", "unnormalised", "random", "lsam", *INTERVENTIONS)
#: The rules that move the weights, by a ρ that must be given; of size 0 they are plain steps.
DISPLACING = ("sam", "asam", "unnormalised", "random", "lsam")


class Knobs(NamedTuple):
    """What a rule may ask for: a number per member (K × 1), or one for all."""

    rho_K1: Tensor
    seeds: Sequence[int]
    eta: float
    adaptive_P: Tensor
    star_K2: Tensor


class Rule(Protocol):
    """The gradient of one step, left in `g`."""

    def __call__(self, passes: Passes, w: Rows, g: Rows, batch: Batch, step: int) -> None:
        """Leave it there."""


def rule_of(name: str, knobs: Knobs, layout: Layout) -> Rule:
    """The rule of that name for members with these knobs."""
    if name == "sgd":
        return lambda passes, w, g, batch, step: passes.gradient(w, g, batch)
    if name == "random":
        return _random(knobs, layout)
    if name == "lsam":
        return lambda passes, w, g, batch, step: _lsam(passes, w, g, batch, knobs.rho_K1)
    if name in INTERVENTIONS:
        return lambda passes, w, g, batch, step: _intervention(passes, w, g, batch, name, knobs.star_K2)
    return _displaced(name, knobs, layout)


def _displaced(name: str, knobs: Knobs, layout: Layout) -> Rule:
    """Sam, asam, unnormalised: two whole passes, the second at w + ε."""
    look = Rows(layout, layout.empty(len(knobs.rho_K1)))
    rho_K1, adaptive_P, eta = knobs.rho_K1, knobs.adaptive_P, knobs.eta

    def sam(w_KP: Tensor, g_KP: Tensor) -> None:
        """ε = ρ g/‖g‖."""
        torch.addcmul(w_KP, g_KP, _per(rho_K1, _length(g_KP)), out=look.flat_KP)

    def unnormalised(w_KP: Tensor, g_KP: Tensor) -> None:
        """ε = ρ g."""
        torch.addcmul(w_KP, g_KP, rho_K1, out=look.flat_KP)

    def asam(w_KP: Tensor, g_KP: Tensor) -> None:
        """ε = ρ T²g/‖Tg‖, T = |w| + η where the parameter adapts and 1 elsewhere."""
        t_KP = torch.where(adaptive_P, w_KP.abs().add_(eta), 1.0)
        scaled_KP = g_KP.mul_(t_KP)
        size_K1 = _per(rho_K1, _length(scaled_KP))
        torch.addcmul(w_KP, scaled_KP.mul_(t_KP), size_K1, out=look.flat_KP)

    climb = {"sam": sam, "unnormalised": unnormalised, "asam": asam}[name]

    def rule(passes: Passes, w: Rows, g: Rows, batch: Batch, step: int) -> None:
        passes.gradient(w, g, batch)
        climb(w.flat_KP, g.flat_KP)
        passes.gradient(look, g, batch)

    return rule


def _random(knobs: Knobs, layout: Layout) -> Rule:
    """One pass at w + δ, δ ~ N(0, σ² I): the very numbers of `RandomPerturbation(seed=…)` for each member's seed."""
    look = Rows(layout, layout.empty(len(knobs.rho_K1)))
    like = [view[0] for view in layout.views(look.flat_KP).values()]  # for its shapes only

    def rule(passes: Passes, w: Rows, g: Rows, batch: Batch, step: int) -> None:
        for row_P, seed in zip(look.flat_KP, knobs.seeds, strict=True):
            noise = ascent.random(like, sigma=1.0, seed=seed, step=step).direction
            torch.cat([t.flatten() for t in noise], out=row_P)
        torch.addcmul(w.flat_KP, look.flat_KP, knobs.rho_K1, out=look.flat_KP)
        passes.gradient(look, g, batch)

    return rule


def _lsam(passes: Passes, w: Rows, g: Rows, batch: Batch, rho_K1: Tensor) -> None:
    """SAM of the head alone; the features stay what they are, so the body is passed once (Springer et al., eq. 5)."""
    for part in passes.whole_batches(w, g, batch):
        body, names = part.body(), passes.head_names
        part.head_gradient(body.features, part.slope(body.features, part.p))
        squares = [part.g[name].flatten(1).square().sum(1) for name in names]
        size_K1 = _per(rho_K1[part.members], torch.stack(squares).sum(0).sqrt()[:, None])
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


def _length(g_KP: Tensor) -> Tensor:
    length_K1: Tensor = torch.linalg.vector_norm(g_KP, dim=1, keepdim=True)
    return length_K1


def _per(rho_K1: Tensor, length_K1: Tensor) -> Tensor:
    """ρ/‖g‖ of every member, and 0 where there is no direction."""
    usable_K1 = length_K1.isfinite() & (length_K1 > ascent.TINY)
    return torch.where(usable_K1, rho_K1 / length_K1, 0.0)
