"""The page: one file, escaped, with nothing fetched."""

import base64
import re

import pytest

from evenly.errors import UsageError
from evenly.report.blocks import (
    Badge,
    Chapter,
    Gallery,
    Lead,
    Link,
    Picture,
    Plot,
    Prose,
    Section,
    Shelf,
    Switch,
    Table,
)
from evenly.report.chart import Chart, Line
from evenly.report.page import content, render

EVIL = "<script>alert(1)</script>"
CHART = Chart("Error", "epoch", "%", [Line(EVIL, [1, 2], [3.0, 2.0])], f"It falls {EVIL}.")
PAGE = render(
    EVIL,
    Lead(f"Found {EVIL} and `code`.", badge=EVIL, facts=[(EVIL, EVIL)], command=f"evenly useful {EVIL}"),
    [
        Section("plots", EVIL, [Prose(f"{EVIL}\n\nsecond"), Plot(CHART)]),
        Section("rest", "Rest", [Table([EVIL, "b"], [[EVIL, 1.23456], {EVIL: None, "b": "2 ± 1"}], EVIL),
                                 Gallery([Shelf(EVIL, {"easiest": [Picture(EVIL, EVIL, text=EVIL)]})], EVIL)]),
    ],
)  # fmt: skip


def test_no_name_can_become_a_script() -> None:
    without_own = re.sub(r"<script( id=\"data\" type=\"application/json\")?>.*?</script>", "", PAGE, flags=re.S)
    assert "<script" not in without_own
    # Inside the data, not even the beginning of an element is left.
    data = re.search(r'<script id="data" type="application/json">(.*?)</script>', PAGE, flags=re.S)
    assert data is not None
    assert "<" not in data[1]


def test_a_policy_forbids_every_request() -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', PAGE)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "connect-src 'none'" in policy[1]
    body = PAGE.split("<main", 1)[1].split("</main>", 1)[0]
    assert not re.findall(r'(?:src|href)="(?!data:|#)', body)


def test_charting_is_inlined_once_and_only_where_there_is_a_chart() -> None:
    assert PAGE.count("const Chart = ") == 1
    assert len(PAGE) < 70_000
    assert "const Chart = " not in render("Title", "Nothing.", [Section("a", "A", [Prose("x")])])


def test_every_plot_has_its_sentence_alt_text_height_and_csv() -> None:
    canvas = re.search(r'<div class="canvas" id="plots-1" role="group"[^>]*>', PAGE)
    assert canvas is not None
    assert 'aria-label="Error. It falls &lt;script&gt;' in canvas[0]
    assert "height: 340px" in canvas[0]
    link = re.search(r'href="data:text/csv;charset=utf-8;base64,([^"]+)"', PAGE)
    assert link is not None
    assert base64.b64decode(link[1]).decode().splitlines() == ["series,x,y", f"{EVIL},1,3.0", f"{EVIL},2,2.0"]


def test_cells_are_short_and_absent_ones_are_dashes() -> None:
    assert ">1.235</td>" in PAGE
    assert '<th scope="row">—</th>' in PAGE


def test_a_live_page_may_ask_its_own_server_and_gets_the_blocks_by_place() -> None:
    sections = [Section("plots", "Plots", [Prose("now"), Plot(CHART)])]
    assert "connect-src 'self'" in render("T", "V.", sections, live="/news.json")
    news = content(f"V {EVIL}.", sections)
    assert list(news["plots"]) == ["plots-1"]
    assert "now" in news["blocks"]["plots-0"]
    assert "<script" not in news["leads"]["lead"]


def test_two_sections_of_one_id_are_refused() -> None:
    with pytest.raises(UsageError, match="two sections have the id 'a'"):
        render("T", "V.", [Section("a", "A", []), Section("a", "B", [])])
    with pytest.raises(UsageError, match="small letters"):
        render("T", "V.", [Section("A b", "A", [])])


def test_chapters_have_their_own_leads_and_one_order_of_headings() -> None:
    own = [Section("one-plots", "Plots", [Plot(CHART)])]
    page = render("All", "Two.", [Section("index", "Index", [])], chapters=[Chapter("one", "One", Lead("Found."), own)])
    assert [int(level) for level in re.findall(r"<h([1-6])", page)] == [1, 2, 2, 3, 4]
    news = content("Two.", [], chapters=[Chapter("one", "One", Lead("Now."), own)])
    assert "Now." in news["leads"]["one-lead"]
    assert list(news["plots"]) == ["one-plots-0"]


def test_a_switch_shows_its_first_choice_and_draws_all() -> None:
    switch = Switch("Seed", {"0": [Plot(CHART)], "1": [Plot(CHART)]})
    page = render("T", "V.", [Section("a", "A", [switch])])
    assert page.count('class="choice blocks"') == 2
    assert page.count('data-choice="1" hidden') == 1
    assert '"a-0-1-0":' in page


def test_a_command_or_a_name_in_a_table_is_not_broken_at_its_hyphens() -> None:
    cells = [[Link("lacking-5-few", "a.html"), "5% of 400", "evenly reproduce atlas/lacking-5-few --scale small"]]
    made = render("t", Lead("x"), [Section("s", "S", [Table(["task", "what it is", "command"], cells)])])
    assert '<code class="number">evenly reproduce atlas/lacking-5-few --scale small</code>' in made
    assert '<a href="a.html" class="number">lacking-5-few</a>' in made


@pytest.mark.parametrize(
    ("word", "tone"), [("helps", "good"), ("harms", "bad"), ("may help", "open"), ("may harm", "open")]
)
def test_the_words_of_the_atlas_have_their_colours(word: str, tone: str) -> None:
    made = render("t", Lead("x"), [Section("s", "S", [Table(["task", ""], [["lacking-5", Badge(word)]])])])
    assert f'<span class="badge {tone}">{word}</span>' in made
