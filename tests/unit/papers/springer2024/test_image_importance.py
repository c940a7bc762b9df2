"""Importance on images: after the epochs asked for, signed by the label and, under its own name, by the attribute."""

import pytest

from evenly.papers.experiment import Context
from evenly.papers.springer2024.image_importance import image_importance
from evenly.papers.springer2024.image_training import DIGITS

GIVEN = {"seed": 0, "rho": 0.05, "at_epochs": [1, 2], "shown_epochs": [5, 100]}


def test_importance_is_measured_after_the_epochs_and_named_by_those_that_are_shown(tmp_path):
    result = image_importance(Context(tmp_path), recipe={**DIGITS, "epochs": 2}, examples=30, **GIVEN)
    assert result.series["epochs"] == [5, 100]
    assert result.values["epoch=100.sam.real_gini"][0] != result.values["epoch=5.sam.real_gini"][0]
    assert 0 < result.values["epoch=5.sgd.hard_poor_phantom"][0] < 1
    # Perfectly correlated: attributes are the label.
    for what in ("hard_poor_phantom", "easy_rank_real"):
        assert result.values[f"epoch=5.sam.{what}"] == result.values[f"epoch=5.sam.by_attribute.{what}"]


def test_contributions_are_signed_by_the_label_and_beside_it_by_the_attribute(tmp_path):
    weakly = {**DIGITS, "data": {"name": "digit-dominoes", "options": {"alpha": 0.7, "conflict": 0.3}}, "epochs": 2}
    result = image_importance(Context(tmp_path), recipe=weakly, examples=200, **GIVEN)
    # The label is the hard attribute's class; the easy one contradicts it in three of ten examples.
    names = [f"{feature}_rank_real" for feature in ("easy", "hard")]
    pairs = [(result.values[f"epoch=5.sam.{n}"][0], result.values[f"epoch=5.sam.by_attribute.{n}"][0]) for n in names]
    assert [a == pytest.approx(b) for a, b in pairs] == [False, True]
