"""Figure 6: the gap between equal features depends on their names by its sign alone."""

from pathlib import Path
from typing import Any

import pytest

from evenly.data import load
from evenly.papers.experiment import Context
from evenly.papers.nguyen2024 import two_layer_dynamics
from evenly.papers.nguyen2024.fig6 import gap

HERE = Context(Path("unused"))
SIZE: dict[str, Any] = {"num": 60, "iterations": 30, "horizon": 20, "every": 5, "lr": 0.5}


def test_swapping_the_names_of_equal_features_turns_the_sign_of_the_gap(monkeypatch: pytest.MonkeyPatch) -> None:
    settings = {"seeds": [0, 1, 2], "name": "1", "bias": True, **SIZE}
    before = gap(HERE, **settings).values

    def swapped(*args: Any, **options: Any) -> Any:
        splits = load(*args, **options)
        for part in splits.values():
            planted = dict(part.planted)
            part.planted.update(easy=planted["hard"], hard=planted["easy"])
        return splits

    monkeypatch.setattr(two_layer_dynamics, "load", swapped)
    after = gap(HERE, **settings).values
    for seed in (0, 1, 2):
        assert after["1.gap"][seed] == pytest.approx(-before["1.gap"][seed], abs=1e-12)
        assert after["1.favoured"][seed] == pytest.approx(before["1.favoured"][seed], abs=1e-12)
        assert before["1.size"][seed] == abs(before["1.gap"][seed])
