"""Where to look before stepping: one pure rule for every variant of sharpness-aware minimization.

A rule takes weights w and gradients g and gives the displacement ε = size · direction as an `Ascent`. A size that
is not finite means that the gradient was not either: whoever asked should not move. `gsam`, `orthogonal` and `look`
are the other half: what some variants make of the two gradients afterwards.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from evenly import rng, tree
from evenly.tree import Params

# A gradient shorter than this has no direction worth the name: ρ/‖g‖ would overflow single precision.
TINY = 1e-30


class Ascent(NamedTuple):
    """A displacement ε = size · direction, not multiplied out: that would cost a copy of the parameters."""

    direction: Params
    size: float

    @property
    def epsilon(self) -> list[Tensor]:
        """ε itself.

        >>> Ascent([torch.tensor([1.0, 2.0])], 0.5).epsilon[0].tolist()
        [0.5, 1.0]
        """
        return tree.scale(self.direction, self.size)


def sam(w: Params, g: Params, *, rho: float) -> Ascent:
    """Steepest ascent in the L2 ball: ε = ρ g/‖g‖ (Foret et al., 2021).

    >>> sam([torch.zeros(2)], [torch.tensor([3.0, 4.0])], rho=0.1).epsilon[0]
    tensor([0.0600, 0.0800])
    """
    return Ascent(g, _per(rho, tree.length(g)))


def asam(w: Params, g: Params, *, rho: float, eta: float = 0.01, adaptive: Sequence[bool] | None = None) -> Ascent:
    """Steepest ascent in a ball that scales with the weights: ε = ρ T²g/‖Tg‖, T = |w| + η (Kwon et al., 2021).

    Tensors whose entry in `adaptive` is false have T = 1, as the biases do in the authors' code.

    >>> asam([torch.tensor([2.0, 0.0])], [torch.tensor([1.0, 1.0])], rho=0.5, eta=0.0).epsilon[0].tolist()
    [1.0, 0.0]
    """
    chosen = [True] * len(g) if adaptive is None else list(adaptive)
    where = [i for i, yes in enumerate(chosen) if yes]
    scaled, direction = list(g), list(g)
    if where:
        t = torch._foreach_abs([w[i].detach() for i in where])
        torch._foreach_add_(t, eta)
        tg = torch._foreach_mul(t, [g[i] for i in where])
        ttg = torch._foreach_mul(t, tg)
        for i, a, b in zip(where, tg, ttg, strict=True):
            scaled[i], direction[i] = a, b
    return Ascent(direction, _per(rho, tree.length(scaled, few=0)))


def unnormalised(w: Params, g: Params, *, rho: float) -> Ascent:
    """A plain gradient step uphill: ε = ρ g (Andriushchenko & Flammarion, 2022).

    >>> unnormalised([torch.zeros(2)], [torch.tensor([3.0, 4.0])], rho=0.5).epsilon[0].tolist()
    [1.5, 2.0]
    """
    return Ascent(g, rho if math.isfinite(tree.length(g)) else math.nan)


def random(w: Params, *, sigma: float, seed: int, step: int, group: int = 0) -> Ascent:
    """Noise instead of a gradient: ε ~ N(0, σ² I), a pure function of (seed, step, group) (Chang & Khanna, 2025).

    >>> a = random([torch.zeros(2)], sigma=0.1, seed=0, step=7).epsilon[0]
    >>> b = random([torch.zeros(2)], sigma=0.1, seed=0, step=7).epsilon[0]
    >>> torch.equal(a, b), torch.equal(a, random([torch.zeros(2)], sigma=0.1, seed=0, step=8).epsilon[0])
    (True, False)
    """
    streams = {
        device: rng.generator(seed, "perturbation", step, group, device=device) for device in {t.device for t in w}
    }
    noise = [
        tree.sharded_like(torch.randn(t.shape, dtype=t.dtype, device=t.device, generator=streams[t.device]), t)
        for t in w
    ]
    return Ascent(noise, sigma)


def friendly(w: Params, g: Params, mean: Params | None, *, rho: float, sigma: float = 1.0) -> Ascent:
    """Ascent along what is peculiar to this batch: ε = ρ d/‖d‖, d = g − σ m (Li et al., 2024).

    m is the running mean of the gradients before this one (`running_mean`), as in the authors' code; the first step
    has none and is SAM's.

    >>> g, m = [torch.tensor([3.0, 4.0])], [torch.tensor([0.0, 4.0])]
    >>> friendly([torch.zeros(2)], g, m, rho=0.1).epsilon[0]
    tensor([0.1000, 0.0000])
    """
    d = g if mean is None else tree.add(g, mean, -sigma)
    return Ascent(d, _per(rho, tree.length(d)))


def running_mean(mean: Params | None, g: Params, *, decay: float) -> list[Tensor]:
    """The running mean m ← λ m + (1 − λ) g, beginning at the first g.

    >>> running_mean([torch.tensor(1.0)], [torch.tensor(2.0)], decay=0.75)[0].item()
    1.25
    """
    if mean is None:
        return [t.clone() for t in g]
    return list(torch._foreach_lerp(list(mean), list(g), 1.0 - decay))


def momentum(w: Params, velocity: Params, *, rho: float) -> Ascent:
    """Look ahead along the momentum: ε = −ρ v/‖v‖, v ← μ v + ∇L(w + ε) (MSAM, Becker et al., 2024).

    >>> momentum([torch.zeros(2)], [torch.tensor([3.0, 4.0])], rho=0.1).epsilon[0]
    tensor([-0.0600, -0.0800])
    """
    return Ascent(velocity, _per(-rho, tree.length(velocity)))


def gsam(g: Params, g_adv: Params, *, alpha: float) -> list[Tensor]:
    """The displaced gradient, less α of what g has beside it: g_adv − α g⊥ (GSAM, Zhuang et al., 2022).

    >>> gsam([torch.tensor([1.0, 1.0])], [torch.tensor([2.0, 0.0])], alpha=0.5)[0].tolist()
    [2.0, -0.5]
    """
    return tree.add(g_adv, orthogonal(g, g_adv), -alpha)


def orthogonal(a: Params, b: Params) -> list[Tensor]:
    """The part of a that is orthogonal to b: a − (⟨a, b⟩/‖b‖²) b; a itself where b is zero.

    >>> orthogonal([torch.tensor([1.0, 1.0])], [torch.tensor([2.0, 0.0])])[0].tolist()
    [0.0, 1.0]
    """
    square = tree.length(b) ** 2
    return tree.add(a, b, -float(tree.dot(a, b)) / square) if square > 0 else [t.clone() for t in a]


def look(g: Params, g_v: Params, *, alpha: float) -> list[Tensor]:
    """A gradient with the remembered sharpness direction put back: g + α (‖g‖/‖g_v‖) g_v (LookSAM, Liu et al., 2022).

    >>> look([torch.tensor([3.0, 4.0])], [torch.tensor([0.5, 0.0])], alpha=0.2)[0].tolist()
    [4.0, 4.0]
    """
    size = tree.length(g_v)
    return tree.add(g, g_v, alpha * tree.length(g) / size) if size > 0 else list(g)


def _per(rho: float, length: float) -> float:
    """ρ/‖g‖: 0 for a zero gradient, which has no direction, and NaN for one that is not finite."""
    if not math.isfinite(length):
        return math.nan
    return rho / length if length > TINY else 0.0
