"""The toy figures, drawn: medians over seeds with their quartiles."""

from collections.abc import Mapping
from typing import Any

from evenly.papers.experiment import Measured
from evenly.papers.nguyen2024.charts_runs import bars
from evenly.report.chart import Chart, Layer, Line, Rule

SHOWN = {"gd": "GD", "sam": "SAM"}
COLOURS = {"gd": 0, "sam": 1}
WIDTH = 27  # moments that are drawn


def _line(name: str, part: Mapping[str, Any], rule: str, what: str, *, dashed: bool = False) -> Line:
    found = part["curves"][rule][what]
    stride = -(-len(part["steps"]) // WIDTH)
    taken = {key: values[::stride] for key, values in found.items()}
    steps = part["steps"][::stride]
    # Accuracies of four kinds cross all over: bands would hide them.
    low, high = (None, None) if what == "accuracy" else (taken["low"], taken["high"])
    return Line(name, steps, taken["middle"], low, high, dashed=dashed, colour=COLOURS[rule])


def dynamics(measured: Measured) -> list[Chart]:
    """Figure 2 (a, b, c) with the network that has a bias, and with that of eq. 1, where both panels look alike."""
    with_bias, without = (
        _dynamics({b: measured.series[f"{network}β_d = {b}"] for b in ("0.2", "0.4")}, shown)
        for network, shown in (("", "with bias"), ("eq1 ", "eq. 1, no bias"))
    )
    return [*with_bias, without[0], without[2]]


def _dynamics(parts: Mapping[str, Mapping[str, Any]], shown: str) -> list[Chart]:
    said = "Alignment with the easy feature (dashed) and the difficult one (solid): medians and quartiles over seeds."
    charts = []
    for beta, part in parts.items():
        layers = [
            _line(f"{SHOWN[rule]}, {feature}", part, rule, what, dashed=what == "easy")
            for rule in SHOWN
            for what, feature in (("easy", "easy"), ("hard", "difficult"))
        ]
        charts.append(Chart(f"β_d = {beta}, {shown}", "iteration", "max |⟨w, v⟩|", layers, said))
    accuracy = [
        _line(f"{SHOWN[rule]}, β_d = {beta}", part, rule, "accuracy", dashed=beta == "0.2")
        for beta, part in parts.items()
        for rule in SHOWN
    ]
    said = (
        "Test accuracy of GD and SAM with a weak (dashed) and a stronger difficult feature (solid): medians over seeds."
    )
    return [*charts, Chart(f"Test accuracy, {shown}", "iteration", "test accuracy (%)", accuracy, said)]


def extreme(measured: Measured) -> list[Chart]:
    """Figure 6: the gap between the features in GD and in SAM, and the difference of the two for every seed."""
    charts = []
    for network, shown in (("", "with bias"), ("eq1 ", "eq. 1, no bias")):
        part = measured.series[f"{network}β_d = 1"]
        layers = [_line(SHOWN[rule], part, rule, "gap") for rule in SHOWN]
        said = "Easy minus difficult alignment where both are equally strong: medians and quartiles over seeds."
        charts.append(Chart(f"Gap between equal features, {shown}", "iteration", "gap", layers, said))
    names = {"1.gap": "as named", "1.favoured": "first ahead", "1.size": "size"}
    layers_: list[Layer] = [
        bars("(G_e − G_d) − (S_e − S_d)", measured.values, names, bar=True),
        Rule(y=0.25, name="the paper"),
    ]
    said = "The gap of GD less that of SAM from 250 iterations on: mean, 95 % interval and every seed."
    return [*charts, Chart("GD's gap less SAM's, with bias", "", "difference", layers_, said)]


def clusters(measured: Measured) -> list[Chart]:
    """Section 4: what the clusters find, how the difficult feature is learned, and the test error."""
    betas = ("0.2", "0.4")
    found = [
        bars(what, measured.values, {f"{b}.{what}": f"β_d = {b}" for b in betas}, bar=True)
        for what in ("precision", "recall")
    ]
    said = "How well the hard cluster is the set of examples without the easy patch."
    charts = [Chart("The hard cluster", "", "%", found, said)]
    for what, title, y in (
        ("hard", "Alignment with the difficult feature", "max |⟨w, v_d⟩|"),
        ("error", "Test error", "test error (%)"),
    ):
        layers = [
            bars(shown, measured.values, {f"{b}.{method}.{what}": f"β_d = {b}" for b in betas}, bar=what == "hard")
            for method, shown in (("original", "original data"), ("random", "random"), ("useful", "USEFUL"))
        ]
        charts.append(Chart(title, "", y, layers, f"{title} of GD on each multiset: 95 % intervals and every seed."))
    return charts


def times(measured: Measured) -> list[Chart]:
    """Theorems 3.2 and 3.3: when the easy feature is learned, within which bound, and what the difficult one did."""
    betas = ("0.2", "0.4")
    labels = {
        f"{b}.{rule}.{what}": f"{SHOWN[rule]}, {shown}"
        for b in betas[:1]
        for rule in SHOWN
        for what, shown in (("time", "measured"), ("limit", "lemma B.3"))
    }
    growth = [
        bars(f"β_d = {b}", measured.values, {f"{b}.{rule}.hard.growth": SHOWN[rule] for rule in SHOWN}) for b in betas
    ]
    constants = [
        bars(name, measured.values, {f"0.2.{rule}.constant.{what}": SHOWN[rule] for rule in SHOWN})
        for name, what in (("smallest", "low"), ("largest", "high"))
    ]
    end = "means, 95 % intervals and every seed."
    return [
        Chart(
            "Until the easy feature is learned, β_d = 0.2",
            "",
            "iterations",
            [bars("T₀", measured.values, labels, bar=True)],
            f"Iterations until the easy alignment is ½, and the bound of lemma B.3: {end}",
        ),
        Chart(
            "The constant of its growth, β_d = 0.2",
            "",
            "growth / (η α β_e³ ⟨w, v_e⟩²)",
            constants,
            f"The smallest and the largest constant of the easy feature's growth: {end}",
        ),
        Chart(
            "The difficult feature by then",
            "",
            "alignment at T₀ / at the start",
            growth,
            f"How much the difficult alignment has grown when the easy feature is learned: {end}",
        ),
    ]


def gaps(measured: Measured) -> list[Chart]:
    """Theorem 3.4: the gap between the features, a curve for every seed; with β_d = 0.4 it looks the same."""
    charts = []
    for key in ("β_d = 0.2", "drawn β_d = 0.2"):
        part = measured.series[key]
        stride = part["gaps"]["stride"][0][0]
        layers = [
            Line(SHOWN[rule] if number == 0 else "", [stride * t for t in range(len(row))], row, colour=COLOURS[rule])
            for rule in SHOWN
            for number, row in enumerate(part["gaps"][rule])
        ]
        start = "weights as drawn" if key.startswith("drawn") else "weights as assumed"
        said = "Best easy minus best difficult alignment of GD and SAM, a curve for every seed."
        charts.append(Chart(f"{key.removeprefix('drawn ')}, {start}", "iteration", "gap", layers, said))
    return charts


def one_step(measured: Measured) -> list[Chart]:
    """Theorem 3.5: the part of the difficult feature in normalised gradients, and how near GD comes to SAM."""
    betas = ("0.2", "0.4")
    parts = {"gd": "GD", "sam": "SAM", "gd.stronger": "GD, 1.5 β_d", "sam.stronger": "SAM, 1.5 β_d"}
    first = [
        bars(f"β_d = {b}", measured.values, {f"{b}.{what}": label for what, label in parts.items()}) for b in betas
    ]
    cosines = {"cosine": "GD", "best": "GD, best k"}
    second = [
        bars(f"β_d = {b}", measured.values, {f"{b}.{what}": label for what, label in cosines.items()}) for b in betas
    ]
    return [
        Chart(
            "The difficult feature's part",
            "",
            "part of the normalised gradient",
            first,
            "The part of the difficult feature in the normalised gradient, in early training.",
        ),
        Chart(
            "Likeness to SAM's gradient, 40 filters",
            "",
            "cosine",
            second,
            "The cosine of GD's gradient with SAM's, on the same data and with the best k.",
        ),
    ]
