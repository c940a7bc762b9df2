"""The ten mistakes as charts: the paper's statement as a line, what is found as bars."""

from typing import Any

from evenly.papers.chang2025.charts import BOUNDARIES, stability
from evenly.papers.chang2025.drawing import banded, bars, compared, mean
from evenly.papers.experiment import Measured
from evenly.report.chart import Chart, Rule

FEATURES = (2, 3, 4, 5)


def mistake1(measured: Measured) -> list[Chart]:
    """λmax(S) with and without the root beside its largest possible value; and what SAM keeps of σ."""
    return [
        compared(
            measured,
            {"as defined": "sgd.lambda_max_s", "n · Tr H": "sgd.n_trace", "no root": "sgd.lambda_max_s_printed"},
            title="λmax(S) of SGD",
            y="λmax(S)",
            sentence=f"λmax(S) is {mean(measured, 'sgd.lambda_max_s'):.0f}, and can be no more than n·Tr H = "
            f"{mean(measured, 'sgd.n_trace'):.0f}; without the root it is "
            f"{mean(measured, 'sgd.lambda_max_s_printed'):.0f}.",
            level=12740.0,
            level_name="paper",
        ),
        compared(
            measured,
            {"as defined": "sam0.1.sigma_kept", "no root": "sam0.1.sigma_printed_kept"},
            title="σ of SAM (ρ = 0.1) over σ of SGD",
            y="ratio",
            sentence=f"SAM keeps {mean(measured, 'sam0.1.sigma_kept'):.2f} of σ as it is defined, and "
            f"{mean(measured, 'sam0.1.sigma_printed_kept'):.2f} without the root.",
            level=65.7 / 133.9,
            level_name="paper",
        ),
    ]


def mistake2(measured: Measured) -> list[Chart]:
    """Both thresholds over C."""
    exact = {f"C = {c}": f"C{c}.exact" for c in FEATURES} | {"memorising": "memorising.exact"}
    criterion = {f"C = {c}": f"C{c}.criterion" for c in FEATURES}
    ends = ", ".join(f"{mean(measured, quantity):.2f} for {label}" for label, quantity in exact.items())
    return [
        Chart(
            "Largest stable learning rate",
            "",
            "η",
            [bars(measured, exact, name="exact"), bars(measured, criterion, name="criterion")],
            f"The criterion gives {mean(measured, 'C2.criterion'):.3f} for every C; the exact threshold is {ends}.",
        )
    ]


def mistake3(measured: Measured) -> list[Chart]:
    """In how many sets one criterion sees what the other does not."""
    return [
        compared(
            measured,
            {"only the σ-criterion": "only_sigma", "only the sharpest example": "only_sharpest"},
            title="Sets in which one criterion is stricter",
            y="% of sets",
            sentence=f"The σ-criterion is stricter in {mean(measured, 'only_sigma'):.0f} % of the sets, the one of the "
            f"sharpest example in {mean(measured, 'only_sharpest'):.0f} %; in the others they are equal.",
        )
    ]


def mistake4(measured: Measured) -> list[Chart]:
    """σ_SAM/σ over C."""
    return [
        compared(
            measured,
            {f"C = {c}": f"C{c}.gain" for c in FEATURES},
            title="σ_SAM/σ with equal curvatures in a cluster",
            y="ratio",
            sentence="σ_SAM = σ for every C: the factor 1 + (ρ/α)λ is in the numerator and in the denominator.",
        )
    ]


def mistake5(measured: Measured) -> list[Chart]:
    """Theorem 3.2's learning rate over SGD's, with both readings of λmin."""
    return [
        compared(
            measured,
            {"SGD": "sgd.lr", "theorem 3.2": "theorem.lr", "on the range of H": "range.theorem.lr"},
            title="Critical learning rates",
            y="η",
            sentence=f"H is singular and theorem 3.2 is SGD's criterion, {mean(measured, 'theorem.lr'):.4f}; on the "
            f"range of H, where λmin = {mean(measured, 'range.smallest'):.2g}, it is "
            f"{mean(measured, 'range.theorem.lr'):.4f}.",
            bar=False,
        )
    ]


def mistake6(measured: Measured) -> list[Chart]:
    """As theorem 3.4's second panel, with the entries of S."""
    return [
        compared(
            measured,
            {"memorises": "shared.memorises", "S off its diagonal": "shared.off"},
            title="One unit that two examples share",
            y="1 if it memorises; |S₁₂|/S₁₁",
            sentence="S is diagonal, and the solution does not memorise.",
            y_range=(-0.05, 1.1),
            level=1.0,
            level_name="theorem 3.4, ⇐",
        )
    ]


def mistake7(measured: Measured) -> list[Chart]:
    """Products within a cluster over C."""
    return [
        compared(
            measured,
            {f"C = {c}": f"C{c}.product" for c in FEATURES},
            title="⟨gᵢ, gⱼ⟩ within a cluster over 2√(d+1)",
            y="ratio",
            sentence=f"For C = 2 it is {mean(measured, 'C2.product'):.2f} of what equal curvatures would give.",
            level=1.0,
            level_name="if Hᵢ = Hⱼ",
        )
    ]


def mistake8(measured: Measured) -> list[Chart]:
    """The map with all three lines, and how often each agrees with it."""
    methods = {"SGD": "sgd", "SAM .1": "sam0.1", "SAM .2": "sam0.2", "SAM .4": "sam0.4"}
    layers = [
        bars(measured, {label: f"{method}.agrees.{which}" for label, method in methods.items()}, name=name)
        for which, name in BOUNDARIES.items()
    ]
    agree = {which: mean(measured, f"sgd.agrees.{which}") for which in BOUNDARIES}
    sentence = (
        f"For SGD the almost-sure line agrees with the simulation in {agree['almost_sure']:.1f} % of the cells, the "
        f"mean-square line in {agree['mean_square']:.1f} %, the criterion in {agree['criterion']:.1f} %."
    )
    return [
        stability(measured, "sgd", "SGD"),
        Chart("Agreement with the simulation", "", "% of cells", layers, sentence, y_range=(50, 101)),
    ]


def mistake9(measured: Measured) -> list[Chart]:
    """Where both end, and their paths."""
    paths: Any = measured.series["all"]["paths"]
    lines = [
        banded(name, range(len(runs[0])), runs, colour=number) for number, (name, runs) in enumerate(paths.items())
    ]
    cycle = mean(measured, "cycle")
    sentence = (
        f"SAM stays at |w| = {mean(measured, 'sam'):.2f} ρ in the mean; the 2-cycle is {cycle:.2f} ρ. The model with "
        "constant α vanishes."
    )
    return [
        Chart("On a parabola", "step", "|w|/ρ", [*lines, Rule(y=cycle, name="2-cycle")], sentence, y_log=False),
        compared(
            measured,
            {"SAM": "sam", "2-cycle": "cycle", "constant α": "model"},
            title="Where they end",
            y="|w|/ρ",
            sentence=sentence,
        ),
    ]


def mistake10(measured: Measured) -> list[Chart]:
    """Misfits of the example and of the construction, and the error of the moment, as printed and as meant."""
    return [
        compared(
            measured,
            {
                "C.1 printed": "example.printed",
                "C.1 meant": "example.meant",
                "k > C": "rows.printed",
                "k > 2^C": "rows.meant",
            },
            title="Examples that are not fitted",
            y="% of the cube",
            sentence=f"As printed {mean(measured, 'example.printed'):.0f} % and "
            f"{mean(measured, 'rows.printed'):.0f} % of the cube are not fitted, as meant none.",
        ),
        compared(
            measured,
            {"E[(JᵀJ)^2k]": "moment.printed", "(E JᵀJ)^k": "moment.meant"},
            title="Moment of a product of k Jacobians",
            y="relative error",
            sentence="(E JᵀJ)^k is the moment of k independent steps; E[(JᵀJ)^2k] is not.",
        ),
    ]
