"""The best setting of a sweep, one for SGD and one for SAM, chosen by the mean over all seeds."""

import re
from collections import defaultdict
from collections.abc import Mapping

Values = Mapping[str, Mapping[int, float]]
Rows = dict[tuple[float, float], dict[str, Mapping[int, float]]]
NAME = re.compile(r"(?P<under>(?:.+\.)?)lr=(?P<lr>[\d.e+-]+)\.rho=(?P<rho>[\d.e+-]+)\.(?P<what>\w+)")


def best_settings(values: Values, by: str, *, suffix: str = "") -> dict[str, dict[int, float]]:
    """`sgd.…` and `sam.…`: all quantities of the settings whose quantity `by` is least in the mean over seeds.

    What stands before `lr=…` in a name, such as a domain, has a choice of its own.

    >>> plain = {"lr=0.1.rho=0.error": {0: 5, 1: 5}}
    >>> sam = {"lr=0.1.rho=0.05.error": {0: 1, 1: 9}, "lr=0.1.rho=0.1.error": {0: 4, 1: 4}}
    >>> best_settings(plain | sam, "error")["sam.rho"]  # 4 is the least mean; seed 0 alone would choose the other
    {0: 0.1, 1: 0.1}
    """
    best: dict[str, dict[int, float]] = {}
    for under, rows in _settings(values).items():
        for name, displaced in (("sgd", False), ("sam", True)):
            # Of equals the first, as the sweep has them.
            own = {setting: row for setting, row in rows.items() if (setting[1] > 0) == displaced}
            lr, rho = min(own, key=lambda setting: sum(own[setting][by].values()))
            row = own[lr, rho]
            best |= {f"{under}{name}{suffix}.{what}": dict(by_seed) for what, by_seed in row.items()}
            for what, number in (("lr", lr), ("rho", rho)):
                best[f"{under}{name}{suffix}.{what}"] = dict.fromkeys(row[by], number)
    return best


def _settings(values: Values) -> dict[str, Rows]:
    """The quantities of every learning rate and ρ, by what stands before them: the domain and its dot, or nothing."""
    sweeps: dict[str, Rows] = defaultdict(lambda: defaultdict(dict))
    for name, by_seed in values.items():
        if match := NAME.fullmatch(name):
            sweeps[match["under"]][float(match["lr"]), float(match["rho"])][match["what"]] = by_seed
    return sweeps
