"""A comparison on the terminal."""

import pytest

from evenly.cli.comparison_output import show


def test_an_interval_of_errors_stays_within_0_and_100_per_cent(capsys: pytest.CaptureFixture[str]) -> None:
    cells = {
        str(seed): {"state": "done", "error": error, "worst": 1.0, "hard_share": None}
        for seed, error in enumerate((0.675, 0.75))
    }
    error = {"mean": 0.7125, "low": 0.236, "high": 1.189, "n": 2}
    method = {"name": "plain", "label": "plain", "runs": cells, "error": error, "difference": None, "cost": 1.0}
    advice = {"sentence": "Too early to say.", "next": None}
    show({"baseline": "plain", "split": "test", "methods": [method], "recommendation": advice})
    assert "71.25 [23.60, 100.00]" in capsys.readouterr().out
