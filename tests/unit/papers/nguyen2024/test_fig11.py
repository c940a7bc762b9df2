"""Figure 11: the epochs of separation."""

import pytest

from evenly.errors import UsageError
from evenly.papers.experiment import Measured
from evenly.papers.nguyen2024.fig11 import EXPERIMENT, cases_at, charts
from evenly.report.chart import Line, Points


@pytest.mark.parametrize(("size", "first", "last"), [("full", 4, 10), ("small", 2, 5)])
def test_figure_11_separates_after_epochs_of_the_papers_range(size: str, first: int, last: int) -> None:
    found = {p.arguments["name"]: p.arguments["until"] for p in EXPERIMENT.parts(size, [0])}
    assert found.pop("gain") == {"rule": "gain"}
    epochs = [until["value"] for until in found.values()]
    assert len(set(epochs)) == len(epochs)
    assert (found["earliest"]["value"], found["latest"]["value"]) == (first, last) == (min(epochs), max(epochs))


@pytest.mark.parametrize("epochs", [(1, 1), (4, 8, 8, 10), (8, 4), (4,)])
def test_two_moments_that_are_one_are_refused(epochs: tuple[int, ...]) -> None:
    with pytest.raises(UsageError, match="that differ"):
        cases_at(epochs)


def test_a_cross_marks_the_epoch_of_the_separation_and_not_the_end_of_the_early_run() -> None:
    curves = {
        "original": {"epoch": [1, 2, 3, 4], "train.error": [0.5, 0.2, 0.1, 0.05]},
        "early": {"epoch": [1, 2, 3], "train.error": [0.5, 0.2, 0.001]},
    }
    values = {f"{name}.useful.error": {7: 9.0} for name in ("earliest", "gain")}
    values |= {"earliest.early": {7: 1.0}, "gain.early": {7: 2.0}}
    [line, cross] = charts(Measured(values, {"gain 7": {"curves": curves}}))[0].layers
    assert isinstance(line, Line)
    assert isinstance(cross, Points)
    assert (list(cross.x), list(cross.y)) == ([2], [20.0])
