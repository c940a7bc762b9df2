"""Figures 1, 2, 10 and 11: how well the spiral can be read from Φ_hard, against ρ.

Shapes: K toys, N examples, 2 features (easy, hard).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from scipy.stats import spearmanr
from torch import Tensor

from evenly.diagnostics import fit_probe
from evenly.papers.experiment import Context, Found
from evenly.papers.springer2024.names import at
from evenly.papers.springer2024.toys import Grown, Toy
from evenly.rng import generator

GRID = 64  # points along each side of a decision surface


def errors(
    context: Context,
    *,
    seeds: Sequence[int],
    under: str,
    chi: float,
    rhos: Sequence[float],
    epochs: int,
    levels: Sequence[float] = (0.0,),
    kind: str = "",
    noise_on: str = "both",
    sizes: Mapping[str, int],
) -> Found:
    """Train by LSAM for every seed and ρ, and probe: `UNDER.rho=R.hard` and so on, in percent.

    `hard` and `easy` are the paper's own probing errors, of sign(Φ) beside the feature's class; `hard_fitted` that of
    a fitted threshold; `label` the test error. With several `levels` of a noise these are `UNDER.level=L.rho=R.hard`,
    and `UNDER.rho=R.hard` is their mean. `UNDER.trend` is the rank correlation of hard error and ρ,
    and `UNDER.gain` how much less ρ = 1 errs than the first ρ.
    """
    noise = {level: {f"{kind}_noise": level, "noise_on": noise_on} if kind else {} for level in levels}
    toys = [
        Toy(seed, chi, rho=rho, noise=noise[level]) for level in levels for rho in rhos for seed in seeds
    ]  # every level for every ρ for every seed, in this order
    grown = Grown(toys, **sizes)
    for _ in grown.epochs([epochs]):
        pass
    found = probed(grown)
    values: dict[str, dict[int, float]] = defaultdict(dict)
    places = iter(range(len(toys)))
    for level in levels:
        for rho in rhos:
            for seed in seeds:
                place = next(places)
                for what, numbers in found.items():
                    if len(levels) > 1:
                        values[f"{under}.{at(what, level=level, rho=rho)}"][seed] = numbers[place]
                    mean = values[f"{under}.{at(what, rho=rho)}"]
                    mean[seed] = mean.get(seed, 0.0) + numbers[place] / len(levels)
    for seed in seeds:
        hard = [values[f"{under}.{at('hard', rho=rho)}"][seed] for rho in rhos]
        values[f"{under}.trend"][seed] = rank_correlation(rhos, hard)
        values[f"{under}.gain"][seed] = hard[0] - hard[rhos.index(1.0)] if 1.0 in rhos else 0.0
    return Found(dict(values), {"rhos": list(rhos), "levels": list(levels), "under": under})


def surfaces(
    context: Context, *, seeds: Sequence[int], chi: float, rho: float, epochs: int, sizes: Mapping[str, int]
) -> Found:
    """Figure 1: Φ over the plane of each feature, trained by SGD and by LSAM, and the errors of both, in percent.

    The surfaces are those of the first seed, as parts of their largest value.
    """
    toys = [Toy(seed, chi, rho=r) for r in (0.0, rho) for seed in seeds]
    grown = Grown(toys, **sizes)
    for _ in grown.epochs([epochs]):
        pass
    found = probed(grown)
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for place, toy in enumerate(toys):
        for what, numbers in found.items():
            values[f"{'lsam' if toy.rho else 'sgd'}.{what}"][toy.seed] = numbers[place]
    train = grown.data[0].train
    inputs_N4 = train.gather(range(len(train)))
    series: dict[str, Any] = {
        "points": {"inputs": inputs_N4.tolist(), "labels": train.labels.tolist()},
        "planes": {},
    }
    for name, place in (("sgd", 0), ("lsam", len(seeds))):
        for number, feature in enumerate(("easy", "hard")):
            x_N2 = inputs_N4[:, 2 * number : 2 * number + 2]
            series["planes"][f"{name} {feature}"] = surface(grown, place, number, x_N2)
    return Found(dict(values), series)


def surface(grown: Grown, member: int, feature: int, x_N2: Tensor) -> dict[str, Any]:
    """Φ of one toy over a square that holds the points: its two axes, and a row of values for each of the second."""
    reach = 1.15 * float(x_N2.abs().max())
    axis = torch.linspace(-reach, reach, GRID)
    rows, columns = torch.meshgrid(axis, axis, indexing="ij")
    inputs = torch.zeros(GRID * GRID, 4)
    inputs[:, 2 * feature], inputs[:, 2 * feature + 1] = columns.flatten(), rows.flatten()
    phi = grown.ensemble.features(inputs)[member, :, feature].view(GRID, GRID)
    shown = phi / phi.abs().max()
    return {"axis": _rounded(axis), "phi": [_rounded(row) for row in shown]}


def probed(grown: Grown) -> dict[str, list[float]]:
    """The probing errors and the test error of every toy, in percent."""
    hard, easy = grown.seen("balanced", attribute="hard"), grown.seen("balanced", attribute="easy")
    test = grown.seen("test")
    return {
        "hard": _percent(hard.phi[..., 1] * hard.sign <= 0),
        "easy": _percent(easy.phi[..., 0] * easy.sign <= 0),
        "hard_fitted": [
            100 * fitted(phi_N, sign_N, seed=toy.seed)
            for phi_N, sign_N, toy in zip(hard.phi[..., 1], hard.sign, grown.toys, strict=True)
        ],
        "label": _percent(test.contributions.sum(2) <= 0),
    }


def fitted(phi_N: Tensor, sign_N: Tensor, *, seed: int) -> float:
    """The error of a threshold on Φ that is fitted on one half of the examples, on the other half."""
    half = len(phi_N) // 2
    class_N = (sign_N > 0).long()
    return fit_probe(
        phi_N[:half, None],
        class_N[:half],
        test_features=phi_N[half:, None],
        test_targets=class_N[half:],
        rng=generator(seed, "probe"),
        refits=1,
    ).error


def rank_correlation(x: Sequence[float], y: Sequence[float]) -> float:
    """Spearman's; 0 where y does not change at all.

    >>> rank_correlation([1, 2, 3], [0.5, 0.2, 0.1]), rank_correlation([1, 2], [0, 0])
    (-1.0, 0.0)
    """
    return 0.0 if len(set(y)) == 1 else float(spearmanr(x, y).statistic)


def _percent(wrong_KN: Tensor) -> list[float]:
    shares: list[float] = (100 * wrong_KN.double().mean(1)).tolist()
    return shares


def _rounded(values: Tensor) -> list[float]:
    return [round(float(value), 4) for value in values]
