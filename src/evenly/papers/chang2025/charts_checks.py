"""The theorems and table 2 as charts: what was measured beside what is stated."""

import re

from evenly.papers.chang2025.drawing import bars, compared, mean
from evenly.papers.chang2025.table2 import RHOS
from evenly.papers.experiment import Measured
from evenly.report.chart import Chart, Rule

FEATURES = (2, 3, 4, 5)


def theorem_3_1(measured: Measured) -> list[Chart]:
    """The criterion over the exact threshold, and E‖w‖² below it."""
    return [
        compared(
            measured,
            {"criterion / exact η": "criterion_over_exact", "simulated / closed form E‖w‖²": "below.ratio"},
            title="Criterion and cloud",
            y="ratio",
            sentence=f"The criterion's η is {mean(measured, 'criterion_over_exact'):.2f} times the exact one; "
            f"at half of that E‖w‖² is {mean(measured, 'below.ratio'):.3f} times its closed form.",
            level=1.0,
            level_name="stated",
        ),
        compared(
            measured,
            {"SGD": "below.sgd", "random perturbation": "below.random"},
            title="At half of the exact threshold",
            y="log₁₀ E‖w‖² at the end",
            sentence=f"SGD vanishes (log₁₀ E‖w‖² = {mean(measured, 'below.sgd'):.1f}), random perturbation hovers "
            f"({mean(measured, 'below.random'):.1f}).",
        ),
    ]


def theorem_3_2(measured: Measured) -> list[Chart]:
    """Three ratios of learning rates."""
    return [
        compared(
            measured,
            {
                "theorem 3.2": "theorem_over_exact",
                "own coordinates": "own_over_exact",
                "exact SAM / SGD": "sam_over_sgd",
            },
            title="Learning rates over the exact one",
            y="ratio",
            sentence=f"The theorem's η is {mean(measured, 'theorem_over_exact'):.2f} times the exact one; in SAM's "
            f"coordinates SGD's criterion is {mean(measured, 'own_over_exact'):.2f} times it. SAM's exact threshold is "
            f"{mean(measured, 'sam_over_sgd'):.2f} of SGD's.",
            level=1.0,
        )
    ]


def theorem_3_3(measured: Measured) -> list[Chart]:
    """E[J²] at the stated learning rate and 1 % beside it."""
    return [
        compared(
            measured,
            {"99 %": "below", "100 %": "at", "101 %": "above"},
            title="E[J²] by counting batches",
            y="E[J²]",
            sentence="E[J²] is below 1 at 99 % of the stated learning rate, 1 at it, and above 1 at 101 %.",
            level=1.0,
            bar=False,
        )
    ]


def theorem_3_4(measured: Measured) -> list[Chart]:
    """Entries of S beside the diagonal, and whether the solution memorises."""
    return [
        compared(
            measured,
            {"memorising": "memorising.off", "one shared unit": "shared.off"},
            title="Largest entry of S off the diagonal",
            y="over the largest on it",
            sentence="S is diagonal to rounding for memorising solutions, and for one unit that two examples share.",
            y_range=(-0.05, 1.1),
        ),
        compared(
            measured,
            {"one shared unit": "shared.memorises"},
            title="Does it memorise?",
            y="1 if no two examples share a unit",
            sentence="Solutions with one shared unit do not memorise, though their S is diagonal.",
            level=1.0,
            level_name="theorem 3.4, ⇐",
        ),
    ]


def theorem_3_5(measured: Measured) -> list[Chart]:
    """How often the bound fails, and how much of it is filled."""
    return [
        compared(
            measured,
            {"draws": "broken"},
            title="Draws that break the bound, worst n and C",
            y="%",
            sentence=f"The bound fails in {mean(measured, 'broken'):.2g} % of the draws at the n and C at which"
            " it fails most often; it may in 5 %.",
            level=5.0,
            level_name="δ",
        ),
        compared(
            measured,
            {"λmax(S)": "filled"},
            title="λmax(S) over 2√(d+1) × largest cluster",
            y="ratio",
            sentence=f"λmax(S) is {mean(measured, 'filled'):.2f} of what equal curvatures in a cluster would give.",
            level=1.0,
            level_name="if Hᵢ = Hⱼ",
        ),
    ]


def theorem_3_6(measured: Measured) -> list[Chart]:
    """Measured over stated for every n and C: λmax(S_SAM), and the sharpest example."""
    sizes = sorted({int(found[1]) for name in measured.values if (found := re.match(r"n(\d+)\.", name))})
    charts = []
    for what, title in (("s", "λmax(S_SAM) over its order"), ("largest", "max λmax(PHᵢ) over the stated")):
        layers = [bars(measured, {f"C = {c}": f"n{n}.C{c}.{what}" for c in FEATURES}, name=f"n = {n}") for n in sizes]
        ends = ", ".join(f"{mean(measured, f'n{n}.C2.{what}'):.2f} at n = {n}" for n in sizes)
        charts.append(Chart(title, "", "ratio", [*layers, Rule(y=1.0)], f"{title}: {ends}, for C = 2."))
    return charts


def table2(measured: Measured) -> list[Chart]:
    """Rank, coherence and test error for every method that was run."""
    names = [name for name in RHOS if f"{name}.rank" in measured.values]
    labels = {name: "SGD" if name == "sgd" else f"SAM {RHOS[name]:g}" for name in names}
    return [
        compared(
            measured,
            {labels[name]: f"{name}.{what}" for name in names},
            title=title,
            y=title,
            sentence=f"{title}: "
            + ", ".join(f"{mean(measured, f'{n}.{what}'):.4g} with {labels[n]}" for n in names)
            + ".",
        )
        for what, title in (
            ("rank", "components with 99.9 % of the variance"),
            ("coherence", "σ of the last layer"),
            ("error", "test error (%)"),
        )
    ]
