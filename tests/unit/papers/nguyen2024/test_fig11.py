"""Figure 11: the epochs of separation."""

import pytest

from evenly.errors import UsageError
from evenly.papers.nguyen2024.fig11 import EXPERIMENT, cases_at


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
