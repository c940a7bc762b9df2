"""Figure 6: two features of the same strength, both in every example: the gap of eq. 11, and what symmetry says of it.

With β_e = β_d = α = 1 nothing tells the features apart: swapping their names is a symmetry of data, weights and
training, under which (G_e − G_d) − (S_e − S_d) changes its sign. Its mean over seeds is zero.
"""

from collections.abc import Sequence
from typing import Any

from evenly.papers.charts import bars
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Experiment, Measured, Part, PartResult, Scale
from evenly.papers.nguyen2024.fig2 import median_curve
from evenly.papers.nguyen2024.two_layer_settings import NETWORKS, SEEDS, SHOWN, TINY, WITH_BIAS
from evenly.report.chart import Chart, Layer, Rule

CLAIMS = (
    Claim("gap", "(G_e − G_d) − (S_e − S_d) is 0.2 to 0.3 from 250 iterations on", "1.gap > 0", 0.25, margin=0.1),
    Claim(
        "symmetry",
        "it is zero on average: swapping the names of the two features changes its sign and nothing else",
        "1.gap = 0 ± 0.1",
        corrects=True,
    ),
    Claim("size", "whatever its sign, its size is far below 0.2", "1.size < 0.2", corrects=True),
    Claim(
        "favoured",
        "where the feature that is ahead at first is called easy, the gap is smaller in SAM",
        "1.favoured > 0",
        corrects=True,
        note="This is what the proof of theorem 3.4 assumes of the easy feature.",
    ),
)


def plan(seeds: tuple[int, ...], **size: Any) -> list[Part]:
    """Both networks."""
    return [
        Part(f"{network}β_d = 1", gap, {"seeds": list(seeds), "name": f"{network}1", "bias": bias, **size})
        for network, bias in NETWORKS.items()
    ]


def gap(context: Context, *, seeds: Sequence[int], name: str, **settings: Any) -> PartResult:
    """`NAME.gap`: (G_e − G_d) − (S_e − S_d), its mean from 250 iterations on; `.size` without its sign.

    For `NAME.favoured`, the feature that is more aligned with the initial weights counts as easy: the proof of theorem
    3.4 assumes that the easy one is ahead.
    """
    from evenly.papers.nguyen2024.two_layer_dynamics import alignment_curves

    curves = alignment_curves(context, seeds=seeds, name=name, beta_easy=1.0, beta_hard=1.0, alpha=1.0, **settings)
    values = dict(curves.values)
    ours = {s: values[f"{name}.gd.gap.late"][s] - values[f"{name}.sam.gap.late"][s] for s in seeds}
    ahead = {s: values[f"{name}.gd.easy.start"][s] >= values[f"{name}.gd.hard.start"][s] for s in seeds}
    values[f"{name}.gap"] = ours
    values[f"{name}.size"] = {s: abs(number) for s, number in ours.items()}
    values[f"{name}.favoured"] = {s: number if ahead[s] else -number for s, number in ours.items()}
    return PartResult(values, curves.series)


def charts(measured: Measured) -> list[Chart]:
    """The gap between the features in GD and in SAM, and the difference of the two for every seed."""
    sentence = "Easy minus difficult alignment where both are equally strong: medians and quartiles over seeds."
    panels = [
        Chart(
            f"Gap between equal features, {shown}",
            "iteration",
            "gap",
            [median_curve(SHOWN[rule], measured.series[f"{network}β_d = 1"], rule, "gap") for rule in SHOWN],
            sentence,
        )
        for network, shown in (("", "with bias"), ("eq1 ", "eq. 1, no bias"))
    ]
    quantities = {"as named": "1.gap", "first ahead": "1.favoured", "size": "1.size"}
    layers: list[Layer] = [
        bars(measured, quantities, name="(G_e − G_d) − (S_e − S_d)", bar=True),
        Rule(y=0.25, name="the paper"),
    ]
    sentence = "The gap of GD less that of SAM from 250 iterations on: mean, 95% interval and every seed."
    return [*panels, Chart("GD's gap less SAM's, with bias", "", "difference", layers, sentence)]


EXPERIMENT = Experiment(
    key="nguyen2024/fig6",
    title="Figure 6: two features of equal strength",
    claim="Even when both features are equally strong, SAM's gap between them is smaller than GD's, by 0.2 to 0.3.",
    plan=plan,
    claims=CLAIMS,
    scales={
        "smoke": Scale((0, 1), 0.05, {"num": 200, "iterations": 60, "horizon": 40, "every": 10}, deviations=TINY),
        "full": Scale(SEEDS, 5, {"num": 10_000, "iterations": 600}, deviations=(WITH_BIAS,), levels=True),
    },
    charts=charts,
    errata=(
        "With β_e = β_d = α = 1 the two features are interchangeable: over seeds the gap has mean zero, whatever one "
        "seed shows, and α^⅓ β_e > β_d, which theorem 3.4 asks for, does not hold.",
    ),
    primary="gap",
)
