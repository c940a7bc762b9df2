"""Advice comes from the nearest tasks, leaves out what harmed there, and abstains far from all of them."""

from tests.unit.papers.atlas.test_cells import row

from evenly.papers.atlas.advice import FEATURES, METHODS, advise, leave_one_out
from evenly.papers.atlas.cures import CURES
from evenly.recipe import Recipe
from evenly.training.methods import parse

LACKING = dict(zip(FEATURES, (0.02, 0.2, 0.1, 0.0, 0.2, 0.0, 0.9), strict=True))
NOISY = dict(zip(FEATURES, (0.1, 0.1, 0.9, 0.8, 0.5, 0.1, 0.5), strict=True))


def near(features: dict[str, float], step: float) -> dict[str, float]:
    return {name: value * (1 + step) for name, value in features.items()}


ROWS = [
    *(row(f"atlas/lacking-{n}", {"useful8": -9.0, "batch": -5.0}, features=near(LACKING, n / 50)) for n in range(1, 5)),
    *(row(f"atlas/noisy-{n}", {"useful8": 20.0, "right": -4.0}, features=near(NOISY, n / 50)) for n in range(1, 5)),
]


def test_each_kind_of_task_gets_its_own_cure():
    assert advise(LACKING, ROWS).ranking[0].cure == "useful8"
    noisy = advise(NOISY, ROWS)
    assert noisy.ranking[0].cure == "right"
    assert all(key.startswith("atlas/noisy") for key in noisy.nearest)


def test_it_abstains_where_no_task_is_alike():
    far = dict.fromkeys(FEATURES, 1000.0)
    assert advise(far, ROWS).abstains
    assert advise(LACKING, []).abstains


def test_a_task_left_out_is_advised_from_the_others():
    assert all(leave_one_out(ROWS).values())


def test_a_cure_that_harms_the_ordinary_error_is_not_advised():
    rows = [row(f"atlas/lacking-{n}", {"useful8": -9.0}, features=LACKING) for n in range(1, 5)]
    for each in rows:
        for seed in each["quantities"]["useful8.test"]:
            each["quantities"]["useful8.test"][seed] += 5
    found = advise(LACKING, rows)
    assert "useful8" not in [choice.cure for choice in found.ranking]
    assert "useful8" in found.harmful


def test_every_cure_has_a_method_that_makes_its_recipe():
    """The words of a comparison set what the cure of the atlas has."""
    for name, cure in CURES.items():
        made = parse(METHODS[name]).recipe(Recipe(batch_size=128), early="c0ffee")
        own = made.resampling
        assert made.batch_size == 128 * cure.batch_share, name
        assert (made.label_smoothing, made.logit_penalty) == (cure.label_smoothing, cure.logit_penalty), name
        assert (own.method != "none") == (cure.chosen is not None), name
        assert made.ascent.rule == ("none" if cure.rule == "sgd" else cure.rule), name
        assert cure.rule == "sgd" or made.ascent.rho == cure.rho, name
        assert cure.chosen is None or own.factor == cure.factor, name
        noise = f"noise:{cure.noise}" in (*made.augment, *own.augment)
        assert noise == (cure.noise > 0), name
        assert (own.among == "right") == (cure.chosen == "right"), name


def test_what_is_left_out_is_not_known_to_the_advice():
    """A task whose best cure no other task has is missed."""
    odd = row("atlas/lacking-9", {"sam": -30.0}, features=LACKING)
    assert not leave_one_out([*ROWS, odd])["atlas/lacking-9"]
