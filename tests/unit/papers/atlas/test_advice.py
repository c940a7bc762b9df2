"""Advice comes from the nearest tasks, leaves out what harmed there, and abstains far from all of them."""

from tests.unit.papers.atlas.test_cells import row

from evenly.papers.atlas.advice import FEATURES, advise, left_out

LACKING = {"error": 0.02, "hard_share": 0.2, "hard_error": 0.1, "distinctness": 0.2, "disagreement": 0.0}
NOISY = {"error": 0.1, "hard_share": 0.1, "hard_error": 0.9, "distinctness": 0.5, "disagreement": 0.1}


def near(features: dict[str, float], step: float) -> dict[str, float]:
    return {name: value * (1 + step) for name, value in features.items()}


ROWS = [
    *(row(f"atlas/lacking-{n}", {"useful8": -9.0, "batch": -5.0}, features=near(LACKING, n / 50)) for n in range(1, 5)),
    *(row(f"atlas/noisy-{n}", {"useful8": 20.0, "right": -4.0}, features=near(NOISY, n / 50)) for n in range(1, 5)),
]


def test_each_kind_of_task_gets_its_own_cure():
    assert advise(LACKING, ROWS).ranking[0][0] == "useful8"
    noisy = advise(NOISY, ROWS)
    assert noisy.ranking[0][0] == "right"
    assert all(key.startswith("atlas/noisy") for key in noisy.nearest)


def test_it_abstains_where_no_task_is_alike():
    far = dict.fromkeys(FEATURES, 1000.0)
    assert advise(far, ROWS).abstains
    assert advise(LACKING, []).abstains


def test_a_task_left_out_is_advised_from_the_others():
    assert all(left_out(ROWS).values())


def test_a_cure_that_harms_the_ordinary_error_is_not_advised():
    rows = [row(f"atlas/lacking-{n}", {"useful8": -9.0}, features=LACKING) for n in range(1, 5)]
    for each in rows:
        for seed in each["quantities"]["useful8.test"]:
            each["quantities"]["useful8.test"][seed] += 5
    assert "useful8" not in dict(advise(LACKING, rows).ranking)
