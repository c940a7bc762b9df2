"""Figure 11: the best ρ of every batch size, and how far batch sizes lie apart."""

from evenly.papers.springer2024.fig11 import BATCHES, best_places_and_ranges
from evenly.papers.springer2024.quantities import at
from evenly.papers.springer2024.toy import RHOS


def test_the_best_rho_is_its_place_in_the_grid_and_ranges_are_over_batch_sizes():
    values = {
        at("hard", batch=batch, rho=rho): {0: 10.0 + abs(place - best) * (1 + number), 1: 5.0}
        for number, (batch, best) in enumerate(zip(BATCHES, (5, 5, 4, 4, 3), strict=True))
        for place, rho in enumerate(RHOS)
    }
    derived = best_places_and_ranges(values)
    assert [derived[at("best_place", batch=batch)][0] for batch in BATCHES] == [5, 5, 4, 4, 3]
    assert derived[at("best_place", batch=5)][1] == 0  # of equals the first
    assert derived["rho=2.range"] == {0: 10.0, 1: 0.0}  # two places away, five per place
