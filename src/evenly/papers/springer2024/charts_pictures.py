"""Tables 1 and 2, and figures 5, 6, 8 and 9 on images, drawn from what was measured; free of torch."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly.papers.experiment import Measured
from evenly.papers.springer2024.charts_mechanism import lorenz_charts, map_charts
from evenly.papers.springer2024.names import at, over_seeds
from evenly.report.chart import Bars, Chart, Line

SEED = "Every seed is a dot, the bar their mean with its 95 % interval."


def table_1(measured: Measured) -> list[Chart]:
    """Test and probing errors of SGD and SAM, and the hard error of the whole sweep."""
    values = measured.values
    shown = {"test": "test", "easy": "easy probe", "hard": "hard probe"}
    bars = [
        _bars(values, name.upper(), [f"{name}.{what}" for what in shown], list(shown.values()))
        for name in ("sgd", "sam")
    ]
    sweep = next(iter(measured.series.values()))
    lines = []
    for lr in sweep["rates"]:
        found = over_seeds(values, [at("hard", lr=lr, rho=rho) for rho in sweep["rhos"]])
        mean, low, high = ([getattr(f, end) for f in found] for end in ("mean", "low", "high"))
        lines.append(Line(f"lr {lr:g}", sweep["rhos"], mean, low, high))
    return [
        Chart("Errors, settings chosen by held-out probing", "", "error (%)", bars, f"SGD beside SAM. {SEED}"),
        Chart("The sweep", "ρ (0 is SGD)", "hard probing error (%)", lines, "The hard feature's error for every ρ."),
    ]


def table_2(measured: Measured) -> list[Chart]:
    """The accuracy of the probe in every domain left out."""
    domains = list(dict.fromkeys(name.split(".")[0] for name in measured.values))
    bars = [
        _bars(measured.values, name.upper(), [f"{d}.{name}.accuracy" for d in domains], domains)
        for name in ("sgd", "sam")
    ]
    return [Chart("Accuracy of a probe in the domain left out", "", "accuracy", bars, f"SGD beside SAM. {SEED}")]


def lorenz(measured: Measured) -> list[Chart]:
    """Figures 5 and 8 of the first seed, at every epoch."""
    first: Any = next(iter(measured.series.values()))
    return lorenz_charts(first, first["epochs"], name="sam")


def maps(measured: Measured) -> list[Chart]:
    """Figures 6 and 9 of the first seed, at three of the epochs."""
    first: Any = next(iter(measured.series.values()))
    return map_charts(first, [first["epochs"][i] for i in (0, 1, -1)], name="sam")


def _bars(
    values: Mapping[str, Mapping[int, float]], name: str, quantities: Sequence[str], labels: Sequence[str]
) -> Bars:
    found = over_seeds(values, quantities)
    dots = [list(values[quantity].values()) for quantity in quantities]
    return Bars(name, labels, [f.mean for f in found], [f.low for f in found], [f.high for f in found], dots)
