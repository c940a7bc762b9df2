"""Maps of divergence, counted cell by cell, and the line of theorem 3.3 by its formula."""

import pytest
import torch

from evenly.papers.catalogue import CATALOGUE
from evenly.papers.chang2025.stability_maps import boundary, count_cells, curves, unstable_cells
from evenly.papers.charts import charts_of
from evenly.papers.experiment import Measured
from evenly.report.chart import Heat, Line
from evenly.stability.criteria import chang_theorem_3_2, chang_theorem_3_3
from evenly.stability.divergence import growth
from evenly.stability.maps import MapMethod, StabilityMap, overlapping_set, stability_map


def a_map() -> StabilityMap:
    """Two methods, a small batch and a large one: the simulation diverges at σ = 1, the lines up to σ = 1, 2, 1."""
    diverged = torch.tensor([[[True, False, False]] * 2] * 2)
    diverged[1, 0, 1] = True
    criterion = torch.tensor([[[0.1, 0.9, 0.9], [0.1, 0.9, 0.9]]] * 2)
    exact = torch.tensor([[[0.1, 0.1, 0.9], [0.1, 0.9, 0.9]]] * 2)
    logs = torch.zeros(2, 2, 3, 2)
    methods = (MapMethod("SGD"), MapMethod("random", noise=0.1))
    return StabilityMap(
        0.5, methods, (19, 20), (1, 2, 3), diverged, growth(logs, logs, steps=1), criterion, exact, 0.5 - criterion
    )


def test_a_map_is_counted_cell_by_cell_and_for_small_and_large_batches() -> None:
    numbers = count_cells(a_map(), ["sgd", "random"])
    assert numbers["sgd.diverged"] == pytest.approx(100 / 3)
    assert numbers["random.differs"] == pytest.approx(100 / 6)
    assert numbers["sgd.missed"] == 0
    assert numbers["sgd.agrees.criterion"] == numbers["sgd.agrees.almost_sure"] == 100
    assert numbers["sgd.agrees.mean_square"] == pytest.approx(500 / 6)
    assert numbers["sgd.agrees.mean_square.small"] == pytest.approx(200 / 3)
    assert numbers["random.agrees.mean_square.small"] == 100
    assert numbers["sgd.agrees.mean_square.large"] == 100
    assert (numbers["sgd.gap.small"], numbers["sgd.gap.large"]) == (pytest.approx(100 / 3), 0)
    assert curves(a_map(), 0) == {"criterion": [1, 1], "mean_square": [2, 1], "almost_sure": [1, 1]}


def test_the_lines_of_sams_map_are_theorems_3_2_and_3_3() -> None:
    seen = stability_map(
        rng=torch.Generator().manual_seed(0), batches=[3, 12, 40], sigmas=[2, 20, 50], rho_over_alpha=[0.2], repeats=2
    )
    lines = unstable_cells(seen)
    for b, batch in enumerate(seen.batches):
        for s, sigma in enumerate(seen.sigmas):
            sam = {"batch": batch, "rho_over_alpha": 0.2}
            dashed = chang_theorem_3_3(2.0, sigma=sigma, num_examples=100, **sam).lr
            solid = chang_theorem_3_2(overlapping_set(sigma), **sam).lr
            assert float(seen.mean_square_lr[2, b, s]) == pytest.approx(dashed)
            assert float(seen.criterion_lr[2, b, s]) == pytest.approx(solid)
            assert bool(lines["mean_square"][2, b, s]) == (dashed < 0.5)


@pytest.fixture
def drawn() -> Measured:
    """Two parts of one and three seeds on a grid of two batch sizes and three σ."""
    table = {"few": [[1, 1], [1, 0], [0, 0]], "most": [[3, 3], [2, 1], [0, 0]]}
    methods = ("sgd", "random", "sam0.1", "sam0.2", "sam0.4")
    lines = {method: {"criterion": [1, None], "mean_square": [2, 1], "almost_sure": [1, 1]} for method in methods}
    series = {
        name: {"num": num, "batches": [5, 40], "sigmas": [1, 2, 3], "lines": lines,
               "diverged": dict.fromkeys(methods, table[name])}
        for name, num in (("few", 1), ("most", 3))
    }  # fmt: skip
    names = ["diverged", *(f"agrees.{line}{size}" for line in ("criterion", "mean_square", "almost_sure")
                           for size in ("", ".small", ".large"))]  # fmt: skip
    return Measured({f"{method}.{name}": {0: 9.0} for method in methods for name in names}, series)


def test_the_boundary_is_the_largest_sigma_at_which_most_seeds_diverge(drawn: Measured) -> None:
    assert boundary(drawn, "sgd") == [2, 1]  # 3 of 4 seeds at σ = 2, B = 5; 1 of 4 at B = 40


def test_panel_a_is_sams_map_with_a_solid_and_a_dashed_line(drawn: Measured) -> None:
    (chart,) = charts_of(CATALOGUE["chang2025/fig1a"], drawn)
    heat, solid, dashed = chart.layers
    assert isinstance(heat, Heat)
    assert isinstance(solid, Line)
    assert isinstance(dashed, Line)
    assert "SAM" in chart.title
    assert ("3.2" in solid.name, solid.dashed, "3.3" in dashed.name, dashed.dashed) == (True, False, True, True)


@pytest.mark.parametrize(("panel", "num"), [("fig1b", 3), ("fig1c", 4)])
def test_panels_b_and_c_compare_boundaries(drawn: Measured, panel: str, num: int) -> None:
    (chart,) = charts_of(CATALOGUE[f"chang2025/{panel}"], drawn)
    assert len(chart.layers) == num
    assert all(isinstance(layer, Line) and list(layer.y) == [2, 1] for layer in chart.layers)
