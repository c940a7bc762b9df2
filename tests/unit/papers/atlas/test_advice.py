"""Advice comes from the nearest tasks, leaves out what harmed there, and abstains far from all of them."""

from pathlib import Path
from statistics import pstdev

import pytest
from tests.unit.papers.atlas.test_cells import row

from evenly.papers.atlas.advice import (
    FEATURES,
    METHODS,
    accuracy_in_words,
    advise,
    features_of,
    leave_one_out,
    same_for_all,
)
from evenly.papers.atlas.cures import CURES
from evenly.papers.atlas.task_list import atlas_rows
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
    assert set(found.harmful["useful8"]) <= {each["key"] for each in rows}
    assert "useful8" in found.surely_harmful


def harmed(features: dict[str, float], here: dict[str, float], *, task: str = "atlas/noisy-2"):
    made = row(task, {"useful8": -9.0}, features=features)
    made["quantities"]["useful8.test"] = {seed: value + 5 for seed, value in made["quantities"]["useful8.test"].items()}
    return advise(here, [made])


def test_harm_on_a_task_with_noisier_labels_is_in_doubt():
    clean, noisy = LACKING | {"disagreement": 0.0}, LACKING | {"disagreement": 0.016}
    assert harmed(noisy, clean).noisier == {"atlas/noisy-2": 0.016}
    assert "useful8" in harmed(noisy, clean).harmful
    assert harmed(noisy, clean).surely_harmful == ()
    assert harmed(noisy, noisy).surely_harmful == harmed(clean, noisy).surely_harmful == ("useful8",)


def test_harm_on_a_task_with_right_labels_that_contradict_the_network_is_in_no_doubt():
    here, there = LACKING | {"disagreement": 0.0}, LACKING | {"disagreement": 0.031}
    found = harmed(there, here, task="atlas/convnet-conflicting-5")
    assert found.noisier == {}
    assert "useful8" in found.surely_harmful


def test_what_the_data_rule_out_is_not_ranked():
    found = advise(LACKING, ROWS, against=("useful", "balance"))
    assert found.ranking[0].cure == "batch"
    assert {"useful", "useful8", "right", "balance"} <= {*found.ruled_out, *found.harmful}
    assert not [each.cure for each in found.ranking if "useful" in METHODS[each.cure]]


def test_a_cure_is_compared_where_it_gained():
    rows = [row(f"atlas/noisy-{n}", {"sam": 3.0, "useful8": -9.0}, features=NOISY) for n in range(1, 4)]
    for each in rows:
        for seed in each["quantities"]["sam.test"]:
            each["quantities"]["sam.test"][seed] -= 8
    choices = {choice.cure: choice for choice in advise(NOISY, rows).ranking}
    assert (choices["sam"].split, choices["sam"].harms_balanced) == ("test", True)
    assert (choices["useful8"].split, choices["useful8"].harms_balanced) == ("balanced", False)
    assert choices["sam"].score < 0


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


@pytest.fixture(scope="module")
def ledger() -> list[dict]:
    return atlas_rows(Path(__file__).parents[4] / "claims")


def test_on_the_atlas_itself_the_advice_is_better_than_any_one_cure_and_says_how_often_it_is_right(ledger: list[dict]):
    good, same = leave_one_out(ledger), same_for_all(ledger)
    assert len(good) >= 28
    assert sum(good.values()) > max(same.values())
    told = accuracy_in_words(ledger)
    assert f"on {sum(good.values())} of {len(good)} tasks" in told
    assert f"the best was as good on {max(same.values())} (" in told


def test_tasks_of_the_atlas_are_near_each_other_and_what_is_beyond_them_gets_no_advice(ledger: list[dict]):
    for each in ledger:
        found = advise(features_of(each), [other for other in ledger if other is not each])
        assert min(found.nearest.values()) < 0.75
    known = [features_of(each) for each in ledger]
    beyond = {
        name: max(each[name] for each in known) + 1.6 * pstdev([each[name] for each in known]) for name in FEATURES
    }
    assert advise(beyond, ledger).abstains


def test_a_rule_that_always_tries_one_cure_is_counted_on_every_task():
    same = same_for_all(ROWS)
    assert set(same) == set(CURES)
    assert (same["useful8"], same["right"], same["plain"]) == (4, 4, 0)
