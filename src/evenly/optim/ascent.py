"""The displacement ε of SAM and its family: the steepest ascent in a ball of radius ρ."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor

from evenly import tree
from evenly.optim.space import Lists, Number, Space, Vector
from evenly.tree import Params


class Ascent(NamedTuple):
    """A displacement ε = size · direction, not multiplied out: that would cost a copy of the parameters.

    A size that is not finite means that the gradient is not finite: do not move.
    """

    direction: Vector
    size: Number

    @property
    def epsilon(self) -> list[Tensor]:
        """ε itself, for lists of tensors.

        >>> import torch
        >>> Ascent([torch.tensor([1.0, 2.0])], 0.5).epsilon[0].tolist()
        [0.5, 1.0]
        """
        return tree.scale(self.direction, self.size)


def steepest_ascent(space: Space, w: Vector, d: Vector, rho: Number, *, eta: float | None = None) -> Ascent:
    """ε = ρ d/‖d‖ (Foret et al., 2021); with `eta` ε = ρ T²d/‖Td‖, T = |w| + η (Kwon et al., 2021).

    >>> import torch
    >>> steepest_ascent(Lists(), [torch.zeros(2)], [torch.tensor([3.0, 4.0])], 0.1).epsilon[0]
    tensor([0.0600, 0.0800])
    """
    if eta is None:
        return Ascent(d, space.ratio(rho, space.length(d)))
    once, twice = space.stretch(w, d, eta)
    return Ascent(twice, space.ratio(rho, space.length(once)))


def unnormalised_ascent(space: Space, d: Vector, rho: Number) -> Ascent:
    """ε = ρ d (Andriushchenko & Flammarion, 2022).

    >>> import torch
    >>> unnormalised_ascent(Lists(), [torch.tensor([3.0, 4.0])], 0.5).epsilon[0].tolist()
    [1.5, 2.0]
    """
    size = space.length(d)
    return Ascent(d, rho if not isinstance(size, float) or math.isfinite(size) else math.nan)


def sam(w: Params, g: Params, *, rho: float) -> Ascent:
    """SAM's displacement of a list of tensors.

    >>> import torch
    >>> sam([torch.zeros(2)], [torch.tensor([3.0, 4.0])], rho=0.1).epsilon[0]
    tensor([0.0600, 0.0800])
    """
    return steepest_ascent(Lists(), w, g, rho)


def asam(w: Params, g: Params, *, rho: float, eta: float = 0.01, adaptive: Sequence[bool] | None = None) -> Ascent:
    """ASAM's displacement of a list of tensors; those whose entry in `adaptive` is false have T = 1.

    >>> import torch
    >>> asam([torch.tensor([2.0, 0.0])], [torch.tensor([1.0, 1.0])], rho=0.5, eta=0.0).epsilon[0].tolist()
    [1.0, 0.0]
    """
    return steepest_ascent(Lists(adaptive), w, g, rho, eta=eta)
