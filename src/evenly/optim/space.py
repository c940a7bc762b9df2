"""The vector algebra that rules are written in.

A rule is written once, over a `Space`. Here vectors are lists of tensors, a network's parameters, and numbers are
floats; in `evenly.training.ensemble` vectors are the rows of a matrix, one for each network, and numbers are columns.
"""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch._utils import _flatten_dense_tensors as flat

from evenly import rng, tree
from evenly.tree import Params

# For a shorter gradient ρ/‖g‖ would overflow single precision; it counts as zero.
TINY = 1e-30
# Up to this many numbers, copying vectors into one tensor is quicker than an operator for each of their tensors.
SMALL = 1 << 16

Vector = Any
Number = Any


class Space(Protocol):
    """The operations on vectors that a rule may use."""

    def length(self, a: Vector) -> Number:
        """‖a‖."""

    def dot(self, a: Vector, b: Vector) -> Number:
        """⟨a, b⟩."""

    def add(self, a: Vector, b: Vector, factor: Number = 1.0) -> Vector:
        """The sum a + factor · b."""

    def scale(self, a: Vector, factor: Number) -> Vector:
        """The product factor · a."""

    def blend(self, a: Vector, b: Vector, weight: float) -> Vector:
        """The mean (1 − weight) · a + weight · b."""

    def mix(self, a: Vector, s: Number, b: Vector, t: Number) -> Vector:
        """The sum s · a + t · b, written over a."""

    def ratio(self, a: Number, b: Number) -> Number:
        """The quotient a/b: 0 where b is too small to divide by."""

    def share(self, a: Vector, b: Vector) -> Number:
        """The quotient ⟨a, b⟩/‖b‖², how much of b is in a: 0 where b is too small to divide by."""

    def stretch(self, w: Vector, d: Vector, eta: float) -> tuple[Vector, Vector]:
        """T d and T² d, with T = |w| + η for the weights that adapt and 1 for the others."""

    def noise(self, w: Vector, *, seed: int, step: int, group: int) -> Vector:
        """Standard normal numbers in the shape of w, a pure function of (seed, step, group)."""


class Lists:
    """Lists of tensors; `adaptive` says which of them stretch the ball (all, by default).

    >>> space = Lists()
    >>> space.add([torch.tensor([1.0, 1.0])], [torch.tensor([1.0, 2.0])], 0.5)[0].tolist()
    [1.5, 2.0]
    >>> space.ratio(1.0, 4.0), space.ratio(1.0, 0.0), space.ratio(1.0, math.inf)
    (0.25, 0.0, nan)
    """

    def __init__(self, adaptive: Sequence[bool] | None = None) -> None:
        self.adaptive = adaptive

    def length(self, a: Params) -> float:
        """‖a‖ as a number on the host."""
        known: float | None = getattr(a, "known_length", None)  # of a memory
        if known is not None:
            return known
        return tree.length(a) if self.adaptive is None else tree.length(a, few=0)

    add = staticmethod(tree.add)
    scale = staticmethod(tree.scale)

    def dot(self, a: Params, b: Params) -> float:
        """⟨a, b⟩ as a number on the host."""
        if tree.plain_alike([*a, *b]):
            return math.fsum(torch.dot(x.reshape(-1), y.reshape(-1)).item() for x, y in zip(a, b, strict=True))
        return float(tree.dot(a, b))

    def blend(self, a: Params, b: Params, weight: float) -> list[Tensor]:
        """The mean (1 − weight) · a + weight · b."""
        return list(torch._foreach_lerp(list(a), list(b), weight))

    def mix(self, a: Params, s: Any, b: Params, t: Any) -> Params:
        """The sum s · a + t · b, written over a.

        >>> a = [torch.tensor([1.0, 2.0])]
        >>> Lists().mix(a, 2.0, [torch.tensor([1.0, 1.0])], -1.0) is a, a
        (True, [tensor([1., 3.])])
        """
        exact = isinstance(s, float) and isinstance(t, float)
        if exact and s + t == 1.0:  # one pass over memory instead of two
            torch._foreach_lerp_(a, b, t)
            return a
        if not exact or s != 1.0:
            torch._foreach_mul_(a, s)
        if not isinstance(t, Tensor):
            b, t = tree.as_addend(b, t)
        torch._foreach_add_(a, b, alpha=t)
        return a

    def ratio(self, a: float, b: float) -> float:
        """The quotient a/b: 0 for a zero vector's length, which has no direction, and NaN if b is not finite."""
        if not math.isfinite(b):
            return math.nan
        return a / b if b > TINY else 0.0

    def share(self, a: Params, b: Params) -> Any:
        """The quotient ⟨a, b⟩/‖b‖²: 0 for a zero vector, NaN if ‖b‖ is not finite.

        >>> Lists().share([torch.tensor([1.0, 1.0])], [torch.tensor([2.0, 0.0])])
        0.5
        """
        if sum(map(Tensor.numel, b)) <= SMALL and tree.plain_alike([*a, *b]):
            x, y = flat(a), flat(b)  # type: ignore[no-untyped-call]  # torch's own
            size, inner = torch.linalg.vector_norm(y).item(), torch.dot(x, y).item()
        else:
            size, inner = self.length(b), self.dot(a, b)
        return self.ratio(self.ratio(inner, size), size)

    def stretch(self, w: Params, d: Params, eta: float) -> tuple[list[Tensor], list[Tensor]]:
        """T d and T² d; tensors that do not adapt are returned unchanged."""
        where = list(range(len(d))) if self.adaptive is None else [i for i, yes in enumerate(self.adaptive) if yes]
        once, twice = list(d), list(d)
        if where:
            t = torch._foreach_abs([w[i].detach() for i in where])
            torch._foreach_add_(t, eta)
            td = torch._foreach_mul(t, [d[i] for i in where])
            if any(a.is_complex() for a in td):  # T is real
                ttd = list(torch._foreach_mul(td, t))
            else:
                # In place: T is not needed any more, and new memory costs as much as a product.
                torch._foreach_mul_(t, td)
                ttd = list(t)
            for i, a, b in zip(where, td, ttd, strict=True):
                once[i], twice[i] = a, b
        return once, twice

    def noise(self, w: Params, *, seed: int, step: int, group: int) -> list[Tensor]:
        """Standard normal numbers, drawn for whole tensors and cut up where w is sharded."""
        streams = {
            device: rng.generator(seed, "perturbation", step, group, device=device) for device in {t.device for t in w}
        }
        return [
            tree.sharded_like(torch.randn(t.shape, dtype=t.dtype, device=t.device, generator=streams[t.device]), t)
            for t in w
        ]


def orthogonal(space: Space, a: Vector, b: Vector) -> Vector:
    """The part of a that is orthogonal to b: a − (⟨a, b⟩/‖b‖²) b; a itself where b is zero.

    >>> orthogonal(Lists(), [torch.tensor([1.0, 1.0])], [torch.tensor([2.0, 0.0])])[0].tolist()
    [0.0, 1.0]
    """
    return space.add(a, b, -space.share(a, b))
