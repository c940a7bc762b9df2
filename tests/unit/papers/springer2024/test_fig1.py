"""Figure 1: the decision surfaces."""

from pathlib import Path

from evenly.papers.measurement import measure
from evenly.papers.springer2024.fig1 import EXPERIMENT, chart
from evenly.sweep.where import Where


def test_the_caption_names_the_seed_whose_surfaces_are_shown(tmp_path: Path) -> None:
    found, _ = measure(EXPERIMENT, "smoke", seeds=[4, 3], runs=tmp_path, where=Where(at_once=1))
    assert all("(seed 3)" in panel.sentence for panel in chart(found))
