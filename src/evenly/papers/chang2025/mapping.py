"""The work of figure 1 (a–c): maps of divergence, seed by seed, and the three boundaries beside them.

Shapes: M methods, B batch sizes, S values of σ.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from evenly.papers.experiment import Context, Found
from evenly.rng import generator
from evenly.stability.maps import StabilityMap, stability_map

Values = dict[str, dict[int, float]]


def mapped(
    context: Context, *, seeds: Sequence[int], ratios: Sequence[float], stride: int, steps: int, repeats: int
) -> Found:
    """A map for each seed: which share of cells diverged, and how often each boundary says the same, in percent."""
    values: Values = {}
    names = ["sgd", "random", *(f"sam{ratio:g}" for ratio in ratios)]
    counts: Tensor | None = None
    for seed in seeds:
        found = stability_map(
            rng=generator(seed, "map"),
            batches=range(1, 50, stride),
            sigmas=range(1, 51, stride),
            rho_over_alpha=ratios,
            steps=steps,
            repeats=repeats,
        )
        counts = found.diverged.long() if counts is None else counts + found.diverged
        for name, number in numbers(found, names).items():
            values.setdefault(name, {})[seed] = number
    assert counts is not None
    return Found(
        values,
        {
            "num": len(seeds),
            "batches": list(found.batches),
            "sigmas": list(found.sigmas),
            "diverged": {name: counts[i].T.tolist() for i, name in enumerate(names)},
            "lines": {name: lines(found, i) for i, name in enumerate(names)},
        },
    )


def numbers(found: StabilityMap, names: Sequence[str]) -> dict[str, float]:
    """What one map says, in percent of its cells."""
    told = boundaries(found)
    half_b, half_s = len(found.batches) // 2, len(found.sigmas) // 2
    values = {"random.differs": _percent(found.diverged[0] != found.diverged[1])}
    for i, name in enumerate(names):
        diverged_BS = found.diverged[i]
        values |= {
            f"{name}.diverged": _percent(diverged_BS),
            f"{name}.low_sigma": _percent(diverged_BS[:, :half_s]),
            f"{name}.high_sigma": _percent(diverged_BS[:, half_s:]),
            f"{name}.small_batch": _percent(diverged_BS[:half_b]),
            f"{name}.large_batch": _percent(diverged_BS[half_b:]),
            f"{name}.missed": _percent(~diverged_BS[told["criterion"][i]]),
        }
        values |= {f"{name}.agrees.{which}": _percent(says[i] == diverged_BS) for which, says in told.items()}
    return values


def boundaries(found: StabilityMap) -> dict[str, Tensor]:
    """Where each of the three says that the method diverges, M × B × S."""
    return {
        "criterion": found.lr > found.criterion_lr,
        "mean_square": found.lr > found.mean_square_lr,
        "almost_sure": found.exponent > 0,
    }


def lines(found: StabilityMap, method: int) -> dict[str, list[float | None]]:
    """Each boundary as a curve: for every batch size the largest σ at which it says that the method diverges."""
    sigma_S = torch.tensor(found.sigmas, dtype=torch.float64)
    told = {which: (says[method] * sigma_S).amax(1).tolist() for which, says in boundaries(found).items()}
    return {which: [sigma or None for sigma in largest] for which, largest in told.items()}


def _percent(cells: Tensor) -> float:
    return 100 * float(cells.double().mean()) if cells.numel() else 0.0
