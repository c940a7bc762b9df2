"""How a network uses easy and hard features, from the measurements of a run."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from evenly.report.chart import Bars, Chart, Heat, Line
from evenly.report.figures.training import clipped_percent

Measured = Mapping[str, Any]


def lorenz(measured: Measured) -> Chart | None:
    """How evenly the examples count in the gradient: Lorenz curves at the weights and at SAM's displaced weights.

    >>> chart = lorenz({"gini": 0.5, "lorenz": {"share": [0, 0.5, 1], "real": [0, 0.1, 1], "phantom": [0, 0.2, 1]}})
    >>> [layer.name for layer in chart.layers]
    ['all equal', 'at the weights', "at SAM's displaced weights"]
    """
    curves = measured.get("lorenz")
    if not curves:
        return None
    share = [100 * value for value in curves["share"]]
    layers = [Line("all equal", [0, 100], [0, 100], dashed=True, colour=6)]
    named = {"real": "at the weights", "phantom": "at SAM's displaced weights"}
    for number, (key, name) in enumerate(named.items()):
        if curves.get(key):
            layers.append(Line(name, share, [100 * value for value in curves[key]], colour=number))
    gini, phantom = measured.get("gini"), measured.get("phantom_gini")
    remark = (
        f" Gini {gini:.3f}" + (f", {phantom:.3f} at SAM's displaced weights." if phantom is not None else ".")
        if gini
        else ""
    )
    return Chart(
        "Importance of the examples (Lorenz)",
        "share of examples, least important first (%)",
        "share of importance (%)",
        layers,
        f"The nearer a curve to the diagonal, the more evenly the examples drive the gradient.{remark}",
    )


def importance_map(measured: Measured, *, which: str = "real", by_attribute: bool = False) -> Chart | None:
    """The median importance of examples by how much the easy and the hard feature contribute to their label.

    `by_attribute` draws our own map instead, where contributions are to the attribute's own value.

    >>> importance = {"x_edges": [0, 1, 2], "y_edges": [0, 1], "real": [[0.5, None]], "counts": [[3, 0]]}
    >>> importance_map({"importance_map": importance}).layers[0].x
    (0.5, 1.5)
    """
    cells = measured.get("importance_map")
    if cells and by_attribute:
        cells = cells.get("by_attribute")
    if not cells or not cells.get(which):
        return None
    place = "the weights" if which == "real" else "SAM's displaced weights"
    sign = "to its own value" if by_attribute or cells.get("signed_by") == "attribute" else "to the label"
    return Chart(
        f"Importance at {place}" + (", by the features' own values" if by_attribute else ""),
        f"contribution of the easy feature {sign}",
        f"contribution of the hard feature {sign}",
        [
            Heat(
                _middles(cells["x_edges"]),
                _middles(cells["y_edges"]),
                cells[which],
                "median importance",
                low=0.0,
            )
        ],
        f"The median importance of the examples at {place}, by what each feature contributes to the output; "
        "cells without examples are grey.",
    )


def probing(measured: Mapping[str, Measured] | Measured) -> Chart | None:
    """The error of linear probes for the easy and for the hard feature, with intervals; by name where several runs.

    >>> probing({"easy": 0.01, "hard": 0.2, "easy_interval": [0.0, 0.02], "hard_interval": [0.1, 0.3]}).layers[0].y
    (1.0, 20.0)
    """
    several = _several(measured)
    layers = []
    for number, (name, one) in enumerate(several.items()):
        parts = [part for part in ("easy", "hard") if isinstance(one.get(part), int | float)]
        if parts:
            ends = [one.get(f"{part}_interval") or (None, None) for part in parts]
            low, high = ([_end(pair[end]) for pair in ends] for end in (0, 1))
            labels, means = [f"{part} feature" for part in parts], [_percent(one[part]) for part in parts]
            layers.append(Bars(name or "probing error", labels, means, low, high, colour=number))
    if not layers:
        return None
    return Chart(
        "Probing errors",
        "",
        "error of a linear probe (%)",
        layers,
        "How wrong a linear probe is about each feature when it sees only the network's last features: the lower, the "
        "better the feature is represented. Whiskers are 95% intervals.",
    )


def reliance(measured: Mapping[str, Measured] | Measured) -> Chart | None:
    """The accuracy lost when a named attribute is randomised.

    >>> reliance({"reliance_easy": 0.4}).layers[0].y
    (40.0,)
    """
    several = _several(measured)
    names = list(
        dict.fromkeys(
            key.removeprefix("reliance_") for one in several.values() for key in one if _is_reliance(key, one)
        )
    )
    if not names:
        return None
    layers = [
        Bars(name or "reliance", names, [_percent(one.get(f"reliance_{what}")) for what in names], colour=number)
        for number, (name, one) in enumerate(several.items())
    ]
    return Chart(
        "Reliance on attributes",
        "attribute",
        "accuracy lost when randomised (points)",
        layers,
        "How many points of accuracy are lost when an attribute no longer goes with the label: the higher, the more "
        "the network relies on it.",
    )


def feature_rank(measurements: Mapping[str, Sequence[Measured]]) -> Chart | None:
    """The number of principal components that hold most of the features' variance: over epochs, or a bar per run.

    >>> feature_rank({"useful": [{"epoch": 1, "feature_rank": 9}, {"epoch": 2, "feature_rank": 12}]}).layers[0].y
    (9, 12)
    """
    known = {name: [row for row in rows if row.get("feature_rank") is not None] for name, rows in measurements.items()}
    known = {name: rows for name, rows in known.items() if rows}
    if not known:
        return None
    layers: list[Line | Bars]
    once = max(map(len, known.values())) == 1
    if once:
        layers = [Bars("feature rank", list(known), [rows[0]["feature_rank"] for rows in known.values()])]
    else:
        layers = [
            Line(name, [row["epoch"] for row in rows], [row["feature_rank"] for row in rows], colour=number)
            for number, (name, rows) in enumerate(known.items())
        ]
    share = next(iter(known.values()))[0].get("feature_rank_share")
    held = f"{100 * share:.4g}% of" if share else "most of"
    return Chart(
        "Rank of the features",
        "" if once else "epoch",
        "principal components",
        layers,
        f"How many principal components hold {held} the variance of the last features: the more, the richer they are.",
    )


def _several(measured: Mapping[str, Any]) -> dict[str, Measured]:
    """Measurements by the name of a run; those of a single run have no name."""
    if measured and all(isinstance(value, Mapping) for value in measured.values()) and "lorenz" not in measured:
        return dict(measured)
    return {"": measured}


def _is_reliance(key: str, one: Measured) -> bool:
    return key.startswith("reliance_") and isinstance(one[key], int | float)


def _middles(edges: Sequence[float]) -> list[float]:
    return [(a + b) / 2 for a, b in pairwise(edges)]


def _end(value: Any) -> float | None:
    """The end of a whisker in per cent, no further than errors go."""
    return None if value is None else clipped_percent(round(100 * value, 10))


def _percent(value: Any) -> float | None:
    return None if value is None else round(100 * value, 10)
