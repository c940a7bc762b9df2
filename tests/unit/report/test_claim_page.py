"""The words on the page of an experiment are true of its scale, and begin as sentences do."""

import html
import json
import re
from pathlib import Path
from typing import Any

import pytest

from evenly.report.claim_page import experiment_page

PAPERS = {
    "springer2024": ("Springer et al. (2024)", "Springer and others."),
    "nguyen2024": ("N", "N."),
    "atlas": ("A", "A."),
}
LEDGER = Path(__file__).parents[3] / "claims"


def page(name: str, **more: Any) -> str:
    row = json.loads((LEDGER / f"{name}.json").read_text()) | more
    line = {name: row[name] for name in ("key", "claim", "scale", "kind", "verdict")} | {"state": "done"}
    return html.unescape(experiment_page(line, [row], ledger=LEDGER, papers=PAPERS))


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("springer2024-fig2-full", "The paper gives no numbers here: the order of numbers is judged, not their level."),
        ("springer2024-fig3-full", "leaves settings open that the level of its numbers depends on"),
        (
            "nguyen2024-table2-small",
            "The size is not the paper's: the order of numbers is judged, not their level.",
        ),
    ],
)
def test_a_page_says_why_the_level_of_numbers_is_not_judged(name: str, why: str) -> None:
    text = page(name)
    assert why in text
    assert ("The size is not" in text) == name.endswith("small")


def test_a_word_after_a_full_stop_begins_with_a_capital_and_a_symbol_stays_itself() -> None:
    text = page("springer2024-fig2-full")
    assert "The paper shows this as a figure" in text
    for name in ("springer2024-fig2-full", "springer2024-fig3-full", "springer2024-fig7-full"):
        told = re.sub(r"<(style|script).*?</\1>", "", page(name), flags=re.DOTALL)
        assert not re.search(r"(?<!eq)\. [a-z]{2,} ", told), name
    text = page("springer2024-appendixD-full")
    assert "; a_j as printed" in text
    assert "A_j as printed" not in text


def test_a_cure_that_changed_nothing_is_not_said_to_harm() -> None:
    row = json.loads((LEDGER / "atlas-lacking-5-small.json").read_text())
    [claim] = [each for each in row["claims"] if each["name"] == "random test"]
    assert (claim["difference"]["low"], claim["difference"]["high"], claim["verdict"]) == (0, 0, "contradicted")
    assert "unclear" in page("atlas-lacking-5-small", claims=[claim])
    assert "may harm" not in page("atlas-lacking-5-small", claims=[claim])
