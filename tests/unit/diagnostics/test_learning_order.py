"""The order in which curves rise, against sigmoids with known centres."""

import math

import pytest

from evenly.diagnostics import learning_order
from evenly.errors import DataError, UsageError


def test_learning_order_of_sigmoids_is_that_of_their_centres() -> None:
    times = list(range(0, 101, 2))
    curves = {f"at {c}": [1 / (1 + math.exp(-(t - c) / 3)) for t in times] for c in (70, 30, 50)}
    order = learning_order(curves, times=times, ends=(0.0, 1.0))
    assert [learned.name for learned in order] == ["at 30", "at 50", "at 70"]
    assert [learned.time for learned in order] == pytest.approx([30, 50, 70], abs=0.1)


def test_learning_order_follows_falling_curves_and_puts_the_never_learned_last() -> None:
    order = learning_order(
        {"never": [0.5, 0.5, 0.5], "error": [0.5, 0.3, 0.1], "at once": [1.0, 1.0, 1.0]}, ends=(0.5, 0.0)
    )
    assert [learned.name for learned in order] == ["error", "never", "at once"]
    assert order[0].time == pytest.approx(1.25)
    assert math.isnan(order[1].time)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: learning_order({"a": [1.0]}), DataError, "two or more"),
        (lambda: learning_order({"a": [1.0, math.nan]}), DataError, "NaN or inf"),
        (lambda: learning_order({"a": [1.0, 2.0]}, share=2), UsageError, "share = 2"),
    ],
)
def test_bad_arguments_are_refused(call, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        call()
