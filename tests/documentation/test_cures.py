"""Every number that the pages give from the atlas is bound to its cells, and is what the rows say."""

import re
from pathlib import Path
from typing import Any

import pytest

from evenly.papers.atlas.sentences import BOUND, complaints, filled
from evenly.papers.atlas.task_list import atlas_rows

PROJECT = Path(__file__).parents[2]
ROWS = atlas_rows(PROJECT / "claims")
PAGES = sorted([PROJECT / "README.md", *(PROJECT / "docs").rglob("*.md")])
LIST = re.compile(r"<!-- list: .*?<!-- end of list -->", re.DOTALL)
#: What a number of the atlas looks like: an interval, a signed difference, a count of tasks.
LOOSE = re.compile(
    r"[+−]?[\d.]+ ± [\d.]+|\[[+−]?\d[\d.]*, [+−]?\d[\d.]*\]|[+−]\d+\.\d+|\d+ of (?:the )?\d+\b|up to \d+\.\d"
)
SENTENCE = "it gains −2.3 ± 1.0<!-- atlas: lacking-20 useful balanced -->"


def loose_numbers(text: str) -> list[str]:
    """The numbers that are bound to nothing."""
    return LOOSE.findall(BOUND.sub("", LIST.sub("", text)).replace("units of [0, 1]", ""))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_bound_numbers_are_what_the_rows_say(page: Path):
    text = page.read_text(encoding="utf-8")
    assert not complaints(text, ROWS), f"{page.name} must be edited by hand"
    assert filled(text, ROWS) == text, "run `make tables`"


def test_no_number_of_the_cures_is_bound_to_nothing():
    text = (PROJECT / "docs" / "cures.md").read_text(encoding="utf-8")
    own, heading, _ = text.partition("## Before any of them: are labels wrong?")
    assert heading
    assert len(BOUND.findall(own)) > 60
    assert not loose_numbers(own)
    page = (PROJECT / "docs" / "which-method.md").read_text(encoding="utf-8")
    quoting = [item for item in re.split(r"\n\n|\n(?=- )", page) if "`atlas/" in item]
    assert len(quoting) > 6
    assert not [item for item in quoting if loose_numbers(item)]


def test_another_number_in_a_sentence_is_put_right():
    for wrong in ("−2.4 ± 1.0", "−2.3 ± 1.1", "−8.3 ± 1.9"):
        assert filled(SENTENCE.replace("−2.3 ± 1.0", wrong), ROWS) == SENTENCE
    assert filled("on 3 of the 9<!-- atlas: noisy-* higher useful8 test --> tasks", ROWS).startswith("on 7 of the 8<")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SENTENCE.replace("−2.3", "+2.3"), "whose sign is now that of -2.3: reword it"),
        (SENTENCE.replace("−2.3", "2.3"), "whose sign is now that of -2.3: reword it"),
        (SENTENCE.replace("lacking-20", "lacking-21"), "no task that has been measured is called 'lacking-21'"),
        (SENTENCE.replace("useful", "useless"), "is not TASK"),
        (SENTENCE.replace("−2.3 ± 1.0", "nothing"), "stand behind no number"),
        ("up to 2.0<!-- atlas: lacking-* lower random balanced -->", "no interval lies on that side of zero"),
        ("It is open.<!-- until: lacking-20 -->", "lacking-20 has been measured: rewrite what was said before"),
    ],
)
def test_what_a_person_must_edit_is_named_and_left_alone(text: str, told: str):
    [complaint] = complaints(text, ROWS)
    assert told in complaint
    assert filled(text, ROWS) == text


def test_new_tasks_join_the_table_of_other_data():
    """As soon as the tasks on fmnist-mnist have rows."""
    from evenly.papers.atlas.markdown import elsewhere

    known: dict[str, Any] = {row["key"]: row for row in ROWS}
    new = {**known["atlas/lacking-20"], "key": "atlas/fmnist-lacking-20"}
    assert "| cure | convnet-lacking-20, balanced |" in elsewhere(ROWS)
    assert "fmnist-lacking-20, balanced" in elsewhere([*(row for row in ROWS if row["key"] != new["key"]), new])
