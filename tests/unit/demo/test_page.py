"""The demo's sentences follow from its numbers, and its page holds them all."""

import copy
import re
import shlex
from typing import Any

import pytest

from evenly.cli import parser
from evenly.demo.findings import compare_methods, difference_text, growth, headline, hits, image_findings, toy_findings
from evenly.demo.page import commands, demo_page

TOY: dict[str, Any] = {
    "setting": {"seeds": 3, "separate_at": 10, "alpha": 0.9, "beta_hard": 0.4},
    "steps": [0, 20],
    "alignment": {
        "plain": {"easy": [[0.1] * 3, [2.0, 2.1, 2.2]], "hard": [[0.1] * 3, [0.3, 0.4, 0.5]]},
        "sam": {"easy": [[0.1] * 3, [1.0, 1.0, 1.1]], "hard": [[0.1] * 3, [0.2, 0.9, 0.6]]},
        "useful": {"easy": [[0.1] * 3, [2.0, 2.0, 2.1]], "hard": [[0.1] * 3, [0.6, 0.71, 0.79]]},
        "random": {"easy": [[0.1] * 3, [2.0, 2.0, 2.1]], "hard": [[0.1] * 3, [0.31, 0.39, 0.5]]},
    },
    "error": {name: [0.02, 0.03, 0.04] for name in ("plain", "sam", "useful", "random")},
    "separations": [{"seed": s, "hard": 9, "lacking": 9, "precision": 1.0, "recall": 1.0} for s in range(3)],
    "examples": [{"label": "+1", "hard": h, "loss": 0.5, "lacking": h, "patches": [[1.0, 0.0]] * 3} for h in (0, 1)],
}


def images(useful: list[float], random: list[float]) -> dict[str, Any]:
    errors = {"plain": [0.40, 0.41, 0.42], "useful": useful, "random": random}
    rows = [
        {"method": m, "seed": s, "run": f"{m}{s}", "early": None if m == "plain" else f"early{s}"}
        | {"share": 0.2, "cost": 1.3, "error.test": e / 10, "error.balanced": e}
        for m, values in errors.items()
        for s, e in enumerate(values)
    ]
    examples = [
        {"label": "<b>odd</b>", "hard": hard, "loss": 1.0, "lacking": hard, "pixels": [[0, 255]] * 2} for hard in (0, 1)
    ]
    separations = [{"seed": s, "hard": 10, "lacking": 9, "precision": 0.9, "recall": 1.0} for s in range(3)]
    return {"setting": {"epochs": 3, "seeds": 3}, "rows": rows, "separations": separations, "examples": examples}


GAIN = images([0.35, 0.36, 0.37], [0.40, 0.41, 0.421])


def test_sentences_of_the_toy_tell_starved_found_and_fed() -> None:
    starved, what, more, wrong = toy_findings(TOY)
    assert re.search(r"alignment of \d\.\d\d with the easy feature and of \d\.\d\d with the difficult one", starved)
    assert "exactly the examples that lack the easy patch, with 3 of 3 seeds" in what
    assert "USEFUL +0.30 [+0.28, +0.32] (higher with 3 of 3 seeds)" in more
    assert "random +0.00 [−0.02, +0.02] (higher with 1 of 3 seeds, which may be chance)" in more
    assert wrong.startswith("Test error: 3.0% with plain training; changes in points: USEFUL +0.00 [+0.00, +0.00]")
    assert "initial weights" not in starved


def test_a_network_that_does_not_lean_is_not_said_to() -> None:
    even = copy.deepcopy(TOY)
    even["alignment"]["plain"]["hard"] = even["alignment"]["plain"]["easy"]
    assert "no further than" in headline(even)
    assert "With 3 of them the initial weights let it learn both." in toy_findings(even)[0]
    assert "USEFUL −" in growth(even)


def test_a_separation_that_misses_is_not_called_exact() -> None:
    rows = [{"precision": 1.0, "recall": 1.0}, {"precision": 0.5, "recall": 0.8}]
    assert "finds 90.0%" in hits(rows, what="x")
    assert "of what it finds, 75.0% are such examples" in hits(rows, what="x")
    assert "exactly" not in hits(rows, what="x")


@pytest.mark.parametrize(
    ("useful", "random", "said"),
    [
        ([0.35, 0.36, 0.37], [0.40, 0.41, 0.42], "more than the extra steps explain"),
        ([0.35, 0.36, 0.37], [0.35, 0.37, 0.36], "some of it may be the extra steps"),
        ([0.35, 0.36, 0.37], [0.30, 0.31, 0.32], "less than the extra steps alone give"),
        ([0.45, 0.46, 0.47], [0.43, 0.44, 0.45], "worse than either"),
        ([0.45, 0.46, 0.47], [0.45, 0.47, 0.46], "worse, which may be the extra steps"),
        ([0.45, 0.46, 0.47], [0.50, 0.51, 0.52], "worse, but less so than random upsampling"),
        ([0.30, 0.50, 0.42], [0.40, 0.41, 0.42], "which may be chance (3 paired seeds)"),
    ],
)
def test_what_images_say_depends_on_both_intervals(useful: list[float], random: list[float], said: str) -> None:
    assert said in compare_methods(images(useful, random), "balanced")


def test_each_split_is_named_before_its_error() -> None:
    _, test, balanced = image_findings(GAIN)
    assert re.match(r"Test error on data made like the training set: \d", test)
    assert re.match(r"Test error on data whose upper digit says nothing about the label: \d", balanced)


def test_what_comes_next_promises_no_more_than_was_seen() -> None:
    page = demo_page(TOY, GAIN, command="evenly demo", runs="runs")
    assert "does harm where labels are wrong" in page
    assert "otherwise the intervals include zero" not in page


def test_the_terminal_says_nothing_twice() -> None:
    told = " ".join((headline(TOY), *toy_findings(TOY)))
    assert told.count("times as far") == 1


def test_worse_is_said_with_its_sign() -> None:
    assert "by +5.00 [+5.00, +5.00] points" in compare_methods(
        images([0.45, 0.46, 0.47], [0.4, 0.41, 0.42]), "balanced"
    )


def test_the_page_holds_every_finding_and_asks_for_nothing() -> None:
    page = demo_page(TOY, GAIN, command="evenly demo --out x", runs="x/runs")
    body = page.split("<main")[1].split("</main>")[0].replace("&#39;", "'").replace("&gt;", ">")
    for sentence in (*toy_findings(TOY), *image_findings(GAIN)):
        assert sentence in body
    assert re.findall(r'<section class="part" id="([a-z]+)"', page) == ["bias", "separation", "cure", "images", "next"]
    assert body.count("data:image/png;base64,") == 4
    assert "<b>odd" not in page
    assert "&lt;b&gt;odd" in page
    assert "http://" not in body
    assert "https://" not in body
    assert "evenly demo --out x" in body
    assert body.count(toy_findings(TOY)[0]) == 1, "the lead is not said again"
    assert "evenly report x/runs --out page.html" in body


def test_every_row_of_a_table_has_a_cell_for_every_column() -> None:
    page = demo_page(TOY, GAIN, command="evenly demo", runs="runs")
    tables = re.findall(r"<table.*?</table>", page, flags=re.DOTALL)
    assert len(tables) == 3
    for table in tables:
        head, *rows = re.findall(r"<tr.*?</tr>", table, flags=re.DOTALL)
        assert {len(re.findall("<t[hd][ >]", row)) for row in rows} == {head.count("<th")}


def test_the_commands_to_go_on_with_exist() -> None:
    lines = commands("a-folder/of-some-length/runs").splitlines()
    assert len({line.index("  # ") for line in lines}) == 1, "comments stand in a column"
    for line in lines:
        words = shlex.split(line, comments=True)
        parser(words[1]).parse_args(words[1:])  # exits on a verb or option that does not exist


def test_one_seed_has_no_interval_and_still_a_page() -> None:
    one = copy.deepcopy(TOY)
    for method in one["alignment"].values():
        for feature in method:
            method[feature] = [row[:1] for row in method[feature]]
    one["error"] = {name: values[:1] for name, values in one["error"].items()}
    pictures = dict(GAIN, rows=[row for row in GAIN["rows"] if row["seed"] == 0])
    page = demo_page(one, pictures, command="evenly demo", runs="runs")
    assert "nan" not in page.split("<main")[1].split("</main>")[0].lower().replace("finance", "")


def test_differences_carry_a_real_minus() -> None:
    from evenly.intervals import interval

    assert difference_text(interval([-1.0])) == "−1.00"


def test_bars_of_the_toy_are_medians_like_its_tiles_and_no_whisker_leaves_what_is_possible() -> None:
    from evenly.demo.page import _bars, _middles

    bars = _middles("difficult", {"plain": [0.1, 0.2, 0.9], "sam": [0.0, 0.0, 3.0]}, {"plain": "GD", "sam": "SAM"})
    assert bars.y == (0.2, 0.0)
    assert bars.low is not None
    assert min(bars.low) >= 0  # type: ignore[type-var]
    errors = _bars("error", {"useful": [0.0, 10.0], "random": [99.0, 90.0]}, {"useful": "USEFUL", "random": "random"})
    assert (errors.low[0], errors.high[1]) == (0.0, 100.0)  # type: ignore[index]
    assert not errors.bar, "two seeds are dots beside a mark"


def test_a_quick_demo_trains_as_long_as_the_whole_one() -> None:
    from evenly.demo.toy import QUICK, Toy

    assert QUICK.iterations == Toy().iterations, "SAM sets out late: cut short, it would contradict the page"
    assert QUICK.seeds < Toy().seeds


def test_the_headline_has_the_cure_in_it_and_no_more_than_the_numbers_say() -> None:
    told = headline(TOY)
    assert "5.2 times as far" in told
    assert "USEFUL lets the difficult one grow, by +0.30 [+0.28, +0.32]" in told
    assert "random examples twice does not" in told
    unsure = copy.deepcopy(TOY)
    unsure["alignment"]["useful"]["hard"][-1] = [0.3, 0.9, 0.2]
    assert "may be chance" in headline(unsure)
    page = demo_page(TOY, GAIN, command="evenly demo", runs="runs")
    assert "Alignment with a feature v is the largest" in page.split("<main")[1].split("<section")[0]
