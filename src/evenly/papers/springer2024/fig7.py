"""Figure 7: the two effects of LSAM by hand, alone and together, beside LSAM itself."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from evenly.papers import charts
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Measured, Part, PartResult
from evenly.papers.springer2024.quantities import at
from evenly.papers.springer2024.toy import MEDIANS, RHOS, UNSAID, arguments, experiment, radius_chart
from evenly.report.chart import Chart, Layer, Line, Points

EFFECTS = ("importance", "rate", "both")
NAMES = {"importance": "importance weighting", "rate": "learning rate", "both": "combined"}
STARS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
Values = Mapping[str, Mapping[int, float]]

CLAIMS = (
    *(
        Claim(
            effect,
            f"{says}: points of hard probing error gained on SGD at v*_hard = {STARS[-1]:g}",
            f"{effect}.gain > 0",
            note=UNSAID,
        )
        for effect, says in (
            ("importance", "importance weighting alone"),
            ("rate", "the learning rates alone"),
            ("both", "both together"),
        )
    ),
    Claim(
        "comparable",
        "each effect alone gains about as much as the other, in points",
        "importance.gain = rate.gain ± 10",
    ),
    *(
        Claim(
            f"all of LSAM, ρ = {rho:g}",
            f"both together have the error of LSAM with ρ = {rho:g} at its ratio (excess in points)",
            f"both.{at('gap', rho=rho)} = 0 ± 5",
            after=True,
            note="by interpolation over v*_hard at LSAM's median ratio over training. Declared first as the mean "
            "of signed gaps over all ρ > 0, in which opposite gaps cancel",
        )
        for rho in (1.0, 2.0)
    ),
)


def plan(seeds: Sequence[int], **size: int) -> list[Part]:
    """LSAM for every ρ, and each intervention for every v*_hard."""
    return [Part("interventions", interventions, arguments(seeds, rhos=list(RHOS), stars=list(STARS), **size))]


def interventions(
    context: Context,
    *,
    seeds: Sequence[int],
    chi: float,
    rhos: Sequence[float],
    stars: Sequence[float],
    epochs: int,
    sizes: Mapping[str, int],
) -> PartResult:
    """The hard probing error of LSAM and of the three interventions, against the ratio of the two weights.

    `lsam.rho=R.hard`, `.ratio` (as in figure 3); `importance.star=S.hard`, `rate.…`, `both.…`, in percent. `NAME.gain`
    is the improvement on SGD at the largest v*.
    """
    from evenly.papers.springer2024.spiral_networks import SpiralNetworks, Toy
    from evenly.papers.springer2024.spiral_probing_error import probing_errors

    toys = [Toy(seed, chi, rho=rho) for rho in rhos for seed in seeds]
    toys += [Toy(seed, chi, rule=effect, hard=star) for effect in EFFECTS for star in stars for seed in seeds]
    networks = SpiralNetworks(toys, **sizes)
    v_TKB2, _ = networks.phantom_history(epochs)
    hard = probing_errors(networks)["hard"]
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
    return PartResult(dict(values), {"rhos": list(rhos), "stars": list(stars)})


def gaps_at_equal_ratios(values: Values) -> dict[str, dict[int, float]]:
    """How much more each intervention errs than LSAM at equal ratios, by interpolation over v*, in points.

    `EFFECT.rho=R.gap` for every ρ > 0, signed; `EFFECT.gap` is the mean of their absolute values. Beyond the smallest
    and the largest v* the intervention at that end is taken: `rho=R.clamped` is 1 there, and `clamped` their number.

    >>> lsam = {"lsam.rho=1.ratio": {0: 1.5}, "lsam.rho=1.hard": {0: 3.0}}
    >>> ends = {f"{e}.star={s}.hard": {0: 9.0 - s} for e in EFFECTS for s in (1, 2)}
    >>> gaps = gaps_at_equal_ratios(lsam | ends)
    >>> gaps["both.rho=1.gap"], gaps["clamped"]
    ({0: 4.5}, {0: 0.0})
    """
    rhos = [rho for rho in _settings(values, "lsam.rho=", ".ratio") if rho > 0]
    stars = _settings(values, f"{EFFECTS[0]}.star=", ".hard")
    gaps: dict[str, dict[int, float]] = defaultdict(dict)
    for seed in values[f"lsam.{at('ratio', rho=rhos[0])}"]:
        ratios = {rho: values[f"lsam.{at('ratio', rho=rho)}"][seed] for rho in rhos}
        for effect in EFFECTS:
            curve = [values[f"{effect}.{at('hard', star=star)}"][seed] for star in stars]
            for rho, ratio in ratios.items():
                lsam = values[f"lsam.{at('hard', rho=rho)}"][seed]
                gaps[f"{effect}.{at('gap', rho=rho)}"][seed] = float(np.interp(ratio, stars, curve)) - lsam
            each = [abs(gaps[f"{effect}.{at('gap', rho=rho)}"][seed]) for rho in rhos]
            gaps[f"{effect}.gap"][seed] = sum(each) / len(each)
        outside = {rho: float(not stars[0] <= ratio <= stars[-1]) for rho, ratio in ratios.items()}
        for rho, clamped in outside.items():
            gaps[at("clamped", rho=rho)][seed] = clamped
        gaps["clamped"][seed] = sum(outside.values())
    return dict(gaps)


def _settings(values: Values, before: str, after: str) -> list[float]:
    """The numbers that stand between two parts of the names of quantities, in order."""
    named = (name for name in values if name.startswith(before) and name.endswith(after))
    return sorted(float(name[len(before) : -len(after)]) for name in named)


def chart(measured: Measured) -> list[Chart]:
    """Each intervention beside LSAM, against the ratio of the two weights."""
    ratios = [charts.mean(measured, f"lsam.{at('ratio', rho=rho)}") for rho in RHOS]
    lsam: Line = charts.curve(measured, "LSAM", ratios, [f"lsam.{at('hard', rho=rho)}" for rho in RHOS])
    panels = []
    for effect, says in NAMES.items():
        own = charts.curve(measured, says, STARS, [f"{effect}.{at('hard', star=star)}" for star in STARS])
        lines: list[Layer] = [own, lsam, Points("", ratios, lsam.y, colour=1)]
        sentence = f"The error of the spiral against the ratio of the two weights, {says} beside LSAM."
        panels.append(radius_chart(says.capitalize(), lines, sentence, x="hard / easy"))
    return panels


EXPERIMENT = experiment(
    "fig7",
    title="The two effects by hand, alone and together, beside LSAM (figure 7)",
    claim="Importance weighting and learning rates each improve the hard feature, and together they do what LSAM does.",
    plan=plan,
    primary=("importance", "rate", "all of LSAM, ρ = 1"),
    claims=CLAIMS,
    minutes=3.0,
    deviations=("χ = 360; v*_hard in 0.5, 1, 1.5, 2, 3, 4", MEDIANS),
    charts=chart,
    derived=gaps_at_equal_ratios,
    errata=(
        "The text compares by “the mean value of v_hard/v_easy over training (from figure 3)”: the phantom ratio is "
        "meant, the real one hardly changes.",
    ),
)
