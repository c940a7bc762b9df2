"""How training went: errors over epochs, errors at the end, errors of groups."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from evenly.intervals import interval
from evenly.report.chart import Bars, Chart, Line
from evenly.report.palette import is_control

Rows = Sequence[Mapping[str, Any]]
FEW = 3  # seeds


def training_curves(
    runs: Mapping[str, Sequence[Rows]], *, metric: str = "test.error", title: str = "", what: str = ""
) -> Chart | None:
    """A metric over epochs for every method: the mean of its runs, and a band from lowest to highest.

    `runs` maps a name to the metrics of its runs, one list of rows per seed. Errors are shown in per cent.

    >>> rows = [{"epoch": 1, "test.error": 0.5}, {"epoch": 2, "test.error": 0.25}]
    >>> training_curves({"original": [rows]}).layers[0].y
    (50.0, 25.0)
    """
    percent = metric.endswith("error") or ".worst." in metric
    layers = [
        line
        for number, (name, seeds) in enumerate(runs.items())
        if (line := _mean_line(name, seeds, metric, 100.0 if percent else 1.0, number)) is not None
    ]
    if not layers:
        return None
    split, _, rest = metric.partition(".")
    what = what or f"{'training' if split == 'train' else split} {rest.replace('.', ' ')}"
    sizes = {len(seeds) for seeds in runs.values()}
    several = max(sizes) > 1
    whose = f" of {layers[0].name}" if len(layers) == 1 else ""  # if there is no legend
    sentence = f"The {what}{whose} after every epoch, n = {num_seeds(sizes)}" + (
        ": lines are means over seeds, bands reach from the lowest seed to the highest." if several else "."
    )
    unit = "%" if percent else "nats" if rest.endswith("loss") else ""
    label = f"{what} ({unit})" if unit else what
    return Chart(title or what[0].upper() + what[1:], "epoch", label, layers, sentence)


def cluster_curves(rows: Rows, *, metric: str = "error", name: str = "") -> Chart | None:
    """The training error (or loss) of the easy and of the hard cluster, apart, for one run.

    >>> rows = [{"epoch": 1, "train.easy.error": 0.1, "train.hard.error": 0.4}]
    >>> [layer.name for layer in cluster_curves(rows).layers]
    ['easy examples', 'hard examples']
    """
    scale = 100.0 if metric == "error" else 1.0
    layers = [
        Line(
            f"{part} examples",
            [row["epoch"] for row in known],
            [_scale(row[f"train.{part}.{metric}"], scale) for row in known],
            colour=number,
        )
        for number, part in enumerate(("easy", "hard"))
        if (known := [row for row in rows if f"train.{part}.{metric}" in row and "epoch" in row])
    ]
    if not layers:
        return None
    unit = " (%)" if metric == "error" else " (nats)"
    whose = f" of {name}" if name else ""
    return Chart(
        f"Easy and hard examples{whose}",
        "epoch",
        f"training {metric}{unit}",
        layers,
        f"The training {metric}{whose} on the examples that the separation calls easy and on those that it calls "
        "hard: the further apart the lines, the later the hard examples are learned. n = 1 seed.",
    )


def error_by_method(errors: Mapping[str, Sequence[float]], *, split: str = "test") -> Chart | None:
    """The error of every method: a dot per seed, their mean, and its 95% t-interval.

    >>> chart = error_by_method({"original": [0.10, 0.12], "useful": [0.09, 0.10]})
    >>> chart.layers[0].x, [round(v, 1) for v in chart.layers[0].y]
    (('original', 'useful'), [11.0, 9.5])
    """
    errors = {name: values for name, values in errors.items() if values}
    if not errors:
        return None
    intervals = {name: interval([value * 100 for value in values]) for name, values in errors.items()}
    best = min(intervals, key=lambda name: intervals[name].mean)
    several = max(map(len, errors.values())) > 1
    num = num_seeds({len(own) for own in errors.values()})
    values = [value * 100 for own in errors.values() for value in own]
    whiskers = {name: (clipped_percent(i.low), clipped_percent(i.high)) for name, i in intervals.items()}
    ends = [*values, *(end for pair in whiskers.values() for end in pair if several and end is not None)]
    # Bars from zero cannot show small differences: then a mark stands at the mean instead.
    close = several and min(ends) > 0.6 * max(ends)
    # Two or three dots say more than their long interval, so they are drawn alone.
    few = several and max(map(len, errors.values())) <= FEW
    mark = "diamond" if close or few else "bar"
    cut = any(
        end is not None and end != other
        for name, i in intervals.items()
        for end, other in zip(whiskers[name], (i.low, i.high), strict=True)
    )
    spoken = (
        f" A dot is a seed, a {mark} their mean, the whisker its 95% interval{' within 0 and 100%' * cut}; n = {num}."
        if several
        else " A bar is one seed."
    )
    ties = [name for name in intervals if round(intervals[name].mean, 2) == round(intervals[best].mean, 2)]
    word = "equal" if len(ties) == len(intervals) > 1 else "lowest"
    lowest = f"{word} on average for {', '.join(ties[:-1])}{' and ' * (len(ties) > 1)}{ties[-1]}"
    return Chart(
        f"Error on {split}, by method",
        "",
        f"{split} error (%)",
        [
            Bars(
                "error",
                list(errors),
                [i.mean for i in intervals.values()],
                [low for low, _ in whiskers.values()] if several else None,
                [high for _, high in whiskers.values()] if several else None,
                dots=[[value * 100 for value in own] for own in errors.values()] if several else None,
                bar=not close and not few,
            )
        ],
        f"The {split} error after training: {lowest} ({intervals[best].mean:.2f}%).{spoken}",
        y_range=_around(ends) if close else _from_zero(ends),
    )


def group_errors(
    errors: Mapping[str, Mapping[str, Sequence[float]]], *, attribute: str, split: str = "test"
) -> Chart | None:
    """The error of every group with every method: `errors[method][group]` holds a value per seed.

    >>> chart = group_errors({"useful": {"land": [0.1], "water": [0.3]}}, attribute="group")
    >>> chart.layers[0].x, chart.layers[0].y
    (('land', 'water'), (10.0, 30.0))
    """
    groups = list(dict.fromkeys(group for by_group in errors.values() for group in by_group))
    if not groups:
        return None
    layers = []
    for number, (method, by_group) in enumerate(errors.items()):
        values = [[value * 100 for value in by_group.get(group, ())] for group in groups]
        means = [math.fsum(v) / len(v) if v else None for v in values]
        dots = values if max(map(len, values)) > 1 else None
        layers.append(Bars(method, groups, means, dots=dots, colour=number))
    sizes = {len(values) for by_group in errors.values() for values in by_group.values()}
    spoken = " A bar is the mean over seeds, a dot one seed;" if max(sizes) > 1 else ""
    return Chart(
        f"Error on {split} by {attribute}",
        attribute,
        f"{split} error (%)",
        layers,
        f"The {split} error where `{attribute}` has each of its values, for every method: the mean over all examples "
        f"hides such gaps.{spoken} n = {num_seeds(sizes)}.",
    )


def num_seeds(sizes: Collection[int]) -> str:
    """How many seeds there are, in words, from the numbers of several methods.

    >>> num_seeds({1}), num_seeds({5}), num_seeds({3, 5})
    ('1 seed', '5 seeds', '3 to 5 seeds')
    """
    low, high = min(sizes), max(sizes)
    return f"{low} to {high} seeds" if low != high else f"{high} seed{'s' * (high != 1)}"


def _mean_line(name: str, seeds: Sequence[Rows], metric: str, scale: float, number: int) -> Line | None:
    by_epoch: dict[int, list[float]] = {}
    for rows in seeds:
        for row in rows:
            if "epoch" in row and (value := _scale(row.get(metric), scale)) is not None:
                by_epoch.setdefault(row["epoch"], []).append(value)
    if not by_epoch:
        return None
    epochs = sorted(by_epoch)
    values = [by_epoch[epoch] for epoch in epochs]
    means = [math.fsum(v) / len(v) for v in values]
    band = {"low": [min(v) for v in values], "high": [max(v) for v in values]} if len(seeds) > 1 else {}
    return Line(name, epochs, means, dashed=is_control(name), colour=number, **band)


def _from_zero(values: Sequence[float]) -> tuple[float, float] | None:
    highest = max((value for value in values if math.isfinite(value)), default=0.0)
    return (0.0, highest * 1.08) if highest > 0 else None


def _around(values: Sequence[float]) -> tuple[float, float]:
    margin = 0.08 * (max(values) - min(values)) or 0.5
    return min(values) - margin, max(values) + margin


def _scale(value: Any, scale: float) -> float | None:
    return value * scale if isinstance(value, int | float) and math.isfinite(value) else None


def clipped_percent(percent: float) -> float | None:
    """The end of an interval, clipped to 0 to 100 per cent; None if there is none.

    >>> clipped_percent(-8.0), clipped_percent(12.5), clipped_percent(math.nan)
    (0.0, 12.5, None)
    """
    return min(max(percent, 0.0), 100.0) if math.isfinite(percent) else None
