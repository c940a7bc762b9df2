"""The health of a separation, from `separation.json`: its moment, its clusters, and a view of the outputs."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evenly.report.chart import Bars, Chart, Line, Points, Rule

MOST_CLASSES = 60  # more bars than this are unreadable: the largest gaps are shown
MOST_POINTS = 600  # more points than this cover each other, and weigh more than all other charts of a page


def moment(curve: Sequence[Mapping[str, Any]], *, chosen: int | None = None) -> Chart | None:
    """The training error of the early run during each epoch, and the epoch that was chosen.

    The error is a running one: each example is judged when it is shown, so the network at the end was better.

    >>> chart = moment([{"epoch": 0, "error": 0.9}, {"epoch": 1, "error": 0.3}], chosen=1)
    >>> chart.layers[0].y, chart.layers[1].x
    ((90.0, 30.0), 1)
    """
    known = [row for row in curve if row.get("error") is not None]
    if not known:
        return None
    layers: list[Any] = [Line("training error", [r["epoch"] for r in known], [r["error"] * 100 for r in known])]
    text = "The training error of the early run during each epoch, each example judged when it was shown, n = 1 seed"
    if chosen is not None:
        layers.append(Rule(x=chosen, name=f"separated after epoch {chosen}"))
        at = next((row["error"] for row in known if row["epoch"] == chosen), None)
        text += f"; the examples were separated after epoch {chosen}" + (
            f", during which {at:.1%} of them were wrong" if at is not None else ""
        )
    return Chart("When the examples were separated", "epoch", "training error during the epoch (%)", layers, text + ".")


def separation_view(view: Mapping[str, Sequence[Any]], *, classes: Mapping[int, str] | None = None) -> Chart | None:
    """The early outputs in the plane of their two largest components: easy and hard examples.

    >>> view = {"x": [0, 1], "y": [0, 1], "label": [0, 1], "hard": [False, True], "index": [7, 9]}
    >>> [layer.text for layer in separation_view(view, classes={1: "cat"}).layers]
    [('example 7, class 0',), ('example 9, class cat',)]
    """
    if not view or not view.get("x"):
        return None
    names = classes or {}
    layers = []
    rows = list(zip(*(view[name] for name in ("x", "y", "hard", "index", "label")), strict=True))
    shown = rows[:: math.ceil(len(rows) / MOST_POINTS)]
    for number, word in enumerate(("easy", "hard")):
        own = [row for row in shown if bool(row[2]) == bool(number)]
        text = [f"example {index}, class {names.get(label, label)}" for *_, index, label in own]
        if own:
            layers.append(Points(word, [x for x, *_ in own], [y for _, y, *_ in own], text, colour=number))
    return Chart(
        "The early outputs in two dimensions",
        "first component",
        "second component",
        layers,
        f"The outputs of {len(shown):,} training examples in the plane of their two largest principal components: "
        "classes that the network tells apart already lie far apart, and hard examples usually near the middle.",
    )


def cluster_sizes(classes: Sequence[Mapping[str, Any]]) -> Chart | None:
    """How many examples of each class are easy and how many hard.

    >>> cluster_sizes([{"name": "cat", "easy": 8, "hard": 2}]).layers[1].y
    (2,)
    """
    chosen, note = _some(classes, by="hard")
    if not chosen:
        return None
    names = [str(row["name"]) for row in chosen]
    easy, hard = sum(row["easy"] for row in classes), sum(row["hard"] for row in classes)
    return Chart(
        "Easy and hard examples of each class",
        "class",
        "examples",
        [Bars(part, names, [row[part] for row in chosen], colour=i) for i, part in enumerate(("easy", "hard"))],
        f"Of {easy + hard:,} examples {hard:,} ({hard / max(easy + hard, 1):.0%}) are hard: these are shown more "
        f"often.{note}",
    )


def cluster_losses(classes: Sequence[Mapping[str, Any]]) -> Chart | None:
    """The mean early loss of the easy and of the hard cluster of each class.

    >>> cluster_losses([{"name": "cat", "loss_easy": 0.1, "loss_hard": 2.0}]).layers[0].y
    (0.1,)
    """
    known = [row for row in classes if row.get("loss_easy") is not None or row.get("loss_hard") is not None]
    chosen, note = _some(known, by="loss_hard")
    if not chosen:
        return None
    names = [str(row["name"]) for row in chosen]
    return Chart(
        "Early loss of the two clusters",
        "class",
        "mean loss at separation (nats)",
        [
            Points(part, names, [row.get(f"loss_{part}") for row in chosen], colour=number)
            for number, part in enumerate(("easy", "hard"))
        ],
        f"The mean loss of each cluster when the examples were separated: the hard one should lie well above.{note}",
    )


def _some(classes: Sequence[Mapping[str, Any]], *, by: str) -> tuple[list[Mapping[str, Any]], str]:
    """All classes, or those with the largest values if there are too many to read, and a note about that."""
    if len(classes) <= MOST_CLASSES:
        return list(classes), ""
    largest = sorted(classes, key=lambda row: -(row.get(by) or 0.0))[:MOST_CLASSES]
    return largest, f" Shown are {MOST_CLASSES} of {len(classes):,} classes, the largest first."
