"""One setting for all seeds, chosen by their mean."""

from evenly.papers.springer2024 import table1
from evenly.papers.springer2024.best_settings import best_settings
from evenly.papers.springer2024.quantities import at


def sweep(errors: dict[tuple[float, float], tuple[float, ...]], under: str = "") -> dict[str, dict[int, float]]:
    made = {}
    for (lr, rho), by_seed in errors.items():
        for what in ("chosen_by", "validation_loss", "validation_error", "hard"):
            made[f"{under}{at(what, lr=lr, rho=rho)}"] = dict(enumerate(by_seed))
    return made


def test_one_setting_is_chosen_for_all_seeds_by_their_mean():
    # Seed by seed ρ = .05, .1 and .2 would be chosen in turn, and SAM would err 1 % instead of 3.
    errors = {(0.01, 0.0): (5, 5, 5), (0.01, 0.05): (1, 5, 6), (0.01, 0.1): (4, 1, 4), (0.01, 0.2): (6, 6, 1)}
    best = table1.choose_settings(sweep(errors))
    assert best["sam.rho"] == {0: 0.1, 1: 0.1, 2: 0.1}
    assert best["sam.hard"] == {0: 4, 1: 1, 2: 4}
    assert best["sgd.hard"] == {0: 5, 1: 5, 2: 5}


def test_of_equal_settings_the_first_is_chosen():
    best = table1.choose_settings(sweep({(0.1, 0.0): (2.0,), (0.1, 0.05): (1.0,), (0.2, 0.05): (1.0,)}))
    assert best["sam.lr"] == {0: 0.1}


def test_sgd_too_is_chosen_by_loss_where_sam_is():
    values = sweep({(0.1, 0.0): (1.0,), (0.2, 0.0): (2.0,), (0.1, 0.1): (1.0,)})
    values[at("validation_loss", lr=0.2, rho=0)] = {0: 0.5}
    best = table1.choose_settings(values)
    assert (best["sgd.lr"], best["sgd_by_loss.lr"]) == ({0: 0.1}, {0: 0.2})


def test_every_domain_has_its_own_choice():
    first = sweep({(0.1, 0.0): (2.0,), (0.1, 0.05): (1.0,), (0.1, 0.1): (3.0,)}, "art.")
    second = sweep({(0.1, 0.0): (2.0,), (0.1, 0.05): (3.0,), (0.1, 0.1): (1.0,)}, "Real World.")
    best = best_settings(first | second, "validation_error")
    assert (best["art.sam.rho"], best["Real World.sam.rho"]) == ({0: 0.05}, {0: 0.1})
