"""Figure 7: how far each intervention is from LSAM where the ratio of the two weights is LSAM's own; free of torch."""

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from evenly.papers.springer2024.names import at

EFFECTS = ("importance", "rate", "both")
Values = Mapping[str, Mapping[int, float]]


def gaps(values: Values) -> dict[str, dict[int, float]]:
    """How much more each intervention errs than LSAM at equal ratios, by interpolation over v*, in points.

    `EFFECT.rho=R.gap` for every ρ > 0, signed; `EFFECT.gap` is the mean of their absolute values. Beyond the smallest
    and the largest v* the intervention at that end is taken, and `clamped` counts the ρ for which it was; so does
    `rho=R.clamped` for each.

    >>> lsam = {"lsam.rho=1.ratio": {0: 1.5}, "lsam.rho=1.hard": {0: 3.0}}
    >>> ends = {f"{e}.star={s}.hard": {0: 9.0 - s} for e in EFFECTS for s in (1, 2)}
    >>> found = gaps(lsam | ends)
    >>> found["both.rho=1.gap"], found["clamped"]
    ({0: 4.5}, {0: 0.0})
    """
    rhos = [rho for rho in _settings(values, "lsam.rho=", ".ratio") if rho > 0]
    stars = _settings(values, f"{EFFECTS[0]}.star=", ".hard")
    found: dict[str, dict[int, float]] = defaultdict(dict)
    for seed in values[f"lsam.{at('ratio', rho=rhos[0])}"]:
        ratios = {rho: values[f"lsam.{at('ratio', rho=rho)}"][seed] for rho in rhos}
        for effect in EFFECTS:
            curve = [values[f"{effect}.{at('hard', star=star)}"][seed] for star in stars]
            for rho, ratio in ratios.items():
                lsam = values[f"lsam.{at('hard', rho=rho)}"][seed]
                found[f"{effect}.{at('gap', rho=rho)}"][seed] = float(np.interp(ratio, stars, curve)) - lsam
            each = [abs(found[f"{effect}.{at('gap', rho=rho)}"][seed]) for rho in rhos]
            found[f"{effect}.gap"][seed] = sum(each) / len(each)
        outside = {rho: float(not stars[0] <= ratio <= stars[-1]) for rho, ratio in ratios.items()}
        for rho, whether in outside.items():
            found[at("clamped", rho=rho)][seed] = whether
        found["clamped"][seed] = sum(outside.values())
    return dict(found)


def _settings(values: Values, before: str, after: str) -> list[float]:
    """The numbers that stand between two parts of the names of quantities, in order."""
    named = (name for name in values if name.startswith(before) and name.endswith(after))
    return sorted(float(name[len(before) : -len(after)]) for name in named)
