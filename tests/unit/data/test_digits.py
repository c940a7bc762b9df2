"""The digits of scikit-learn, read without importing it."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from evenly.data import digits


def test_pixels_and_labels_are_those_that_scikit_learn_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = load_digits()
    expected = np.column_stack([bundle.data, bundle.target])
    assert np.array_equal(digits._table(), expected)
    monkeypatch.setattr(digits, "find_spec", lambda name: None)  # a version that keeps the file elsewhere
    assert np.array_equal(digits._table(), expected)


def test_loading_them_does_not_import_scikit_learn() -> None:
    code = "import sys; from evenly.data import load; load('digit-dominoes'); assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
