"""Table 1 and figures 2 to 4: bars beside the paper's numbers, tracks over epochs, and the scatter."""

from typing import Any

from evenly.papers.chang2025.drawing import banded, bars, mean
from evenly.papers.chang2025.training import CONTRASTS, METHODS
from evenly.papers.experiment import Measured
from evenly.report.chart import Bars, Chart, Points

EVERY = 2  # epochs from one point of a curve to the next
NAMES = {"sgd": "SGD", "sam0.01": "SAM .01", "sam0.05": "SAM .05", "sam0.1": "SAM .1"}
# The paper's table 1, in the order of the methods.
PAPER = {
    "sigma_printed": (133.9, 121.5, 90.3, 65.7),
    "lambda_max_s_printed": (12740.0, 10103.0, 6422.0, 3446.0),
    "rank": (6.17, 6.2, 6.0, 5.6),
    "largest": (94.4, 82.9, 70.9, 52.3),
    "lambda_max": (6.78, 6.21, 4.99, 3.83),
    "trace": (52.0, 48.4, 38.5, 29.1),
}
LABELS = {
    "sigma_printed": "σ as printed (no root)",
    "sigma": "σ as defined",
    "lambda_max_s_printed": "λmax(S) as printed (no root)",
    "lambda_max_s": "λmax(S) as defined",
    "rank": "effective rank",
    "largest": "max λmax(Hᵢ)",
    "lambda_max": "λmax(H)",
    "trace": "Tr H",
}


def table1(measured: Measured) -> list[Chart]:
    """Ours beside the paper's; σ also as it is defined. The other columns are in figures 2 and 3, by epoch."""
    return [_column(measured, quantity) for quantity in ("sigma_printed", "sigma", "rank", "largest")]


def _column(measured: Measured, quantity: str) -> Chart:
    ours = bars(measured, {NAMES[method]: f"{method}.{quantity}" for method, _ in METHODS}, name="ours", colour=0)
    layers = [ours]
    if quantity in PAPER:
        layers.append(Bars("paper", list(NAMES.values()), PAPER[quantity], bar=False, colour=1))
    first, last = mean(measured, f"sgd.{quantity}"), mean(measured, f"sam0.1.{quantity}")
    sentence = f"{LABELS[quantity]}: {first:.4g} with SGD, {last:.4g} with SAM of ρ = 0.1."
    return Chart(LABELS[quantity], "", "at the end", layers, sentence)


def fig2(measured: Measured) -> list[Chart]:
    """σ both ways, rank and λmax(H) over the epochs."""
    return [track(measured, quantity) for quantity in ("sigma_printed", "sigma", "rank", "lambda_max")]


def fig3(measured: Measured) -> list[Chart]:
    """The sharpest example and λmax(S), both ways, over the epochs."""
    return [track(measured, quantity) for quantity in ("largest", "lambda_max_s_printed", "lambda_max_s")]


def track(measured: Measured, quantity: str) -> Chart:
    """One quantity over the epochs for every method."""
    curves: Any = measured.series["lr 0.1"]["curves"]
    runs = {method: [run[::EVERY] for run in curves[method][quantity]] for method, _ in METHODS}
    lines = [
        banded(NAMES[method], range(0, EVERY * len(each[0]), EVERY), each, colour=number)
        for number, (method, each) in enumerate(runs.items())
    ]
    label = LABELS.get(quantity, "training loss")
    ends = ", ".join(f"{mean(measured, f'{method}.{quantity}'):.4g} with {NAMES[method]}" for method, _ in METHODS)
    return Chart(label, "epoch", label, lines, f"{label} at the end: {ends}.", y_log=quantity == "loss")


def fig4(measured: Measured) -> list[Chart]:
    """The sharpest example against λmax(S) at the end of every run, by method, learning rate and contrastive term."""
    left = {name: method for method, name in NAMES.items()}
    middle = {f"{name}, lr {lr}": f"{p}{m}" for lr, p in (("0.1", ""), ("0.3", "fast.")) for m, name in _ENDS}
    right = {f"weight {weight:g}": f"contrast{weight:g}" for weight in CONTRASTS}
    titles = ("SGD and SAM", "Learning rate 0.1 and 0.3", "Contrastive weight")
    return [_scatter(measured, title, panel) for title, panel in zip(titles, (left, middle, right), strict=True)]


_ENDS = (("sgd", "SGD"), ("sam0.1", "SAM .1"))


def _scatter(measured: Measured, title: str, panel: dict[str, str]) -> Chart:
    points = [
        Points(
            label,
            list(measured.values[f"{method}.lambda_max_s_printed"].values()),
            list(measured.values[f"{method}.largest"].values()),
        )
        for label, method in panel.items()
    ]
    lines = ", ".join(f"{mean(measured, f'{method}.r2'):.2f} for {label}" for label, method in panel.items())
    sentence = f"A dot is the end of a run. Along a run a line explains, in the mean, R² = {lines}."
    return Chart(title, "λmax(S) as printed (no root)", "max λmax(Hᵢ)", points, sentence)
