"""The variants as the engine sees them: which gradients they need, where they move, what they remember.

The mathematics is in `ascent`, as pure functions; a rule here only says when each is called and keeps its settings.
What lives between steps is in a `memory` that the engine hands in and saves with its state.
"""

import math
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor

from evenly import tree
from evenly.errors import UsageError
from evenly.optim import ascent
from evenly.optim.ascent import Ascent
from evenly.tree import Params

Memory = dict[str, dict[int, Tensor]]
Gradients = list[Tensor | None]


class Moment(NamedTuple):
    """When and where a rule is asked: the step, the perturbation group, and which parameters the lists stand for."""

    rho: float
    step: int
    group: int
    memory: Memory
    at: list[int]
    #: How much larger the gradients are than they should be (GradScaler); those for `ascent` are already unscaled.
    loss_scale: float = 1.0


@dataclass(frozen=True)
class Rule:
    """SAM (Foret et al., 2021), and what the other rules differ from."""

    #: Whether the gradient at the weights themselves is needed before moving.
    looks_first: ClassVar[bool] = True
    #: Whether the gradient that is left in `.grad` is made from more than the last one.
    combines: ClassVar[bool] = False

    def displaces(self, step: int) -> bool:
        """Whether this step moves the weights at all."""
        return True

    def ascent(self, w: Params, g: Params, now: Moment) -> Ascent:
        """Where to move."""
        return ascent.sam(w, g, rho=now.rho)

    def descent(self, g: Gradients | None, g_adv: Gradients | None, now: Moment) -> Gradients:
        """The gradient to leave, from the one at the weights and the one at the displaced weights."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        for setting in fields(self):
            value = getattr(self, setting.name)
            if isinstance(value, float) and not math.isfinite(value):
                raise UsageError(f"{setting.name}={value!r} is not a finite number")


@dataclass(frozen=True)
class Adaptive(Rule):
    """ASAM; `adaptive` says which parameters scale the ball, by their places."""

    eta: float = 0.01
    adaptive: frozenset[int] = field(default=frozenset())

    def ascent(self, w: Params, g: Params, now: Moment) -> Ascent:
        """Where to move."""
        return ascent.asam(w, g, rho=now.rho, eta=self.eta, adaptive=[i in self.adaptive for i in now.at])


@dataclass(frozen=True)
class Unnormalised(Rule):
    """The gradient itself, not divided by its norm."""

    def ascent(self, w: Params, g: Params, now: Moment) -> Ascent:
        """Where to move."""
        return ascent.unnormalised(w, g, rho=now.rho)


@dataclass(frozen=True)
class Random(Rule):
    """Noise of a fixed size, drawn afresh every step."""

    looks_first: ClassVar[bool] = False
    seed: int = 0

    def ascent(self, w: Params, g: Params, now: Moment) -> Ascent:
        """Where to move."""
        return ascent.random(w, sigma=now.rho, seed=self.seed, step=now.step, group=now.group)


@dataclass(frozen=True)
class Friendly(Rule):
    """FriendlySAM: without the part of the gradient that all batches share."""

    sigma: float = 1.0
    decay: float = 0.9

    def ascent(self, w: Params, g: Params, now: Moment) -> Ascent:
        """Where to move; the running mean learns the gradient afterwards."""
        means = now.memory.setdefault("mean", {})
        # A parameter met for the first time has no past: it counts in full, and its mean begins here.
        known = [means[i] if i in means else torch.zeros_like(t) for i, t in zip(now.at, g, strict=True)]
        result = ascent.friendly(w, g, known, rho=now.rho, sigma=self.sigma)
        if math.isfinite(result.size):
            learned = ascent.running_mean(known, g, decay=self.decay)
            for i, t, mean in zip(now.at, g, learned, strict=True):
                means[i] = mean if i in means else t.clone()
        return result


@dataclass(frozen=True)
class Momentum(Rule):
    """MSAM: looks ahead along the accumulated gradients, and so needs no second one."""

    looks_first: ClassVar[bool] = False
    combines: ClassVar[bool] = True
    momentum: float = 0.9

    def ascent(self, w: Params, g: Params, now: Moment) -> Ascent:
        """Where to move; nowhere until there is a velocity."""
        velocity = now.memory.get("velocity", {})
        known = [velocity.get(i) for i in now.at]
        if all(v is None for v in known):
            return Ascent(w, 0.0)
        whole = [torch.zeros_like(t) if v is None else v for t, v in zip(w, known, strict=True)]
        return ascent.momentum(w, whole, rho=now.rho)

    def descent(self, g: Gradients | None, g_adv: Gradients | None, now: Moment) -> Gradients:
        """The displaced gradient as it is; the velocity learns it, unless it is not finite."""
        assert g_adv is not None
        velocity = now.memory.setdefault("velocity", {})
        at = [i for i in now.at if g_adv[i] is not None]
        fresh = tree.scale([_dense(g_adv[i]) for i in at], 1 / now.loss_scale) if at else []
        if fresh and math.isfinite(tree.length(fresh)):
            for i, t in zip(at, fresh, strict=True):
                velocity[i] = t.clone() if i not in velocity else velocity[i].mul(self.momentum).add_(t)
        return g_adv


@dataclass(frozen=True)
class Gap(Rule):
    """GSAM: also narrows the gap between the loss and the loss at the displaced weights."""

    combines: ClassVar[bool] = True
    alpha: float = 0.4

    def descent(self, g: Gradients | None, g_adv: Gradients | None, now: Moment) -> Gradients:
        """The displaced gradient, less α of what the first one has beside it."""
        assert g is not None
        assert g_adv is not None
        at, first, last = _shared(g, g_adv)
        return _replaced(g_adv, at, ascent.gsam(first, last, alpha=self.alpha)) if at else g_adv


@dataclass(frozen=True)
class Look(Rule):
    """LookSAM: a displaced gradient every k steps, and its sharpness direction reused in between."""

    combines: ClassVar[bool] = True
    k: int = 5
    alpha: float = 0.7

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.k < 1:
            raise UsageError(f"k={self.k} is not a number of steps: LookSAM needs k=1 or more")

    def displaces(self, step: int) -> bool:
        """Every k-th step."""
        return step % self.k == 0

    def descent(self, g: Gradients | None, g_adv: Gradients | None, now: Moment) -> Gradients:
        """With both gradients: remember g_v. With one: put the remembered g_v back in."""
        assert g is not None
        if g_adv is not None:
            at, first, last = _shared(g, g_adv)
            beside = ascent.orthogonal(last, first) if at else []
            if beside and math.isfinite(tree.length(beside)):
                now.memory["sharp"] = dict(zip(at, beside, strict=True))
            return g_adv
        sharp = now.memory.get("sharp", {})
        at = [i for i, t in enumerate(g) if t is not None and i in sharp]
        looked = ascent.look([_dense(g[i]) for i in at], [sharp[i] for i in at], alpha=self.alpha) if at else []
        return _replaced(g, at, looked)


def _dense(g: Tensor | None) -> Tensor:
    assert g is not None
    return g.to_dense() if g.is_sparse else g


def _shared(g: Gradients, g_adv: Gradients) -> tuple[list[int], list[Tensor], list[Tensor]]:
    """The places where both gradients exist, and the gradients there."""
    at = [i for i, (a, b) in enumerate(zip(g, g_adv, strict=True)) if a is not None and b is not None]
    return at, [_dense(g[i]) for i in at], [_dense(g_adv[i]) for i in at]


def _replaced(gradients: Gradients, at: list[int], new: list[Tensor]) -> Gradients:
    result = list(gradients)
    for i, t in zip(at, new, strict=True):
        result[i] = t
    return result


def settings(rule: Rule) -> dict[str, Any]:
    """A rule's settings, for records and for state_dict.

    >>> settings(Gap(alpha=0.1))
    {'rule': 'Gap', 'alpha': 0.1}
    """
    values = {f.name: getattr(rule, f.name) for f in fields(rule)}
    return {"rule": type(rule).__name__, **{k: sorted(v) if isinstance(v, frozenset) else v for k, v in values.items()}}


def recalled(memories: dict[Any, Any], params: Params) -> dict[int, Memory]:
    """What rules remembered, out of a state dict and on the devices of the parameters.

    >>> recalled({"0": {"mean": {"0": torch.ones(1)}}}, [torch.zeros(1)])
    {0: {'mean': {0: tensor([1.])}}}
    """
    return {
        int(group): {
            name: {int(i): t.to(params[int(i)].device).clone() for i, t in kept.items()}
            for name, kept in memory.items()
        }
        for group, memory in memories.items()
    }
