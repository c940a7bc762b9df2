"""The losses of an ensemble, with the slope ∂ℓ/∂f of every example, which training needs.

The names and conventions are those of the training loop: `cross-entropy`, `logistic` log(1 + exp(−y f)) and `squared`
½‖f − y‖², where class numbers stand for y = ±1 (one output) or a one-hot y (several).

Shapes: K members, N examples, C outputs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import get_args

import torch
from torch import Tensor
from torch.func import grad, vmap
from torch.nn import functional as F

from evenly.errors import UsageError, did_you_mean
from evenly.training.objective import Kind

Given = Kind | Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Loss:
    """One loss per example and its slope, both of outputs K × N × C and of the targets that `targets` makes."""

    value: Callable[[Tensor, Tensor], Tensor]
    slope: Callable[[Tensor, Tensor], Tensor]
    one_hot: bool | None

    def targets(self, labels_N: Tensor, num_outputs: int, dtype: torch.dtype) -> Tensor:
        """Class numbers as y: ±1 for one output, one-hot for several, unchanged for a user's own loss."""
        if self.one_hot is None:
            return labels_N
        if num_outputs > 1:
            return F.one_hot(labels_N, num_outputs).to(dtype)
        return (2 * labels_N - 1).to(dtype)[:, None]


@dataclass(frozen=True)
class Terms:
    """Terms added to every member's loss: label smoothing s and a penalty λ/2·‖f‖² on its outputs.

    As in `evenly.training.objective`: smoothing turns y into (1 − s)y + s/C, and for one output adds s/2·y f.
    """

    smoothing_K11: Tensor
    penalty_K11: Tensor

    def of(self, members: slice) -> "Terms":
        """The terms of a range of members."""
        return Terms(self.smoothing_K11[members], self.penalty_K11[members])

    def add_slope(self, slope_KNC: Tensor, f_KNC: Tensor, y_KNC: Tensor) -> Tensor:
        """Add the slopes of both to that of the loss, in place."""
        num_outputs = f_KNC.shape[2]
        target = y_KNC - 1 / num_outputs if num_outputs > 1 else y_KNC / 2
        return slope_KNC.addcmul_(target, self.smoothing_K11).addcmul_(f_KNC, self.penalty_K11)


def loss_of(given: Given, *, num_outputs: int) -> Loss:
    """The loss of that name, or from a user's function of (outputs, labels) for one example or many.

    `auto` is logistic loss for one output and cross-entropy for several.

    >>> loss = loss_of("logistic", num_outputs=1)
    >>> y = loss.targets(torch.tensor([0, 1]), 1, torch.float32)
    >>> loss.slope(torch.zeros(1, 2, 1), y).flatten().tolist()
    [0.5, -0.5]
    """
    if callable(given):
        return _of_users(given)
    if given not in get_args(Kind):
        hint = did_you_mean(str(given), get_args(Kind))
        raise UsageError(f"there is no loss {given!r}. {hint} A function of (outputs, labels) works too.")
    if given == "auto":
        given = "logistic" if num_outputs == 1 else "cross-entropy"
    if given == "logistic" and num_outputs > 1:
        raise UsageError(f"the logistic loss takes one output, not {num_outputs}: use 'cross-entropy'.")
    if given == "cross-entropy" and num_outputs == 1:
        raise UsageError("cross-entropy of one output is always 0: use 'logistic', or a network with two outputs.")
    return {
        "logistic": Loss(_logistic, _logistic_slope, False),
        "squared": Loss(_squared_error, torch.sub, num_outputs > 1),
        "cross-entropy": Loss(_cross_entropy, _cross_entropy_slope, True),
    }[given]


def _logistic(f: Tensor, y: Tensor) -> Tensor:
    return F.softplus(-y * f).squeeze(-1)


def _logistic_slope(f: Tensor, y: Tensor) -> Tensor:
    """−y σ(−y f)."""
    return torch.sigmoid((y * f).neg_()).mul_(y).neg_()


def _squared_error(f: Tensor, y: Tensor) -> Tensor:
    return (f - y).square().sum(-1) / 2


def _cross_entropy(f: Tensor, y: Tensor) -> Tensor:
    return -(f.log_softmax(-1) * y).sum(-1)


def _cross_entropy_slope(f: Tensor, y: Tensor) -> Tensor:
    """The slope softmax(f) − y."""
    return f.softmax(-1).sub_(y)


def _of_users(given: Callable[[Tensor, Tensor], Tensor]) -> Loss:
    # One example at a time: for a batch of one, a mean loss and a loss per example are the same.
    def one(f_C: Tensor, label: Tensor) -> Tensor:
        return given(f_C[None], label[None]).mean()

    each = vmap(vmap(one))
    slopes = vmap(vmap(grad(one)))

    def everywhere(run: Callable[[Tensor, Tensor], Tensor]) -> Callable[[Tensor, Tensor], Tensor]:
        return lambda f_KNC, label: run(f_KNC, label.expand(f_KNC.shape[:2]))

    return Loss(everywhere(each), everywhere(slopes), None)
