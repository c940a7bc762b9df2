"""Figures 3, 4 and 7: what LSAM does to the weights of the two features, and what comes of doing it by hand.

Shapes: K toys, T epochs, B batches, 2 features (easy, hard).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from evenly.papers.experiment import Context, Found
from evenly.papers.springer2024.names import at
from evenly.papers.springer2024.ratio_gaps import EFFECTS
from evenly.papers.springer2024.spiral_probing import probed, rank_correlation
from evenly.papers.springer2024.toys import Grown, Toy

EDGES = [round(-1 + 0.1 * i, 1) for i in range(41)]  # of the histograms of figure 4: −1 to 3


def ratios(
    context: Context,
    *,
    seeds: Sequence[int],
    chi: float,
    rhos: Sequence[float],
    epochs: int,
    sizes: Mapping[str, int],
) -> Found:
    """Figure 3: `chi=X.rho=R.phantom` and `.real`, the medians over training of ṽ_hard/ṽ_easy and v_hard/v_easy.

    Medians over the batches of every epoch, because ṽ_easy passes through zero for large ρ; `.phantom_mean` is the
    mean that the paper speaks of, of ratios cut off at ±10. `.trend` is the rank correlation of `.phantom` and ρ.
    """
    toys = [Toy(seed, chi, rho=rho) for rho in rhos for seed in seeds]
    grown = Grown(toys, **sizes)
    v_TKB2, real_TK2 = watched(grown, epochs)
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for place, toy in enumerate(toys):
        ratio = (v_TKB2[:, place, :, 1] / v_TKB2[:, place, :, 0]).flatten()
        real = real_TK2[:, place, 1] / real_TK2[:, place, 0]
        name = at(chi=chi, rho=toy.rho)
        values[f"{name}.phantom"][toy.seed] = float(ratio.quantile(0.5))
        values[f"{name}.phantom_mean"][toy.seed] = float(ratio.nan_to_num(0.0).clamp(-10, 10).mean())
        values[f"{name}.real"][toy.seed] = float(real.quantile(0.5))
    for what in ("phantom", "real"):
        for seed in seeds:
            found = [values[at(what, chi=chi, rho=rho)][seed] for rho in rhos]
            values[at(f"{what}_trend", chi=chi)][seed] = rank_correlation(rhos, found)
    return Found(dict(values), {"chi": chi, "rhos": list(rhos)})


def rates(
    context: Context, *, seeds: Sequence[int], chi: float, rho: float, epochs: int, sizes: Mapping[str, int]
) -> Found:
    """Figure 4: the factors ṽ/v of both learning rates, and the hard feature's share in their sum, over batches.

    Medians over the batches of every epoch of training; the series holds the histograms of all seeds together.
    """
    toys = [Toy(seed, chi, rho=rho) for seed in seeds]
    v_TKB2, real_TK2 = watched(Grown(toys, **sizes), epochs)
    real_TKB2 = real_TK2[:, :, None].expand_as(v_TKB2)
    factor = v_TKB2 / real_TKB2
    drawn = {
        "easy_factor": factor[..., 0],
        "hard_factor": factor[..., 1],
        "phantom_share": v_TKB2[..., 1] / v_TKB2.sum(3),
        "real_share": real_TKB2[..., 1] / real_TKB2.sum(3),
    }
    values = {
        name: {toy.seed: float(found[:, k].flatten().quantile(0.5)) for k, toy in enumerate(toys)}
        for name, found in drawn.items()
    }
    values["hard_raised"] = {
        toy.seed: float((drawn["hard_factor"][:, k] > 1).double().mean()) for k, toy in enumerate(toys)
    }
    series = {name: _histogram(found) for name, found in drawn.items()}
    return Found(values, {"edges": EDGES, **series})


def compared(
    context: Context,
    *,
    seeds: Sequence[int],
    chi: float,
    rhos: Sequence[float],
    stars: Sequence[float],
    epochs: int,
    sizes: Mapping[str, int],
) -> Found:
    """Figure 7: hard probing error of LSAM and of the three interventions, against the ratio of the two weights.

    `lsam.rho=R.hard`, `.ratio` (as in figure 3); `importance.star=S.hard`, `rate.…`, `both.…`, in percent. `NAME.gain`
    is the improvement on SGD at the largest v*.
    """
    toys = [Toy(seed, chi, rho=rho) for rho in rhos for seed in seeds]
    toys += [Toy(seed, chi, rule=effect, hard=star) for effect in EFFECTS for star in stars for seed in seeds]
    grown = Grown(toys, **sizes)
    v_TKB2, _ = watched(grown, epochs)
    hard = probed(grown)["hard"]
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for place, toy in enumerate(toys):
        name = at(rho=toy.rho) if toy.rule == "lsam" else at(star=toy.hard)
        values[f"{toy.rule}.{name}.hard"][toy.seed] = hard[place]
        if toy.rule == "lsam":
            ratio = (v_TKB2[:, place, :, 1] / v_TKB2[:, place, :, 0]).flatten()
            values[f"lsam.{name}.ratio"][toy.seed] = float(ratio.quantile(0.5))
    for seed in seeds:
        plain = values[f"lsam.{at('hard', rho=0)}"][seed]
        for effect in EFFECTS:
            values[f"{effect}.gain"][seed] = plain - values[f"{effect}.{at('hard', star=stars[-1])}"][seed]
        values["lsam.gain"][seed] = plain - values[f"lsam.{at('hard', rho=rhos[-1])}"][seed]
    return Found(dict(values), {"rhos": list(rhos), "stars": list(stars)})


def watched(grown: Grown, epochs: int) -> tuple[Tensor, Tensor]:
    """ṽ for every batch after every epoch, T × K × B × 2, and v then, T × K × 2; the beginning is epoch 0."""
    phantoms, real = [], []
    for _ in grown.epochs(range(epochs + 1)):
        seen = grown.seen()
        phantoms.append(grown.phantoms(seen))
        real.append(seen.v)
    return torch.stack(phantoms), torch.stack(real)


def _histogram(values: Tensor) -> list[Any]:
    """The share of the values between each two edges; those outside are in the outermost."""
    inside = values.flatten().nan_to_num(0.0).clamp(EDGES[0], EDGES[-1]).double().numpy()
    counts, _ = np.histogram(inside, EDGES)
    return [round(float(count) / len(inside), 5) for count in counts]
