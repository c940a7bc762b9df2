"""Figures 5, 6, 8 and 9 on the toy: how LSAM spreads importance over the examples.

Shapes: K toys, N examples, 2 features (easy, hard).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from evenly.diagnostics import gini, lorenz, median_map
from evenly.papers.experiment import Context, Found
from evenly.papers.springer2024.names import at
from evenly.papers.springer2024.spiral_probing import rank_correlation
from evenly.papers.springer2024.toys import Grown, Toy, phantom_heads, phantom_importance

POINTS = 101  # of a drawn Lorenz curve
BINS = 8


def weighted(
    context: Context,
    *,
    seeds: Sequence[int],
    chi: float,
    rho: float,
    at_epochs: Sequence[int],
    sizes: Mapping[str, int],
) -> Found:
    """Importance at the real and at the phantom weights of toys trained by SGD and by LSAM, at some epochs.

    `epoch=E.lsam.phantom_gini` and `.real_gini`, and of `sgd`; `.hard_poor_phantom` and `.hard_poor_real` are the
    shares of all importance that the half of the examples holds which the hard feature fits worst, `.easy_poor_…`
    likewise; `.hard_rank_…` and `.easy_rank_…` are rank correlations of importance and contribution. Both networks are
    looked at with the phantom of the same ρ. The series holds Lorenz curves (means over seeds) and maps of median
    importance (all seeds together).
    """
    toys = [Toy(seed, chi, rho=r) for r in (0.0, rho) for seed in seeds]
    grown = Grown(toys, **sizes)
    values: dict[str, dict[int, float]] = defaultdict(dict)
    series: dict[str, Any] = {"epochs": list(at_epochs)}
    for epoch in grown.epochs(at_epochs):
        seen = grown.seen()
        v_KB2 = phantom_heads(seen, rho=[rho] * len(toys), group=grown.batch_size)
        weights = {"real": seen.importance, "phantom": phantom_importance(seen, v_KB2, group=grown.batch_size)}
        parts_KN2 = seen.contributions
        for name, places in (("sgd", range(len(seeds))), ("lsam", range(len(seeds), len(toys)))):
            under = f"{at(epoch=epoch)}.{name}"
            for kind, weights_KN in weights.items():
                for place in places:
                    seed, w_N = toys[place].seed, weights_KN[place].double()
                    for what, number in spread(w_N, parts_KN2[place], kind=kind).items():
                        values[f"{under}.{what}"][seed] = number
                own = slice(places.start, places.stop)
                series[f"{under}.{kind}"] = {
                    "lorenz": lorenz_points(weights_KN[own]),
                    "map": mapped(weights_KN[own].flatten(), parts_KN2[own].flatten(0, 1)),
                }
    return Found(dict(values), series)


def spread(weights_N: Tensor, parts_N2: Tensor, *, kind: str) -> dict[str, float]:
    """How importance is spread over the examples, and over what each feature contributes to them."""
    found = {f"{kind}_gini": gini(weights_N)}
    for column, name in enumerate(("easy", "hard")):
        own_N = parts_N2[:, column]
        found[f"{name}_poor_{kind}"] = held_by_poor(weights_N, own_N)
        found[f"{name}_rank_{kind}"] = rank_correlation(own_N.tolist(), weights_N.tolist())
    return found


def held_by_poor(weights_N: Tensor, contribution_N: Tensor) -> float:
    """The share of all weight that the half of the examples with the least contribution holds.

    >>> round(held_by_poor(torch.tensor([0.1, 0.4, 0.5, 1.0]), torch.tensor([0.0, 1.0, 2.0, 3.0])), 6)
    0.25
    """
    poor = contribution_N.argsort()[: len(contribution_N) // 2]
    return float(weights_N[poor].sum() / weights_N.sum().clamp_min(torch.finfo(weights_N.dtype).tiny))


def lorenz_points(weights_SN: Tensor) -> list[float]:
    """The mean over seeds of the shares that the least 0 %, 1 %, … of the examples hold."""
    places = (torch.linspace(0, 1, POINTS, dtype=torch.float64) * weights_SN.shape[1]).round().long()
    curves = torch.stack([lorenz(w_N)[1][places] for w_N in weights_SN])
    return [round(float(value), 5) for value in curves.mean(0)]


def mapped(weights_N: Tensor, parts_N2: Tensor) -> dict[str, Any]:
    """The median weight by easy and hard contribution, as plain numbers: centres of the bins, a row for each hard."""
    found = median_map(weights_N, easy=parts_N2[:, 0].contiguous(), hard=parts_N2[:, 1].contiguous(), bins=BINS)
    return {
        "easy": [round(float(e), 4) for e in (found.easy_edges[1:] + found.easy_edges[:-1]) / 2],
        "hard": [round(float(e), 4) for e in (found.hard_edges[1:] + found.hard_edges[:-1]) / 2],
        # JSON has no NaN.
        "median": [[None if v != v else round(v, 5) for v in row] for row in found.median.T.tolist()],
    }
