"""Tables 1 and 2: one setting for SGD and one for SAM, chosen by the mean over all seeds; free of torch."""

import re
from collections import defaultdict
from collections.abc import Mapping

Values = Mapping[str, Mapping[int, float]]
Rows = dict[tuple[float, float], dict[str, Mapping[int, float]]]
NAME = re.compile(r"(?P<under>(?:.+\.)?)lr=(?P<lr>[\d.e+-]+)\.rho=(?P<rho>[\d.e+-]+)\.(?P<what>\w+)")


def table_1(values: Values) -> dict[str, dict[int, float]]:
    """`sgd.…` and `sam.…` of the settings with the least `chosen_by`, `sgd_by_loss.…` and `sam_by_loss.…` of those
    with the least validation loss.

    >>> seeds = lambda first, second: {0: first, 1: second}
    >>> errors = {"lr=0.1.rho=0.05.chosen_by": seeds(1, 9), "lr=0.1.rho=0.1.chosen_by": seeds(4, 4)}
    >>> losses = {name.replace("chosen_by", "validation_loss"): by for name, by in errors.items()}
    >>> plain = {f"lr=0.1.rho=0.{what}": seeds(5, 5) for what in ("chosen_by", "validation_loss")}
    >>> table_1(plain | errors | losses)["sam.rho"]  # 4 is the least mean; seed 0 alone would choose the other
    {0: 0.1, 1: 0.1}
    """
    return _chosen(values, "chosen_by") | _chosen(values, "validation_loss", suffix="_by_loss")


def table_2(values: Values) -> dict[str, dict[int, float]]:
    """`DOMAIN.sgd.…` and `DOMAIN.sam.…` of the settings with the least validation error."""
    return _chosen(values, "validation_error")


def _chosen(values: Values, by: str, *, suffix: str = "") -> dict[str, dict[int, float]]:
    found: dict[str, dict[int, float]] = {}
    for under, rows in _settings(values).items():
        for name, displaced in (("sgd", False), ("sam", True)):
            # Of equals the first, as the sweep has them.
            own = {setting: row for setting, row in rows.items() if (setting[1] > 0) == displaced}
            lr, rho = min(own, key=lambda setting: sum(own[setting][by].values()))
            row = own[lr, rho]
            found |= {f"{under}{name}{suffix}.{what}": dict(by_seed) for what, by_seed in row.items()}
            for what, number in (("lr", lr), ("rho", rho)):
                found[f"{under}{name}{suffix}.{what}"] = dict.fromkeys(row[by], number)
    return found


def _settings(values: Values) -> dict[str, Rows]:
    """The quantities of every learning rate and ρ, by what stands before them: the domain and its dot, or nothing."""
    found: dict[str, Rows] = defaultdict(lambda: defaultdict(dict))
    for name, by_seed in values.items():
        if match := NAME.fullmatch(name):
            found[match["under"]][float(match["lr"]), float(match["rho"])][match["what"]] = by_seed
    return found
