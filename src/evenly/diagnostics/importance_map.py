"""Importance for pages: Lorenz curves of a hundred points, and medians over the easy and the hard feature.

Shapes: N examples, D features, K values of an attribute.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from evenly.data.labelled import Labelled
from evenly.data.splits import Splits
from evenly.diagnostics.features import features
from evenly.diagnostics.importance import Importance, importance, log_odds
from evenly.diagnostics.inequality import median_map
from evenly.diagnostics.probe import Probe
from evenly.diagnostics.probing_error import probing_errors
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import DataError

POINTS = 101


def lorenz_curves(weights: Importance) -> dict[str, list[float]] | None:
    """Both Lorenz curves at no more than 101 shares of the examples; None where all importance is 0.

    >>> even = torch.ones(500)
    >>> curves = lorenz_curves(Importance(even, even, 0.0, 0.0, {}, {}))
    >>> len(curves["share"]), round(curves["real"][50], 6)
    (101, 0.5)
    """
    if not bool(weights.real.any()) or not bool(weights.phantom.any()):
        return None  # every example is fitted to the last digit: all importance is 0
    share_N, real_N = weights.real_lorenz
    _, phantom_N = weights.phantom_lorenz
    share = np.linspace(0, 1, min(POINTS, len(share_N)))
    return {
        "share": share.tolist(),
        "real": np.interp(share, share_N.numpy(), real_N.numpy()).tolist(),
        "phantom": np.interp(share, share_N.numpy(), phantom_N.numpy()).tolist(),
    }


def has_both_features(part: Labelled, splits: Splits) -> bool:
    """Whether the data name an easy and a hard feature, and have a split on which the two vary independently."""
    both = {"easy", "hard"}
    return both <= set(part.attributes) and "balanced" in splits and both <= set(splits["balanced"].attributes)


def importance_map(
    model: nn.Module,
    part: Labelled,
    splits: Splits,
    *,
    weights: Importance,
    rng: torch.Generator,
    layer: str | None = None,
    bins: int = 10,
) -> dict[str, Any]:
    """Springer et al. (2024), figure 6: median importance binned by the contributions of the easy and the hard feature.

    A contribution is y·vᵀΦ(x), the log-odds that a linear probe of the attribute, fitted on balanced data, gives to the
    example's *label*: below 0 the feature speaks against the label, as the easy feature does for a minority. The
    few beyond the 1st and the 99th percentile are counted in the outermost bins. `real`, `phantom` and `counts` are
    laid out like a picture: a column for every bin of the easy contribution (`x_edges`), a row for every bin of the
    hard one (`y_edges`); a median is None where there is no example.

    `by_attribute` is our variant, where a contribution is the log-odds of the attribute's own value: how clearly the
    feature itself is seen, whether or not it agrees with the label.
    """
    probes = probing_errors(model, splits, rng=rng, layer=layer, refits=1, balance="subsample")
    features_ND = features(model, part, layer=layer)

    def signed_by(values: Mapping[str, Tensor]) -> dict[str, Any]:
        easy_N, hard_N = (_clip_tails(contribution(probes[n], features_ND, values[n])) for n in ("easy", "hard"))
        return _picture(weights, easy_N, hard_N, bins)

    by_attribute = signed_by({name: part.attribute(name) for name in ("easy", "hard")})
    known = set(probes["easy"].values) & set(probes["hard"].values)
    if not set(part.labels.tolist()) <= known:  # the attributes are not numbered like the classes: y has no sign
        return {**by_attribute, "signed_by": "attribute"}
    by_label = signed_by({"easy": part.labels, "hard": part.labels})
    return {**by_label, "signed_by": "label", "by_attribute": by_attribute}


def measure_importance(subject: Subject) -> Numbers:
    """Gini indices and Lorenz curves of the examples, and a map over easy and hard features if the data name them."""
    settings = {"rho": subject.rho, **subject.options}
    weights = importance(subject.model, subject.part, **settings)
    numbers = {"gini": weights.real_gini, "phantom_gini": weights.phantom_gini, "gini_rho": settings["rho"]}
    if (curves := lorenz_curves(weights)) is not None:
        numbers["lorenz"] = curves
    if has_both_features(subject.part, subject.splits):
        numbers["importance_map"] = importance_map(
            subject.model, subject.part, subject.splits, weights=weights, rng=subject.rng, layer=subject.layer
        )
    return numbers


def _picture(weights: Importance, easy_N: Tensor, hard_N: Tensor, bins: int) -> dict[str, Any]:
    maps = [median_map(each, easy=easy_N, hard=hard_N, bins=bins) for each in (weights.real, weights.phantom)]
    return {
        "x_edges": maps[0].easy_edges.tolist(),
        "y_edges": maps[0].hard_edges.tolist(),
        "real": _none_for_nan(maps[0].median.T),
        "phantom": _none_for_nan(maps[1].median.T),
        "counts": maps[0].count.T.tolist(),
    }


def contribution(probe: Probe, features_ND: Tensor, values_N: Tensor) -> Tensor:
    """The log-odds that a probe gives to the value each example has.

    >>> weights, bias = torch.tensor([[2.0]]), torch.tensor([0.0])
    >>> probe = Probe(0.0, (0.0, 1.0), (), (), weights, bias, (3, 8), 1, 1)
    >>> contribution(probe, torch.tensor([[1.0], [1.0]]), torch.tensor([8, 3])).tolist()
    [2.0, -2.0]
    """
    known = torch.tensor(probe.values)
    values_N = values_N.cpu()
    place_N = torch.searchsorted(known, values_N).clamp_max(len(known) - 1)
    if not torch.equal(known[place_N], values_N):
        strange = int(values_N[int((known[place_N] != values_N).nonzero()[0])])
        raise DataError(f"value {strange} is not among those the probe was fitted on: {list(probe.values)}.")
    scores = probe.contribution(features_ND.cpu())
    return log_odds(scores.reshape(len(features_ND), -1), place_N)


def _clip_tails(values_N: Tensor) -> Tensor:
    low, high = values_N.double().quantile(torch.tensor([0.01, 0.99], dtype=torch.float64)).tolist()
    return values_N.double().clamp(low, high)


def _none_for_nan(median: Tensor) -> list[list[float | None]]:
    return [[None if value != value else value for value in row] for row in median.tolist()]
