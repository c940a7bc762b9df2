"""The variants by the names that people know them by."""

from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any, Unpack

from torch import nn

from evenly.errors import UsageError
from evenly.optim.options import Options
from evenly.optim.rules import Adaptive, Friendly, Gap, Look, Momentum, Random, Rule, Unnormalised
from evenly.optim.select import held, named_parameters
from evenly.optim.sharpness_aware import Displaced

Model = nn.Module | Iterable[Any]


class SAM(Displaced):
    """Sharpness-aware minimization: the gradient at w + ρ ∇L/‖∇L‖ (Foret et al., 2021).

    >>> import torch
    >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> SAM([w], rho=0.5).backward(lambda: (w**2).sum() / 2)   # the gradient of ‖w‖²/2 is w
    tensor(12.5000)
    >>> w.grad, w.data                                         # at w + 0.5 · w/‖w‖; and w as it was
    (tensor([3.3000, 4.4000]), tensor([3., 4.]))
    """

    def __init__(self, model: Model, *, rho: float = 0.05, **options: Unpack[Options]) -> None:
        super().__init__(model, Rule(), rho=rho, **options)


class ASAM(Displaced):
    """Adaptive SAM: the gradient at w + ρ T²∇L/‖T∇L‖, T = |w| + η for weights and 1 for the rest (Kwon et al., 2021).

    `adapt` is a pattern over parameter names. The default, "*weight*", is the authors' code; "*" is the paper's
    formula. Parameters given without a model have no names and all adapt.

    >>> import torch
    >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> _ = ASAM([w], rho=0.5, eta=0.0).backward(lambda: w.sum())
    >>> w.grad
    tensor([1., 1.])
    """

    def __init__(
        self, model: Model, *, rho: float = 0.5, eta: float = 0.01, adapt: str = "*weight*", **options: Unpack[Options]
    ) -> None:
        if eta < 0:
            raise UsageError(f"eta={eta} would shrink the ball below the weights: give 0 or more")
        model = held(model)
        names = [name for name, _ in named_parameters(model)]
        places = frozenset(
            i for i, name in enumerate(names) if not isinstance(model, nn.Module) or fnmatchcase(name, adapt)
        )
        if not places:
            raise UsageError(f"adapt={adapt!r} matches no parameter name: that would be SAM; use evenly.SAM")
        super().__init__(model, Adaptive(eta=eta, adaptive=places), rho=rho, **options)


class USAM(Displaced):
    """Unnormalised SAM: the gradient at w + ρ ∇L (Andriushchenko & Flammarion, 2022).

    >>> import torch
    >>> w = nn.Parameter(torch.tensor([3.0, 4.0]))
    >>> _ = USAM([w], rho=0.5).backward(lambda: (w**2).sum() / 2)
    >>> w.grad
    tensor([4.5000, 6.0000])
    """

    def __init__(self, model: Model, *, rho: float = 0.05, **options: Unpack[Options]) -> None:
        super().__init__(model, Unnormalised(), rho=rho, **options)


class RandomPerturbation(Displaced):
    """The gradient at w + δ, δ ~ N(0, σ² I) drawn afresh every step (Chang & Khanna, 2025); one pass.

    The numbers are a function of (seed, step, group): a resumed run draws the same, the global generator is not
    touched. The loss returned is the one at w + δ.

    >>> import torch
    >>> w = nn.Parameter(torch.zeros(2))
    >>> _ = RandomPerturbation([w], sigma=0.1, seed=1).backward(lambda: (w**2).sum() / 2)
    >>> bool(0 < w.grad.norm() < 1), w.data
    (True, tensor([0., 0.]))
    """

    def __init__(self, model: Model, *, sigma: float = 0.01, seed: int = 0, **options: Unpack[Options]) -> None:
        super().__init__(model, Random(seed=seed), rho=sigma, **options)


class GSAM(Displaced):
    """Surrogate-gap SAM: SAM's gradient, less α of the part of ∇L(w) orthogonal to it (Zhuang et al., 2022)."""

    def __init__(self, model: Model, *, rho: float = 0.05, alpha: float = 0.4, **options: Unpack[Options]) -> None:
        super().__init__(model, Gap(alpha=alpha), rho=rho, **options)


class LookSAM(Displaced):
    """SAM every k steps; in between ∇L + α (‖∇L‖/‖g_v‖) g_v, g_v the part of SAM's gradient orthogonal to ∇L.

    Liu et al., 2022, with whole-network norms as in their equations.
    """

    def __init__(
        self, model: Model, *, rho: float = 0.05, k: int = 5, alpha: float = 0.7, **options: Unpack[Options]
    ) -> None:
        super().__init__(model, Look(k=k, alpha=alpha), rho=rho, **options)


class FriendlySAM(Displaced):
    """SAM along d = ∇L − σ m, m the running mean of the gradients with decay λ (Li et al., 2024)."""

    def __init__(
        self, model: Model, *, rho: float = 0.05, sigma: float = 1.0, decay: float = 0.9, **options: Unpack[Options]
    ) -> None:
        if not 0 <= decay < 1:
            raise UsageError(f"decay={decay} is not that of a running mean: give a number in [0, 1)")
        super().__init__(model, Friendly(sigma=sigma, decay=decay), rho=rho, **options)


class MSAM(Displaced):
    """Momentum-SAM: the gradient at w − ρ v/‖v‖, v ← μ v + that gradient (Becker et al., 2024); one pass.

    The loss returned is the one at the displaced weights. Give `momentum` the optimizer's.
    """

    def __init__(self, model: Model, *, rho: float = 0.3, momentum: float = 0.9, **options: Unpack[Options]) -> None:
        if not 0 <= momentum < 1:
            raise UsageError(f"momentum={momentum} does not forget: give a number in [0, 1), the optimizer's")
        super().__init__(model, Momentum(momentum=momentum), rho=rho, **options)
