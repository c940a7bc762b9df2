"""Confusion matrices count every error, however rare, and wherever it goes."""

import numpy as np
from numpy.typing import NDArray

from evenly.report.chart import Chart, Heat
from evenly.report.experiments.predictions import confusion


def drawn(labels: NDArray[np.int64], predicted: NDArray[np.int64], names: dict[int, str]) -> tuple[Chart, Heat]:
    chart = confusion([{"label": labels, "predicted": predicted}], names, label="plain", split="test")
    (heat,) = chart.layers
    assert isinstance(heat, Heat)
    return chart, heat


def test_an_error_too_rare_for_a_digit_of_the_table_is_told() -> None:
    labels = np.repeat([0, 1], 2500)
    predicted = labels.copy()
    predicted[0] = 1
    chart, _ = drawn(labels, predicted, {0: "cat", 1: "dog"})
    assert "Most often cat is taken for dog: 0.0400%." in chart.sentence
    sound, _ = drawn(labels, labels, {0: "cat", 1: "dog"})
    assert "Nothing is confused." in sound.sentence


def test_a_class_that_has_no_example_has_a_column_if_it_is_predicted() -> None:
    chart, heat = drawn(np.array([0, 0]), np.array([1, 1]), {0: "cat", 1: "dog"})
    assert (heat.x, heat.y, heat.z) == (("cat", "dog"), ("cat",), ((0.0, 100.0),))
    assert "cat is taken for dog: 100.0%." in chart.sentence


def test_errors_that_go_to_classes_not_shown_are_in_the_last_column() -> None:
    labels = np.repeat(np.arange(25), 10)
    predicted = labels.copy()
    predicted[:200] = np.repeat(np.arange(20), 10) + 5  # of the first twenty classes, all wrong
    chart, heat = drawn(labels, predicted, {})
    assert (len(heat.y), len(heat.x), heat.x[-1]) == (20, 21, "all others")
    assert all(abs(sum(row) - 100) < 1e-6 for row in heat.z)  # type: ignore[arg-type]
    assert heat.z[19][-1] == 100.0, "class 19 is taken for 24, which is not shown"
    assert "is taken for" in chart.sentence
