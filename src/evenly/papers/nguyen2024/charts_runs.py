"""The tables and figures on images, drawn: a bar for every way to train, with its interval and a dot for every seed."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly.intervals import interval
from evenly.papers.experiment import Measured
from evenly.report.chart import Bars, Chart, Histogram, Line, Points

METHODS = {
    "original": "original data",
    "random": "random",
    "upweight": "upweighted",
    "quantile": "quantile",
    "misclassified": "misclassified",
    "useful": "USEFUL",
}


def bars(name: str, found: Mapping[str, Mapping[int, float]], labels: Mapping[str, str], *, bar: bool = False) -> Bars:
    """A mark for each quantity that was measured: its mean, its interval over seeds, and every seed.

    >>> bars("SGD", {"a": {0: 1.0, 1: 3.0}}, {"a": "plain", "b": "not measured"}).y
    (2.0,)
    """
    known = {quantity: label for quantity, label in labels.items() if quantity in found}
    values = [list(found[quantity].values()) for quantity in known]
    means = [interval(each) for each in values]
    return Bars(
        name,
        list(known.values()),
        [each.mean for each in means],
        [each.low for each in means],
        [each.high for each in means],
        values,
        bar=bar,
    )


def _named(measured: Measured, what: str) -> list[str]:
    """The names under which a quantity was measured for some method, in their order."""
    endings = tuple(f".{method}.{what}" for method in METHODS)
    found = (q.removesuffix(ending) for q in measured.values for ending in endings if q.endswith(ending))
    return list(dict.fromkeys(found))


def _chart(measured: Measured, what: str, title: str, y: str, sentence: str, *, bar: bool = False) -> Chart:
    layers = [
        bars(
            name.upper(),
            measured.values,
            {f"{name}.{method}.{what}": label for method, label in METHODS.items()},
            bar=bar,
        )
        for name in _named(measured, what)
    ]
    return Chart(title, "", y, layers, sentence)


def methods(measured: Measured) -> list[Chart]:
    """The test error of every way to train: tables 2 to 6, figures 3, 4, 7 and 9."""
    said = "Test error of each way to train: mean, 95 % interval over seeds, and a dot for every seed."
    return [_chart(measured, "error", "Test error", "test error (%)", said)]


def sharpness(measured: Measured) -> list[Chart]:
    """Table 1: the largest eigenvalue of the Hessian, and its ratio to the fifth."""
    end = "at the end of training, with 95 % intervals and a dot for every seed."
    return [
        _chart(measured, "lambda_max", "Largest eigenvalue", "λmax", f"λmax of the Hessian {end}", bar=True),
        _chart(measured, "lambda_ratio_5", "Bulk", "λmax / λ5", f"λmax/λ5 {end}", bar=True),
    ]


def norms(measured: Measured) -> list[Chart]:
    """Figure 5: the L1 norm of the weights."""
    said = "L1 norm of the weights at the end of training, with 95 % intervals and a dot for every seed."
    return [_chart(measured, "l1", "L1 norm of the weights", "‖w‖₁", said)]


def forgetting(measured: Measured) -> list[Chart]:
    """Figure 8: how many examples are forgotten how often, by SGD, SAM, and SGD with USEFUL."""
    wanted = {"SGD": ("sgd", "original"), "SAM": ("sam", "original"), "SGD + USEFUL": ("sgd", "useful")}
    layers = []
    for shown, (name, method) in wanted.items():
        rows = [part["forgotten"][method] for key, part in measured.series.items() if key.rsplit(" ", 1)[0] == name]
        longest = max(map(len, rows))
        mean = [sum(row[t] if t < len(row) else 0.0 for row in rows) / len(rows) for t in range(longest)]
        layers.append(Histogram(shown, [t - 0.5 for t in range(longest + 1)], mean))
    said = "The percentage of training examples that are forgotten 0, 1, 2, … times, averaged over seeds."
    return [Chart("Forgetting scores", "times forgotten", "examples (%)", layers, said, y_log=True)]


def ablations(measured: Measured) -> list[Chart]:
    """Figure 10: batch size, learning rate, upsampling factor."""
    first = "batch 128"
    panels = {
        "Batch size": {name: name.removeprefix("batch ") for name in ("batch 128", "batch 256", "batch 512")},
        "Learning rate": {first: "1×", "lr 0.2": "2×", "lr 0.4": "4×"},
        "Upsampling factor": {first: "2", "factor 3": "3", "factor 4": "4", "factor 5": "5"},
    }
    charts = []
    for title, cases in panels.items():
        layers = [
            bars(shown, measured.values, {f"{case}.{method}.error": label for case, label in cases.items()})
            for method, shown in (("original", "SGD"), ("useful", "SGD + USEFUL"))
        ]
        said = f"Test error by {title.lower()}, with 95 % intervals and a dot for every seed."
        charts.append(Chart(title, title.lower(), "test error (%)", layers, said))
    return charts


def moments(measured: Measured) -> list[Chart]:
    """Figure 11: the training error of the first stage, and the test error by the moment of separation."""
    parts = {key: part for key, part in measured.series.items() if key.startswith("gain ")}
    layers: list[Any] = []
    for number, (key, part) in enumerate(parts.items()):
        plain, first = part["curves"]["original"], part["curves"]["early"]
        epochs, errors = plain["epoch"], [100 * each for each in plain["train.error"]]
        layers.append(Line(f"seed {key.split()[-1]}", epochs, errors, colour=number))
        layers.append(_mark(first, number))
    error = "test error (%)"
    early = {name: by for name, by in measured.values.items() if name.endswith(".early")}
    # The epoch of each name is that of all seeds; the rule's own is not drawn by it.
    after = {name.removesuffix(".early"): min(by.values()) for name, by in early.items()}
    order = [*sorted((name for name in after if name != "gain"), key=lambda name: after[name]), "gain"]
    names = {f"{name}.useful.error": "by the rule" if name == "gain" else f"epoch {after[name]:g}" for name in order}
    said = "Test error of USEFUL by the moment of separation, with 95 % intervals and a dot for every seed."
    return [
        Chart(
            "Training error", "epoch", "training error (%)", layers, "Training error; a cross where the rule separates."
        ),
        Chart("When to separate", "", error, [bars("SGD + USEFUL", measured.values, names)], said),
    ]


def _mark(curve: Mapping[str, Sequence[float]], colour: int) -> Points:
    return Points("", [curve["epoch"][-1]], [100 * curve["train.error"][-1]], colour=colour, mark="cross")
