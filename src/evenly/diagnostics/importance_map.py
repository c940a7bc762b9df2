"""Importance as a page shows it: Lorenz curves of a hundred points, and medians over the easy and the hard feature.

Shapes: N examples, D features, K values of an attribute.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from evenly.data.labelled import Labelled, Splits
from evenly.diagnostics.features import features
from evenly.diagnostics.importance import Importance, log_odds
from evenly.diagnostics.inequality import median_map
from evenly.diagnostics.probe import Probe
from evenly.diagnostics.probing_error import probing_errors
from evenly.errors import DataError

POINTS = 101


def lorenz_curves(found: Importance) -> dict[str, list[float]] | None:
    """Both Lorenz curves at no more than 101 shares of the examples; None where a weight is all there is to share.

    >>> even = torch.ones(500)
    >>> curves = lorenz_curves(Importance(even, even, 0.0, 0.0, {}, {}))
    >>> len(curves["share"]), round(curves["real"][50], 6)
    (101, 0.5)
    """
    if not bool(found.real.any()) or not bool(found.phantom.any()):
        return None  # every example is fitted to the last digit: there is nothing to share out
    share_N, real_N = found.real_lorenz
    _, phantom_N = found.phantom_lorenz
    share = np.linspace(0, 1, min(POINTS, len(share_N)))
    return {
        "share": share.tolist(),
        "real": np.interp(share, share_N.numpy(), real_N.numpy()).tolist(),
        "phantom": np.interp(share, share_N.numpy(), phantom_N.numpy()).tolist(),
    }


def can_be_mapped(part: Labelled, splits: Splits) -> bool:
    """Whether the data name an easy and a hard feature, and have a split on which the two can be told apart."""
    both = {"easy", "hard"}
    return both <= set(part.attributes) and "balanced" in splits and both <= set(splits["balanced"].attributes)


def importance_map(
    model: nn.Module,
    part: Labelled,
    splits: Splits,
    *,
    found: Importance,
    rng: torch.Generator,
    layer: str | None = None,
    bins: int = 10,
) -> dict[str, Any]:
    """Median importance of the examples in `part`, binned by what the easy and the hard feature contribute to each.

    Springer et al. (2024), figure 6. A contribution is the log-odds that a linear probe of the attribute, fitted on
    balanced data, gives the example's own value: the further above 0, the more the feature speaks for it. The few
    beyond the 1st and the 99th percentile are counted in the outermost bins. `real`, `phantom` and `counts` lie as a
    picture does: a column for every bin of the easy contribution (`x_edges`), a row for every one of the hard
    (`y_edges`); a median is None where there is no example.
    """
    probes = probing_errors(model, splits, rng=rng, layer=layer, refits=1, balance="subsample")
    features_ND = features(model, part, layer=layer)
    easy_N, hard_N = (
        _trimmed(contribution(probes[name], features_ND, part.attribute(name))) for name in ("easy", "hard")
    )
    maps = [median_map(weights, easy=easy_N, hard=hard_N, bins=bins) for weights in (found.real, found.phantom)]
    return {
        "x_edges": maps[0].easy_edges.tolist(),
        "y_edges": maps[0].hard_edges.tolist(),
        "real": _known(maps[0].median.T),
        "phantom": _known(maps[1].median.T),
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


def _trimmed(values_N: Tensor) -> Tensor:
    low, high = values_N.double().quantile(torch.tensor([0.01, 0.99], dtype=torch.float64)).tolist()
    return values_N.double().clamp(low, high)


def _known(median: Tensor) -> list[list[float | None]]:
    return [[None if value != value else value for value in row] for row in median.tolist()]
