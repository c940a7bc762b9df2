"""How well the spiral can be read from Φ_hard, against ρ: the work of figures 2, 10 and 11.

Shapes: K networks, N examples, 2 features (easy, hard).
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from scipy.stats import spearmanr
from torch import Tensor

from evenly.diagnostics import fit_probe
from evenly.papers.experiment import Context, PartResult
from evenly.papers.springer2024.quantities import at
from evenly.papers.springer2024.spiral_networks import SpiralNetworks, Toy
from evenly.rng import generator


def errors_by_radius(
    context: Context,
    *,
    seeds: Sequence[int],
    prefix: str,
    chi: float,
    rhos: Sequence[float],
    epochs: int,
    levels: Sequence[float] = (0.0,),
    kind: str = "",
    noise_on: str = "both",
    sizes: Mapping[str, int],
) -> PartResult:
    """Train by LSAM for every seed and ρ, and probe: `PREFIX.rho=R.hard` and so on, in percent.

    With several `levels` of a noise these are `PREFIX.level=L.rho=R.hard`, and `PREFIX.rho=R.hard` is their mean.
    Where the grid holds ρ = 1, `PREFIX.trend` is the rank correlation of hard error and ρ, and `PREFIX.gain` how much
    less ρ = 1 errs than the first ρ.
    """
    noise = {level: {f"{kind}_noise": level, "noise_on": noise_on} if kind else {} for level in levels}
    settings = [(level, rho, seed) for level in levels for rho in rhos for seed in seeds]
    networks = SpiralNetworks([Toy(seed, chi, rho=rho, noise=noise[level]) for level, rho, seed in settings], **sizes)
    errors = probing_errors(networks.train(epochs))
    values: dict[str, dict[int, float]] = defaultdict(dict)
    for place, (level, rho, seed) in enumerate(settings):
        for what, numbers in errors.items():
            if len(levels) > 1:
                values[f"{prefix}.{at(what, level=level, rho=rho)}"][seed] = numbers[place]
            mean = values[f"{prefix}.{at(what, rho=rho)}"]
            mean[seed] = mean.get(seed, 0.0) + numbers[place] / len(levels)
    if 1.0 in rhos:
        for seed in seeds:
            hard = [values[f"{prefix}.{at('hard', rho=rho)}"][seed] for rho in rhos]
            values[f"{prefix}.trend"][seed] = rank_correlation(rhos, hard)
            values[f"{prefix}.gain"][seed] = hard[0] - hard[rhos.index(1.0)]
    return PartResult(dict(values), {"rhos": list(rhos), "levels": list(levels)})


def probing_errors(networks: SpiralNetworks) -> dict[str, list[float]]:
    """Four errors of every network, in percent.

    `hard` and `easy` are the paper's own probing errors, of sign(Φ) beside the feature's class; `hard_fitted` is that
    of a fitted threshold; `label` is the test error.
    """
    hard, easy = networks.readout("balanced", attribute="hard"), networks.readout("balanced", attribute="easy")
    test = networks.readout("test")
    return {
        "hard": _percent(hard.phi[..., 1] * hard.sign <= 0),
        "easy": _percent(easy.phi[..., 0] * easy.sign <= 0),
        "hard_fitted": [
            100 * fitted_threshold_error(phi_N, sign_N, seed=toy.seed)
            for phi_N, sign_N, toy in zip(hard.phi[..., 1], hard.sign, networks.toys, strict=True)
        ],
        "label": _percent(test.contributions.sum(2) <= 0),
    }


def fitted_threshold_error(phi_N: Tensor, sign_N: Tensor, *, seed: int) -> float:
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
