"""How importance is spread over examples: Lorenz curves, shares of the badly fitted, maps (figures 5, 6, 8 and 9).

Shapes: S seeds, N examples, 2 features (easy, hard).
"""

from typing import Any

import torch
from torch import Tensor

from evenly.diagnostics import gini, lorenz, median_map
from evenly.papers.springer2024.spiral_probing_error import rank_correlation

POINTS = 101  # of a drawn Lorenz curve
BINS = 8


def spread(weights_N: Tensor, parts_N2: Tensor, *, kind: str) -> dict[str, float]:
    """How importance is spread over the examples, and over what each feature contributes to them.

    `KIND_gini`; `hard_poor_KIND`, the share of all importance that the half of the examples holds which the hard
    feature fits worst; `hard_rank_KIND`, the rank correlation of importance and contribution; `easy_…` likewise.
    """
    values = {f"{kind}_gini": gini(weights_N)}
    for column, name in enumerate(("easy", "hard")):
        own_N = parts_N2[:, column]
        values[f"{name}_poor_{kind}"] = share_of_poorer_half(weights_N, own_N)
        values[f"{name}_rank_{kind}"] = rank_correlation(own_N.tolist(), weights_N.tolist())
    return values


def share_of_poorer_half(weights_N: Tensor, contribution_N: Tensor) -> float:
    """The share of all weight that the half of the examples with the least contribution holds.

    >>> round(share_of_poorer_half(torch.tensor([0.1, 0.4, 0.5, 1.0]), torch.tensor([0.0, 1.0, 2.0, 3.0])), 6)
    0.25
    """
    poor = contribution_N.argsort()[: len(contribution_N) // 2]
    return float(weights_N[poor].sum() / weights_N.sum().clamp_min(torch.finfo(weights_N.dtype).tiny))


def lorenz_points(weights_SN: Tensor) -> list[float]:
    """The mean over seeds of the shares that the least 0%, 1%, … of the examples hold."""
    places = (torch.linspace(0, 1, POINTS, dtype=torch.float64) * weights_SN.shape[1]).round().long()
    curves = torch.stack([lorenz(w_N)[1][places] for w_N in weights_SN])
    return [round(float(value), 5) for value in curves.mean(0)]


def importance_map(weights_N: Tensor, parts_N2: Tensor) -> dict[str, Any]:
    """The median weight by easy and hard contribution, as plain numbers: centres of the bins, a row for each hard."""
    medians = median_map(weights_N, easy=parts_N2[:, 0].contiguous(), hard=parts_N2[:, 1].contiguous(), bins=BINS)
    return {
        "easy": [round(float(e), 4) for e in (medians.easy_edges[1:] + medians.easy_edges[:-1]) / 2],
        "hard": [round(float(e), 4) for e in (medians.hard_edges[1:] + medians.hard_edges[:-1]) / 2],
        # JSON has no NaN.
        "median": [[None if v != v else round(v, 5) for v in row] for row in medians.median.T.tolist()],
    }
