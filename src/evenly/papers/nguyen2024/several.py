"""Comparisons that share runs: one after the other, so that no two processes train the same one."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly.papers.experiment import Context, Found
from evenly.papers.learning import usefully


def in_turn(context: Context, *, comparisons: Sequence[Mapping[str, Any]]) -> Found:
    """What each comparison of `learning.usefully` finds; what is drawn lies under its name."""
    values: dict[str, Mapping[int, float]] = {}
    series: dict[str, Any] = {}
    for arguments in comparisons:
        found = usefully(context, **arguments)
        values |= found.values
        series[arguments["name"]] = found.series
    return Found(values, series)
