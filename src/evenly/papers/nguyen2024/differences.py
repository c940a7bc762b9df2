"""What follows from measured quantities: differences that the paper gives alone, and shares of a distance."""

from collections.abc import Mapping

Values = Mapping[str, Mapping[int, float]]


def changes(values: Values) -> dict[str, dict[int, float]]:
    """`NAME.METHOD.change`: an error less that on the original data; of SAM on these, less that of SGD.

    >>> sgd = {"sgd.original.error": {0: 5.0}, "sgd.useful.error": {0: 4.5}}
    >>> changes(sgd | {"sam.original.error": {0: 4.0}})
    {'sgd.useful.change': {0: -0.5}, 'sam.original.change': {0: -1.0}}
    """
    found = {}
    for quantity, own in values.items():
        name, _, rest = quantity.partition(".")
        method, _, what = rest.partition(".")
        plain = "sgd.original.error" if method == "original" else f"{name}.original.error"
        if what == "error" and quantity != plain and plain in values:
            found[f"{name}.{method}.change"] = {seed: own[seed] - values[plain][seed] for seed in own}
    return found


def closed(values: Values) -> dict[str, dict[int, float]]:
    """`NAME.closed`: the part of the distance 1 − `NAME.cosine` that `NAME.best` leaves behind.

    >>> closed({"0.2.cosine": {0: 0.5}, "0.2.best": {0: 0.75}})
    {'0.2.closed': {0: 0.5}}
    """
    return {
        f"{name}.closed": {s: (best[s] - values[f"{name}.cosine"][s]) / (1 - values[f"{name}.cosine"][s]) for s in best}
        for name, best in ((q.removesuffix(".best"), by) for q, by in values.items() if q.endswith(".best"))
    }
