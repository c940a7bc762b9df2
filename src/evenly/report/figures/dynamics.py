"""Examples and features during training."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from evenly.report.chart import Bars, Chart, Histogram, Line

MOST_TIMES = 20


def dynamics(counts: Sequence[int], *, never_learned: int = 0) -> Chart | None:
    """A histogram of how often examples were forgotten (Toneva et al., 2019); `counts` has a number per example.

    >>> dynamics([0, 0, 1, 3]).layers[0].counts
    (2, 1, 0, 1)
    """
    if not counts:
        return None
    most = min(max(counts), MOST_TIMES)
    tally = Counter(min(int(count), MOST_TIMES) for count in counts)
    unforgettable = tally[0] / len(counts)
    never = f" {never_learned:,} were never learned." if never_learned else ""
    beyond = f" The last bar holds {MOST_TIMES} times and more." if max(counts) > MOST_TIMES else ""
    return Chart(
        "Forgetting",
        "times forgotten",
        "examples",
        [Histogram("examples", [i - 0.5 for i in range(most + 2)], [tally[i] for i in range(most + 1)])],
        f"How often examples that were right once became wrong again: {unforgettable:.0%} of {len(counts):,} never "
        f"did.{never}{beyond}",
    )


def alignment(
    curves: Mapping[str, Mapping[str, Sequence[float]]] | Mapping[str, Sequence[float]],
    *,
    times: Sequence[float],
    unit: str = "epoch",
) -> Chart | None:
    """How far the filters point along each planted feature over training; by method where there are several.

    `curves` maps a feature to its curve, or a method to such a mapping.

    >>> [layer.name for layer in alignment({"easy": [0, 1], "hard": [0, 0.2]}, times=[0, 1]).layers]
    ['easy', 'hard']
    """
    if not curves:
        return None
    first = next(iter(curves.values()))
    by_method: Mapping[str, Any] = curves if isinstance(first, Mapping) else {"": curves}
    features = list(dict.fromkeys(name for one in by_method.values() for name in one))
    layers = [
        Line(
            f"{feature}, {method}" if method else feature,
            times,
            one[feature],
            dashed=features.index(feature) == 1 and len(by_method) > 1,
            colour=number if len(by_method) > 1 else features.index(feature),
        )
        for number, (method, one) in enumerate(by_method.items())
        for feature in one
    ]
    return Chart(
        "Alignment with the planted features",
        unit,
        "largest |⟨filter, feature⟩|",
        layers,
        "How strongly the best filter points along each feature that was planted in the data: "
        "what grows first is learned first.",
    )


def learning_order(learned: Sequence[Mapping[str, Any]], *, unit: str = "epoch") -> Chart | None:
    """When each part of the data was learned: rows of `name` and `time`, None for never.

    >>> learning_order([{"name": "easy", "time": 2.0}, {"name": "hard", "time": None}]).layers[0].y
    (2.0, None)
    """
    if not learned:
        return None
    known = [row for row in learned if row["time"] is not None and row["time"] != float("inf")]
    never = [str(row["name"]) for row in learned if row not in known]
    return Chart(
        "What was learned when",
        "",
        unit,
        [
            Bars(
                "time",
                [str(row["name"]) for row in learned],
                [row["time"] if row in known else None for row in learned],
            )
        ],
        "The time at which each was half learned." + (f" Never: {', '.join(never)}." if never else ""),
    )
