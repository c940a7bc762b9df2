"""The recommendation says what the numbers allow, and no more."""

import random
from typing import Any

import pytest

from evenly.recipe import Recipe
from evenly.training.controls import explains, is_control
from evenly.training.methods import parse
from evenly.training.next_command import other_setting
from evenly.training.recommendation import judge

STEADY = [0.100, 0.110, 0.105, 0.102, 0.108]
JITTER = [0.001, -0.001, 0.0, 0.0005, -0.0005]


def comparison(collapsed: dict[str, int] | None = None, **errors: list[float]) -> dict[str, Any]:
    """A comparison in which methods have these errors, seed by seed."""
    methods = []
    parsed = [parse(written.replace("_", "+")) for written in errors]
    for own, values in zip(parsed, errors.values(), strict=True):
        name = own.name
        runs = {
            str(seed): {"run": f"{name}{seed}", "state": "done", "error": error, "cost": 2.0 if own.has("sam") else 1.1}
            | {"collapsed": None, "hard_share": None, "worst": error}
            for seed, error in enumerate(values)
        }
        for seed in range((collapsed or {}).get(name, 0)):
            runs[str(seed)]["collapsed"] = "learned nothing: the training error ended at 75.0%. Try --lr 0.01."
        facts = {"name": name, "label": own.label, "control": is_control(own)}
        facts["controls"] = [other.name for other in parsed if explains(other, own, Recipe(), factor=2)]
        methods.append(facts | {"settings": {}, "runs": runs, "error": None, "difference": None, "cost": None})
    num = len(next(iter(errors.values())))
    made = {"methods": methods, "baseline": methods[0]["name"], "seeds": list(range(num))}
    made |= {"command": "evenly compare digits --seeds 0-4 --json", "early": {}}
    judge(made)
    return made


def less(by: float) -> list[float]:
    return [error - by + noise for error, noise in zip(STEADY, JITTER, strict=True)]


@pytest.mark.parametrize(
    ("errors", "badge", "sentences"),
    [
        ({"plain": STEADY, "sam": less(0.012)}, "helped", ["Use SAM: −1.20 [", "points for 2.0× the cost."]),
        (
            {"plain": STEADY, "useful": less(0.01), "random": less(0.01)},
            "helped",
            ["Use random upsampling", "USEFUL adds nothing beyond random upsampling."],
        ),
        (
            {"plain": STEADY, "useful": less(0.02), "random": less(0.005)},
            "helped",
            ["Use USEFUL: −2.00 [", "for 1.1× the cost"],
        ),
        ({"plain": STEADY, "useful": less(-0.02)}, "hurt", ["Stay with plain training.", "USEFUL hurts: +2.00 ["]),
        (
            {"plain": STEADY, "useful": less(0.0)},
            "no difference",
            ["Stay with plain training.", "USEFUL makes no difference: +0.00 ["],
        ),
        (
            {"plain": STEADY, "useful": [e - d for e, d in zip(STEADY, (0.0, 0.03, 0.0, 0.03, 0.03), strict=True)]},
            "too few seeds",
            ["Too early to say.", "more seeds would settle USEFUL."],
        ),
        ({"plain": STEADY[:1], "useful": STEADY[1:2]}, "too few seeds", ["Too early to say: 1 seed cannot tell"]),
        ({"plain": [0.1, 0.1], "sam": [0.09, 0.09]}, "too few seeds", ["Too early to say: 2 seeds cannot tell"]),
        (
            {"random": STEADY, "useful": less(0.012)},
            "helped",
            ["Use USEFUL: −1.20 [", "points against random upsampling"],
        ),
        ({"useful": STEADY}, "too few seeds", ["There is nothing to compare yet: USEFUL 10.50%."]),
        (
            {"plain": STEADY, "sam": less(0.0121)[::-1], "useful": less(0.012), "random": less(0.0)},
            "helped",
            ["Use USEFUL: −1.20", "SAM does no better for 2.0×."],
        ),
    ],
)
def test_the_advice_follows_the_intervals(errors: dict[str, list[float]], badge: str, sentences: list[str]) -> None:
    advice = comparison(**errors)["recommendation"]
    assert advice["badge"] == badge
    for sentence in sentences:
        assert sentence in advice["sentence"], advice["sentence"]


@pytest.mark.parametrize(
    ("control", "told"),
    [
        ("random:8", "USEFUL ×8 + noise 0.2 adds nothing beyond random upsampling ×8."),
        ("random:8_noise:0.2", "USEFUL ×8 + noise 0.2 adds nothing beyond random upsampling ×8 + noise 0.2."),
        ("steps:8", "USEFUL ×8 + noise 0.2 adds nothing beyond as many steps on plain data."),
        ("batch:32", "USEFUL ×8 + noise 0.2 adds nothing beyond smaller batch 32."),
        ("augment-all:noise:0.2", "USEFUL ×8 + noise 0.2 adds nothing beyond augment all noise:0.2."),
    ],
)
def test_a_control_of_the_same_strength_explains_the_gain_of_a_cure(control: str, told: str) -> None:
    found = comparison(**{"plain": STEADY, "useful:8_noise:0.2": less(0.01), control: less(0.01)})
    assert told in found["recommendation"]["sentence"]
    assert found["recommendation"]["method"] == control.replace("_", "+")


@pytest.mark.parametrize("control", ["random", "random:2", "steps", "random:8_noise:0.4", "augment-all:noise:0.4"])
def test_a_weaker_or_another_control_explains_nothing(control: str) -> None:
    found = comparison(**{"plain": STEADY, "useful:8_noise:0.2": less(0.01), control: less(0.01)})
    assert "adds nothing" not in found["recommendation"]["sentence"]


def test_runs_that_learned_nothing_are_never_averaged_in_silence() -> None:
    one = comparison({"sam": 1}, plain=STEADY, sam=less(0.012))["recommendation"]
    assert one["sentence"].startswith("1 of 10 runs learned nothing (the training error ended at 75.0%).")
    assert one["badge"] == "helped"
    most = comparison({"plain": 3}, plain=STEADY, sam=less(0.012))["recommendation"]
    assert most["badge"] == "learned nothing"
    assert most["sentence"].endswith("Nothing can be compared before this is fixed. Try --lr 0.01.")
    assert most["next"] == "evenly compare digits --seeds 0-4 --json --lr 0.01"


def test_runs_that_did_not_learn_are_named_by_what_happened_to_them() -> None:
    found = comparison({"sam": 2}, plain=STEADY, sam=less(0.012))
    runs = found["methods"][1]["runs"]
    runs["1"]["collapsed"] = "stopped learning: after epoch 3 the training error stayed at 53.2% or above. Try --lr 1."
    judge(found)
    both = found["recommendation"]["sentence"]
    assert both.startswith(
        "2 of 10 runs learned nothing or stopped learning (the first: the training error ended at 75.0%). "
    )
    runs["0"]["collapsed"] = None
    judge(found)
    assert found["recommendation"]["sentence"].startswith("1 of 10 runs stopped learning (after epoch 3 the ")


def test_with_few_seeds_a_setting_that_lets_all_runs_learn_comes_before_more_seeds() -> None:
    found = comparison({"sam": 1}, plain=STEADY[:2], sam=less(0.012)[:2])["recommendation"]
    assert found["badge"] == "too few seeds"
    assert found["next"] == "evenly compare digits --seeds 0-4 --json --lr 0.01"
    assert comparison(plain=STEADY[:2], sam=less(0.012)[:2])["recommendation"]["next"].endswith("--seeds 0-4")


@pytest.mark.parametrize(
    ("command", "hint", "following"),
    [
        ("evenly compare digits --lr 0.3 --json", "--lr 0.01.", "evenly compare digits --json --lr 0.01"),
        ("evenly compare digits --lr=0.3", "--lr 1e-05, or --rho 0.1.", "evenly compare digits --lr 1e-05"),
        ("evenly compare digits", "--lr 1.", "evenly compare digits --lr 1"),
        ("evenly compare digits", "--lr auto.", "evenly compare digits --lr auto"),
        ("evenly compare digits --lr auto --json", "--lr auto.", None),  # which has been tried
        ("evenly compare digits --lr=auto", "--lr auto.", None),
        ("evenly compare digits --set optimizer.lr=0.5", "--lr 0.05.", "evenly compare digits --lr 0.05"),
        ("evenly compare digits --set=optimizer.lr=0.5 --json", "--lr 0.05.", "evenly compare digits --json --lr 0.05"),
        ("evenly compare digits --set optimizer.lr=0.05", "--lr 0.05.", None),
        ("evenly compare digits --lr auto", "--lr 0.003.", None),  # which would lead back to auto
        ("evenly compare digits --epochs 3 --json", "--epochs 50, or", "evenly compare digits --json --epochs 50"),
    ],
)
def test_the_next_command_has_the_setting_that_the_remedy_names(command: str, hint: str, following: str | None) -> None:
    assert other_setting({"command": command}, f"Try another learning rate: {hint}") == following


def test_the_next_command_has_the_seeds_that_would_settle_it() -> None:
    spread = [error - gap for error, gap in zip(STEADY, (0.0, 0.03, 0.0, 0.03, 0.03), strict=True)]
    found = comparison(plain=STEADY, useful=spread)
    settle = found["methods"][1]["difference"]["seeds_to_settle"]
    assert found["recommendation"]["next"] == f"evenly compare digits --json --seeds 0-{settle - 1}"
    assert comparison(plain=STEADY, useful=less(0.02))["recommendation"]["next"] is None


def test_a_difference_that_no_one_can_settle_is_called_that() -> None:
    wide = [error + gap for error, gap in zip(STEADY, (0.05, -0.05, 0.05, -0.05, 0.001), strict=True)]
    found = comparison(plain=STEADY, useful=wide)
    assert "More than 50 seeds would be needed to settle USEFUL." in found["recommendation"]["sentence"]


def test_a_comparison_whose_runs_all_failed_says_why() -> None:
    made = comparison(plain=STEADY, sam=STEADY)
    waited = {"run": None, "state": "failed", "reason": "it needs 'early run, seed 0', which did not end well"}
    for method, reason in zip(made["methods"], (waited["reason"], "a.jpg is 60×57 pixels."), strict=True):
        method |= {"runs": {"0": waited | {"reason": reason}}, "error": None, "difference": None}
    judge(made)
    assert made["recommendation"]["badge"] == "failed"
    assert made["recommendation"]["sentence"] == "Every run failed: a.jpg is 60×57 pixels."


@pytest.mark.parametrize(
    "methods",
    [
        ("sam",),
        ("sam", "useful", "sam_useful", "random", "steps"),
        ("random", "steps", "batch"),
        (
            "sam",
            "asam",
            "lsam",
            "useful",
            "useful:8",
            "jtt",
            "quantile",
            "upweight",
            "reweight",
            "balance",
            "dfr",
            "wsam",
        ),
    ],
)
def test_where_nothing_helps_a_method_is_rarely_recommended_however_many_are_compared(methods: tuple[str, ...]) -> None:
    draw, made, recommended = random.Random(0), comparison(**dict.fromkeys(("plain", *methods), STEADY)), 0
    for _ in range(400):
        for row in (row for method in made["methods"] for row in method["runs"].values()):
            row["error"] = 0.1 + 0.005 * draw.gauss(0, 1)
        judge(made)
        recommended += made["recommendation"]["method"] is not None
    assert recommended <= 0.05 * 400


def test_a_gain_that_the_best_of_many_methods_may_show_by_chance_is_said_to_need_more_seeds() -> None:
    gain = [error - gap for error, gap in zip(STEADY, (0.001, 0.014, 0.004, 0.013, 0.009), strict=True)]
    others = {name: less(0.0) for name in ("asam", "lsam", "useful", "jtt", "logit-penalty", "label-smoothing")}
    alone, among_many = (comparison(plain=STEADY, sam=gain, **more) for more in ({}, others))
    assert alone["recommendation"]["method"] == "sam"
    advice, difference = among_many["recommendation"], among_many["methods"][1]["difference"]
    assert (advice["badge"], advice["method"], difference["verdict"]) == ("may help", None, "may help")
    assert difference["seeds_to_settle"] > 5
    more = difference["seeds_to_settle"] - 5
    assert advice["sentence"].startswith("Too early to say. SAM may help: −0.82 [")
    assert f"but one of 7 methods may look as good by chance. {more} more seed" in advice["sentence"]
    assert advice["next"].endswith(f"--seeds 0-{difference['seeds_to_settle'] - 1}")


def test_controls_cost_the_methods_they_control_no_certainty() -> None:
    gain = [error - gap for error, gap in zip(STEADY, (0.001, 0.014, 0.004, 0.013, 0.009), strict=True)]
    controls = {name: less(0.0) for name in ("random", "steps", "batch", "random-perturbation", "augment-all")}
    assert comparison(plain=STEADY, useful=gain, **controls)["recommendation"]["method"] == "useful"
    strong = comparison(plain=STEADY, useful=less(0.0), sam=less(0.0), batch=less(0.02))["recommendation"]
    assert strong["method"] == "batch", "a control may be the cure"


def test_two_rivals_that_both_help_do_not_explain_each_other_away() -> None:
    found = comparison(**{"plain": STEADY, "logit-penalty": less(0.05), "label-smoothing": less(0.051)[::-1]})
    assert found["recommendation"]["badge"] == "helped"
    assert found["recommendation"]["method"] in ("logit-penalty", "label-smoothing")
    for one, other in ((1, 2), (2, 1)):  # as records of older versions name them
        found["methods"][one]["controls"] = [found["methods"][other]["name"]]
    judge(found)
    assert found["recommendation"]["badge"] == "helped"


@pytest.mark.parametrize(("num", "badge"), [(3, "may help"), (5, "may help"), (6, "helped")])
def test_the_same_difference_with_every_seed_is_as_certain_as_its_sign(num: int, badge: str) -> None:
    """Errors on a small test set are multiples of one example, and three alike are no proof: p = 2/2³."""
    plain = [(3 + seed % 3) / 287 for seed in range(num)]
    made = comparison(plain=plain, useful=[error - 1 / 287 for error in plain])
    assert made["recommendation"]["badge"] == badge
    if badge == "may help":
        told = f"USEFUL may help: −0.35 [−0.35, −0.35] points, but {num} equal differences may be chance."
        assert told in made["recommendation"]["sentence"]
        assert f"{6 - num} more seed{'s' * (num < 5)} would settle it." in made["recommendation"]["sentence"]
