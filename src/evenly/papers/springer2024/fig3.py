"""Figure 3: the ratio of the weights of the two features against ρ, phantom and real."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Measured, Part, PartResult
from evenly.papers.springer2024.quantities import at
from evenly.papers.springer2024.toy import CHI, MEDIANS, RHOS, UNSAID, arguments, experiment, radius_chart, radius_curve
from evenly.report.chart import Chart, Layer, Rule

SGD, LSAM = at(chi=CHI, rho=0), at(chi=CHI, rho=1)
CLAIMS = (
    Claim("rises", "ṽ_hard/ṽ_easy is larger at ρ = 1 than for SGD", f"{LSAM}.phantom > {SGD}.phantom", note=UNSAID),
    Claim("trend", "and rises with ρ (rank correlation)", f"{at('phantom_trend', chi=CHI)} > 0"),
    Claim("one", "for SGD the ratio is close to 1", f"{SGD}.phantom = 1 ± 0.1", paper=1.0),
    Claim("constant", "v_hard/v_easy is the same at ρ = 1 as for SGD", f"{LSAM}.real = {SGD}.real ± 0.1"),
)


def plan(seeds: Sequence[int], **size: int) -> list[Part]:
    """LSAM for every ρ of the grid."""
    return [Part("ratios", weight_ratios, arguments(seeds, rhos=list(RHOS), **size))]


def weight_ratios(
    context: Context, *, seeds: Sequence[int], chi: float, rhos: Sequence[float], epochs: int, sizes: Mapping[str, int]
) -> PartResult:
    """`chi=X.rho=R.phantom` and `.real`: the medians over training of ṽ_hard/ṽ_easy and v_hard/v_easy.

    Medians over the batches of every epoch, because ṽ_easy passes through zero for large ρ; `.phantom_mean` is the
    mean that the paper speaks of, of ratios cut off at ±10. `.trend` is the rank correlation of `.phantom` and ρ.
    """
    from evenly.papers.springer2024.spiral_networks import SpiralNetworks, Toy
    from evenly.papers.springer2024.spiral_probing_error import rank_correlation

    toys = [Toy(seed, chi, rho=rho) for rho in rhos for seed in seeds]
    v_TKB2, real_TK2 = SpiralNetworks(toys, **sizes).phantom_history(epochs)
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
            ratios = [values[at(what, chi=chi, rho=rho)][seed] for rho in rhos]
            values[at(f"{what}_trend", chi=chi)][seed] = rank_correlation(rhos, ratios)
    return PartResult(dict(values), {"chi": chi, "rhos": list(rhos)})


def chart(measured: Measured) -> list[Chart]:
    """The phantom and the real ratio against ρ."""
    lines: list[Layer] = [
        radius_curve(measured, "ṽ_hard/ṽ_easy (phantom), median", at(chi=CHI), "phantom"),
        radius_curve(measured, "v_hard/v_easy (real), median", at(chi=CHI), "real", dashed=True),
        Rule(y=1.0, name="the paper's SGD"),
    ]
    sentence = "The ratio of the weights of the two features at LSAM's phantom and at the real weights."
    return [radius_chart("Phantom ratio against ρ", lines, sentence, y="hard / easy")]


EXPERIMENT = experiment(
    "fig3",
    title="ṽ_hard/ṽ_easy and v_hard/v_easy against ρ (figure 3)",
    claim="The phantom ratio ṽ_hard/ṽ_easy rises with ρ, while the real one stays near 1.",
    plan=plan,
    primary=("trend", "one", "constant"),
    claims=CLAIMS,
    minutes=1.0,
    deviations=("χ = 360", MEDIANS),
    charts=chart,
    errata=(
        "Trained from v = (1, 1) the real ratio is neither 1 for SGD nor constant in ρ: the easy weight grows from the "
        "first epoch on, and under LSAM more. The phantom ratio rises all the same.",
    ),
)
