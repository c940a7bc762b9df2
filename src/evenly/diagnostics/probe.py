"""Linear probes: logistic regression from features to an attribute.

Shapes: N examples, D features, K rows of weights (1 for two values), R refits.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenly.errors import DataError, UsageError

Array = NDArray[np.float64]
# λ of mean loss + (λ/2)‖w‖², from strong to weak: each fit begins where the one before ended.
STRENGTHS = (1.0, 0.1, 0.01, 0.001, 0.0001)


@dataclass(frozen=True)
class Probe:
    """A probe's 0–1 error on held-out examples (a share of 1), with a 95 % interval for it.

    `interval` is Wilson's, for the number of held-out examples; of a mean over groups, for the number of independent
    examples whose mean error would vary as much (`effective_number`). `errors` are those of the refits, `strengths` the
    regularisation each chose. `weights` (K × D) and `bias` (K) are means over the refits, for features as they are, not
    standardised: `features @ weights.T + bias` is the contribution of the attribute.
    """

    error: float
    interval: tuple[float, float]
    errors: tuple[float, ...]
    strengths: tuple[float, ...]
    weights: Tensor
    bias: Tensor
    values: tuple[int, ...]
    num_fit: int
    num_test: int

    def contribution(self, features_ND: Tensor) -> Tensor:
        """The log-odds of the second value (N) for two values, else of each (N × K)."""
        scores = features_ND.to(self.weights) @ self.weights.T + self.bias
        return scores[:, 0] if len(self.values) == 2 else scores


def fit_probe(
    features_ND: Tensor,
    targets_N: Tensor,
    *,
    test_features: Tensor,
    test_targets: Tensor,
    rng: torch.Generator,
    groups: Tensor | None = None,
    test_groups: Tensor | None = None,
    strengths: Sequence[float] = STRENGTHS,
    refits: int = 5,
    held_out: float = 0.25,
) -> Probe:
    """The error of a logistic regression that reads `targets` from `features`, on the test examples.

    The protocol of Springer et al. (2024), after Kirichenko et al. (2023): features are standardised; each refit holds
    out another part of the examples, fits the rest for every strength λ of mean loss + (λ/2)‖w‖², and takes the λ with
    the lowest error on the held-out part; errors are averaged over refits. With `groups`, every refit draws equally
    many examples of each group, and the error is the mean over `test_groups`.

    >>> rng = torch.Generator().manual_seed(0)
    >>> x = torch.randn(400, 3, generator=rng)
    >>> y = (x[:, 0] > 0).long()
    >>> probe = fit_probe(x[:200], y[:200], test_features=x[200:], test_targets=y[200:], rng=rng)
    >>> probe.error < 0.05
    True
    """
    x_ND, y_N, values = _validate(features_ND, targets_N, test_features, test_targets)
    _check_groups(groups, len(y_N), "groups", least=2)
    _check_groups(test_groups, len(test_targets), "test_groups", least=1)
    test_ND, test_N = _array(test_features), test_targets.cpu().numpy()
    if not 0 < held_out < 1:
        raise UsageError(f"held_out = {held_out} is the share of examples that choose the strength: above 0, below 1.")
    if refits < 1 or not strengths or min(strengths) <= 0:
        raise UsageError(f"refits = {refits}, strengths = {tuple(strengths)}: give 1 or more, all positive.")
    centre_D, scale_D = x_ND.mean(0), x_ND.std(0)
    # A constant feature carries no information, and must not divide by zero, or by the rounding of its mean.
    scale_D[(scale_D == 0) | (np.ptp(x_ND, axis=0) == 0)] = 1
    z_ND, z_test = (x_ND - centre_D) / scale_D, (test_ND - centre_D) / scale_D
    cells = None if test_groups is None else test_groups.cpu().numpy()
    errors, chosen, weights, biases = [], [], [], []
    wrong_share_N = np.zeros(len(test_N))
    for _ in range(refits):
        fit, choose = _split(y_N, None if groups is None else groups.cpu().numpy(), held_out, rng)
        best, strength = _best_fit(z_ND[fit], y_N[fit], z_ND[choose], y_N[choose], strengths)
        wrong_N = best.predict(z_test) != test_N
        wrong_share_N += wrong_N / refits
        errors.append(_mean_error(wrong_N, cells))
        chosen.append(strength)
        weights.append(best.coef_ / scale_D)
        biases.append(best.intercept_ - (best.coef_ / scale_D) @ centre_D)
    error = float(np.mean(errors))
    return Probe(
        error=error,
        interval=wilson(error, len(test_N) if cells is None else _effective_number_of(wrong_share_N, cells)),
        errors=tuple(errors),
        strengths=tuple(chosen),
        weights=torch.from_numpy(np.mean(weights, axis=0)),
        bias=torch.from_numpy(np.mean(biases, axis=0)),
        values=values,
        num_fit=len(fit),
        num_test=len(test_N),
    )


def effective_number(shares: Sequence[float], sizes: Sequence[int]) -> float:
    """How many independent cases vary as much as the mean share of several groups: p(1 − p)/(Σ p_g(1 − p_g)/(G²n_g)).

    Every share is drawn towards ½ by two cases of each outcome (Agresti & Coull, 1998), so that a small group without
    an error is not taken as certain.

    >>> effective_number([0.1], [50]), round(effective_number([0.5, 0.5], [1000, 10]), 1)
    (50.0, 39.6)
    """
    near = [(share * num + 2) / (num + 4) for share, num in zip(shares, sizes, strict=True)]
    mean = sum(near) / len(near)
    variance = sum(p * (1 - p) / num for p, num in zip(near, sizes, strict=True)) / len(near) ** 2
    return mean * (1 - mean) / variance


def wilson(share: float, num: float, *, z: float = 1.959964) -> tuple[float, float]:
    """Wilson's (1927) 95 % interval for a share of `num` independent cases.

    >>> [round(end, 4) for end in wilson(0.5, 100)]
    [0.4038, 0.5962]
    """
    middle = (share + z * z / (2 * num)) / (1 + z * z / num)
    half = z / (1 + z * z / num) * math.sqrt(share * (1 - share) / num + z * z / (4 * num * num))
    return max(0.0, middle - half), min(1.0, middle + half)


def _best_fit(
    x_fit: Array, y_fit: Array, x_choose: Array, y_choose: Array, strengths: Sequence[float]
) -> "tuple[Fit, float]":
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    model = LogisticRegression(warm_start=True, max_iter=1000)
    best: Fit | None = None
    least, strength = math.inf, math.nan
    for candidate in sorted(strengths, reverse=True):
        model.C = 1 / (candidate * len(x_fit))
        with warnings.catch_warnings():
            # On separable features a probe's weights never converge, but its error does, early.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(x_fit, y_fit)
        error = float(np.mean(model.predict(x_choose) != y_choose))
        if error < least:  # of equals, the strongest regularisation
            least, strength = error, candidate
            best = Fit(model.classes_.copy(), model.coef_.copy(), model.intercept_.copy())
    assert best is not None
    return best, strength


@dataclass(frozen=True)
class Fit:
    """A copy of a fit, which the next strength overwrites."""

    classes_: Array
    coef_: Array
    intercept_: Array

    def predict(self, x_ND: Array) -> Array:
        """The most likely value of each row."""
        score = x_ND @ self.coef_.T + self.intercept_
        places = (score[:, 0] > 0).astype(int) if score.shape[1] == 1 else score.argmax(1)
        return np.asarray(self.classes_[places])


def _split(y_N: Array, groups_N: Array | None, held_out: float, rng: torch.Generator) -> tuple[Array, Array]:
    """Positions to fit on and to choose by, with each value (or group) divided in the same proportion."""
    cells_N = y_N if groups_N is None else groups_N
    members = [np.flatnonzero(cells_N == cell) for cell in np.unique(cells_N)]
    most = min(map(len, members)) if groups_N is not None else None
    fit, choose = [], []
    for places in members:
        mixed = places[torch.randperm(len(places), generator=rng).numpy()][:most]
        cut = min(max(1, round(held_out * len(mixed))), len(mixed) - 1)
        choose.append(mixed[:cut])
        fit.append(mixed[cut:])
    return np.concatenate(fit), np.concatenate(choose)


def _mean_error(wrong_N: Array, groups_N: Array | None) -> float:
    if groups_N is None:
        return float(wrong_N.mean())
    return float(np.mean([wrong_N[groups_N == group].mean() for group in np.unique(groups_N)]))


def _effective_number_of(wrong_N: Array, groups_N: Array) -> float:
    members = [groups_N == group for group in np.unique(groups_N)]
    return effective_number([float(wrong_N[m].mean()) for m in members], [int(m.sum()) for m in members])


def _validate(x: Tensor, y: Tensor, test_x: Tensor, test_y: Tensor) -> tuple[Array, Array, tuple[int, ...]]:
    for name, features, targets in (("", x, y), ("test ", test_x, test_y)):
        if features.ndim != 2 or len(features) != len(targets) or len(features) == 0:
            raise DataError(
                f"{name}features of shape {tuple(features.shape)} and {len(targets)} {name}targets: "
                "examples × features and one target each are needed."
            )
        if not torch.isfinite(features).all():
            raise DataError(f"the {name}features hold NaN or inf: look at the layer's activations.")
    if x.shape[1] != test_x.shape[1]:
        raise DataError(f"{x.shape[1]} features to fit but {test_x.shape[1]} to test: take both from one layer.")
    values, counts = np.unique(y.cpu().numpy(), return_counts=True)
    if len(values) < 2:
        raise DataError(f"the attribute has one value, {values[0]}: there is nothing to tell apart.")
    if counts.min() < 2:
        raise DataError(f"value {values[counts.argmin()]} has one example: two are needed, to fit and to choose by.")
    return _array(x), y.cpu().numpy(), tuple(int(value) for value in values)


def _check_groups(groups_N: Tensor | None, num: int, name: str, *, least: int) -> None:
    if groups_N is None:
        return
    if groups_N.shape != (num,):
        raise DataError(f"{name} of shape {tuple(groups_N.shape)} for {num} examples: one number each is needed.")
    values, counts = groups_N.unique(return_counts=True)  # type: ignore[no-untyped-call]  # untyped in torch
    if int(counts.min()) < least:
        lone = values[counts.argmin()].item()
        raise DataError(f"group {lone} of {name} has one example: two are needed, to fit and to choose by.")


def _array(x: Tensor) -> Array:
    """Single precision is kept, which halves the time of a fit."""
    return np.asarray(x.detach().cpu().numpy())
