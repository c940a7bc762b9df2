"""The page as a person meets it: it opens, obeys, fits, and asks the network for nothing."""

import json
import threading
from base64 import b64decode
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from evenly.cli import main
from evenly.recipe import Data, Recipe, Resampling, digest, to_mapping
from evenly.records import Run
from evenly.report.experiments import page_of as experiments_page
from evenly.report.live import Server

Made = dict[tuple[str, int], Run]
EVIL = "<script>window.harmed = true</script>"


def drawn(sight: Any) -> int:
    """How many plots are drawn once all of the page was in view."""
    shown = sight.page.locator(".canvas:visible")
    for index in range(shown.count()):
        shown.nth(index).scroll_into_view_if_needed()
        shown.nth(index).locator("svg").wait_for(timeout=10_000)
    return shown.count()


def awaited(sight: Any, condition: str) -> None:
    """Wait until something holds on the page, asking from outside: the page itself may evaluate nothing."""
    for _ in range(100):
        if sight.page.evaluate(condition):
            return
        sight.page.wait_for_timeout(100)
    raise AssertionError(f"never came true: {condition}")


@pytest.fixture
def measured_page(
    comparison: Callable[..., Made], measure: Callable[[Run], None], page_of: Callable[[Path], Path]
) -> tuple[Made, Path]:
    made = comparison(names=("cat", EVIL))
    measure(made["useful", 0])
    return made, page_of(made["useful", 0].path)


@pytest.mark.parametrize(("width", "scheme"), [(390, "dark"), (1440, "light")])
def test_the_page_opens_without_complaint_or_request_and_fits(
    width: int, scheme: str, measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    sight = look(measured_page[1], width=width, scheme=scheme)
    assert drawn(sight) >= 15
    assert sight.complaints == []
    assert sight.asked_for == []
    assert sight.page.evaluate("document.documentElement.scrollWidth") <= width
    assert sight.page.evaluate("window.harmed") is None
    ground = sight.page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, ground.strip("rgb()").split(","))) < 150) == (scheme == "dark")


def test_sections_match_the_run_and_can_be_walked_to(
    measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    made, path = measured_page
    sight = look(path)
    expected = [section.id for section in experiments_page([made["useful", 0].path]).sections]
    assert [part.get_attribute("id") for part in sight.page.locator(".part").all()] == expected
    links = [link.get_attribute("href") for link in sight.page.locator("nav a").all()]
    assert links == [f"#{name}" for name in expected]
    levels = sight.page.evaluate("[...document.querySelectorAll('h1,h2,h3,h4')].map((h) => +h.tagName[1])")
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


def test_nothing_moves_when_plots_are_drawn(measured_page: tuple[Made, Path], look: Callable[..., Any]) -> None:
    sight = look(measured_page[1])
    before = sight.page.evaluate("document.getElementById('run').offsetTop")
    drawn(sight)
    # Rows of the gallery are measured when they come near; nothing else may change its height.
    shelves = sight.page.evaluate("document.querySelector('.gallery').offsetHeight") + 40
    assert abs(sight.page.evaluate("document.getElementById('run').offsetTop") - before) <= shelves
    shown = "[...document.querySelectorAll('.canvas')].filter((c) => c.offsetParent)"
    heights = sight.page.evaluate(f"{shown}.map((c) => [c.offsetHeight, c.style.height])")
    assert all(f"{shown}px" == given for shown, given in heights)


def test_the_class_filter_and_the_suspects(measured_page: tuple[Made, Path], look: Callable[..., Any]) -> None:
    page = look(measured_page[1]).page
    assert page.locator(".gallery .count").first.inner_text() == "8 examples"
    page.locator(".class-filter").first.select_option(label=EVIL)
    assert page.locator(".shelf:visible").count() == 1
    assert page.locator(".shelf:visible h3").text_content() == EVIL
    assert page.locator(".gallery .count").first.inner_text() == "4 examples"
    page.get_by_label("only those whose label to check").first.check()
    assert page.locator(".gallery .count").first.inner_text() == "1 example"
    page.locator(".class-filter").first.select_option("")
    assert page.locator(".shelf:visible").count() == 2


def test_the_theme_button_repaints_page_and_plots_and_is_remembered(
    measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    sight = look(measured_page[1])
    page = sight.page
    drawn(sight)

    def inks() -> list[str]:
        axis = "getComputedStyle(document.querySelector('.canvas .axis')).fill"
        return page.evaluate(f"[getComputedStyle(document.body).color, {axis}]")

    light = inks()
    page.locator("#theme").click()
    dark = inks()
    assert (light[1], dark[1]) == ("rgb(36, 41, 47)", "rgb(230, 232, 235)")
    assert light[0] != dark[0]
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_keyboard_reaches_everything(measured_page: tuple[Made, Path], look: Callable[..., Any]) -> None:
    page = look(measured_page[1]).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(90):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"theme", "copy", "class-filter", "suspect-filter", "csv", "choose", "enlarge"} <= reached
    assert page.evaluate("[...document.querySelectorAll('main img')].every((i) => i.alt)")
    assert page.evaluate("[...document.querySelectorAll('.canvas')].every((c) => c.ariaLabel.length > 20)")


def test_hovering_tells_values_and_the_csv_holds_them(
    measured_page: tuple[Made, Path], look: Callable[..., Any], tmp_path: Path
) -> None:
    page = look(measured_page[1]).page
    with page.expect_download() as coming:
        page.locator("#comparison .csv").first.click()
    coming.value.save_as(tmp_path / "error.csv")
    lines = (tmp_path / "error.csv").read_text().splitlines()
    assert lines[0].startswith("series,x,y,low,high,value 1")
    assert lines[2].startswith("error,USEFUL,9.0")
    canvas = page.locator("#curves .canvas").first
    canvas.scroll_into_view_if_needed()
    canvas.locator("svg").wait_for()
    box = canvas.bounding_box()
    page.mouse.move(box["x"] + box["width"] * 0.6, box["y"] + box["height"] / 2)
    tip = canvas.locator(".tip").inner_text()
    assert "epoch: " in tip
    assert "test error (%)" in tip
    assert all(f"{method}: " in tip for method in ("plain", "USEFUL", "random")), "all methods at one epoch"
    canvas.press("ArrowRight")
    assert canvas.locator(".spoken").inner_text().startswith("epoch: 1; test error (%); plain ")


def test_a_chart_is_one_stop_and_holds_no_trap(measured_page: tuple[Made, Path], look: Callable[..., Any]) -> None:
    sight = look(measured_page[1])
    drawn(sight)
    focusable = (
        "[...document.querySelectorAll('.canvas')].map((c) => c.querySelectorAll('a, button, [tabindex]').length)"
    )
    assert set(sight.page.evaluate(focusable)) == {0}
    assert sight.page.locator(".canvas[role=img]").count() == 0
    border = "getComputedStyle(document.querySelector('.class-filter')).borderColor"
    assert sight.page.evaluate(border) == "rgb(131, 139, 148)", "3.4:1 on white"


def test_a_picture_is_enlarged_with_what_is_known_of_it(
    measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    page = look(measured_page[1]).page
    page.locator(".enlarge").nth(2).click()
    dialog = page.locator("dialog.large")
    assert "early network" in dialog.inner_text()
    assert "called hard" in dialog.inner_text()
    page.keyboard.press("Escape")
    assert not dialog.is_visible()
    page.locator(".enlarge").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement === document.querySelectorAll('.enlarge')[1]")


def test_another_seed_is_shown_and_drawn_when_it_is_chosen(
    measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    sight = look(measured_page[1])
    sight.page.locator("#separation .choose").select_option("1")
    assert sight.page.locator("#separation .choice:visible").count() == 1
    assert "seed 1" in sight.page.locator("#separation .choice:visible .prose").first.inner_text()
    drawn(sight)


def test_a_printed_report_has_every_plot_on_at_most_six_light_pages(
    measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    sight = look(measured_page[1], scheme="dark")
    document = sight.page.pdf(format="A4")
    assert document.count(b"/Type /Page\n") + document.count(b"/Type /Page/") + document.count(b"/Type /Page ") <= 6
    missing = (
        "[...document.querySelectorAll('.canvas')].filter((c) => c.offsetParent && !c.querySelector('svg')).length"
    )
    assert sight.page.evaluate(missing) == 0
    assert sight.complaints == []
    sight.page.emulate_media(media="print")
    assert sight.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert sight.page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"


def test_paper_of_any_width_cuts_off_no_part_of_a_plot(
    measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    page = look(measured_page[1], width=1000).page  # two columns on a screen of that width
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    cut = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.id || e.className)"
    assert page.locator(".canvas").evaluate_all(cut) == []


def test_no_number_is_wider_than_its_card(measured_page: tuple[Made, Path], look: Callable[..., Any]) -> None:
    for width in (390, 794, 1024, 1440):
        page = look(measured_page[1], width=width).page
        over = "[...document.querySelectorAll('.facts div')].filter((d) => d.scrollWidth > d.clientWidth).length"
        assert page.evaluate(over) == 0, width
        # As two seeds that disagree bring it about.
        page.evaluate("document.querySelector('.facts dd').textContent = '−21.88 [−299.83, 277.95]'")
        assert page.evaluate(over) == 0, width


@pytest.mark.parametrize(
    "how",
    [
        {"names": [f"class {i}" for i in range(1000)], "errors": {"plain": (0.1,), "useful": (0.2,)}},
        {"names": ["only"], "hard": 0, "errors": {"useful": (0.1,)}},
        {"names": ["good", "bad"], "pictures": False, "errors": {"useful": (0.1,)}},
    ],
    ids=["1000 classes", "one class, none hard", "text"],
)
def test_odd_runs_render(
    how: dict[str, Any], comparison: Callable[..., Made], page_of: Callable[[Path], Path], look: Callable[..., Any]
) -> None:
    sight = look(page_of(comparison(**how)["useful", 0].path), width=390)
    assert drawn(sight) >= 3
    assert sight.page.locator(".shelf").count() == len(how["names"])
    assert sight.complaints == []
    assert sight.page.evaluate("document.documentElement.scrollWidth") <= 390


def test_a_live_page_follows_a_run_to_its_end(tmp_path: Path, look: Callable[..., Any]) -> None:
    recipe = Recipe(epochs=3)
    run = Run.create(tmp_path, to_mapping(recipe), digest(recipe))
    run.log(epoch=1, **{"test.error": 0.5})
    with Server(lambda: experiments_page([run.path]), port=0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            sight = look(server.address)
            assert "is running after epoch 1 of 3" in sight.page.locator(".verdict").inner_text()
            drawn(sight)
            run.log(epoch=2, **{"test.error": 0.4})
            awaited(sight, "document.querySelectorAll('.canvas circle').length === 2")
            assert "after epoch 2 of 3" in sight.page.locator(".verdict").inner_text()
            data = sight.page.locator("#curves .csv").first.get_attribute("href")
            assert b64decode(data.partition(",")[2]).decode().splitlines()[-1].startswith("plain,2,40")
            run.finish({"test.error": 0.3})
            awaited(sight, "document.querySelector('.live').textContent === 'done'")
            assert sight.complaints == []
            assert set(sight.asked_for) == {f"{server.address}news.json"}
        finally:
            server.shutdown()
            thread.join()


def test_a_live_page_follows_the_whole_command(
    comparison: Callable[..., Made], tmp_path: Path, look: Callable[..., Any]
) -> None:
    comparison()
    path = next((tmp_path / "runs" / "comparisons").glob("*.json"))
    record = json.loads(path.read_text()) | {"state": "running"}
    waiting = Recipe(data=Data("photos"), epochs=10, seed=3, resampling=Resampling("useful", early="e"))
    record["methods"][1]["runs"]["3"] = {"run": digest(waiting), "state": "running"}
    path.write_text(json.dumps(record))
    with Server(lambda: experiments_page([tmp_path / "runs"]), port=0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            sight = look(server.address)
            run = Run.create(tmp_path / "runs", to_mapping(waiting), digest(waiting))
            run.log(epoch=4, **{"test.error": 0.5})
            awaited(sight, "document.querySelector('.live').textContent.startsWith('run 13 of 13, USEFUL, seed 3')")
            run.finish({"test.error": 0.3})
            awaited(sight, "document.querySelector('.live').textContent === '13 of 13 runs done'")
            path.write_text(json.dumps(record | {"state": "done"}))
            awaited(sight, "document.querySelector('.live').textContent === 'done'")
            assert sight.complaints == []
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (390, "dark")])
def test_a_folder_of_several_experiments_has_an_index_and_chapters(
    width: int, scheme: str, comparison: Callable[..., Made], tmp_path: Path, look: Callable[..., Any]
) -> None:
    comparison()
    stray = Recipe(epochs=4)
    Run.create(tmp_path / "runs", to_mapping(stray), digest(stray)).close()
    out = tmp_path / "page.html"
    experiments_page([tmp_path / "runs"]).write(out)
    sight = look(out, width=width, scheme=scheme)
    assert sight.page.locator(".chapter").count() == 2
    sight.page.locator("#index a").first.click()
    assert sight.page.evaluate("location.hash").startswith("#e0-")
    assert drawn(sight) >= 8
    assert sight.complaints == []
    assert sight.page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_claims_can_be_filtered_sorted_and_have_thumbnails(tmp_path: Path, look: Callable[..., Any]) -> None:
    assert main(["report", "--claims", "--out", str(tmp_path / "site")]) == 0
    sight = look(tmp_path / "site" / "index.html")
    page = sight.page
    table = page.locator("#paper .sortable")
    rows = table.locator("tbody tr:visible")
    every = rows.count()
    table.locator("select").first.select_option(label="✓ reproduced")
    assert 0 < rows.count() < every
    assert {badge.inner_text() for badge in rows.locator(".badge").all()} == {"✓ reproduced"}
    table.locator("select").first.select_option("")
    table.get_by_role("button", name="seeds").click()
    seeds = rows.locator("td:nth-child(6)").all_inner_texts()
    known = [int(text) for text in seeds if text.isdecimal()]
    assert known == sorted(known)
    assert [text.isdecimal() for text in seeds] == [True] * len(known) + [False] * (len(seeds) - len(known))
    heads = table.locator("thead button").all_inner_texts()
    table.get_by_role("button", name="time", exact=True).click()
    times = [text.split() for text in rows.locator(f"td:nth-child({heads.index('time') + 1})").all_inner_texts()]
    unit = {"s": 1, "min": 60, "h": 3600, "days": 86_400, "years": 31_536_000}
    seconds = [float(words[0]) * unit[words[1]] for words in times if len(words) == 2]
    assert len({words[-1] for words in times}) > 2, "of several units"
    assert seconds == sorted(seconds)
    table.locator(".find").fill("theorem3.2")
    assert rows.count() >= 1
    loaded = "[...document.querySelectorAll('#paper tr:not([hidden]) .thumb')].every((i) => i.naturalWidth > 0)"
    awaited(sight, loaded)
    assert sight.complaints == []


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (1900, "dark")])
def test_the_map_of_the_atlas_fits_and_uses_the_window(
    width: int, scheme: str, tmp_path: Path, look: Callable[..., Any]
) -> None:
    assert main(["report", "--atlas", "--out", str(tmp_path / "atlas")]) == 0
    sight = look(tmp_path / "atlas" / "index.html", width=width, scheme=scheme)
    across = "[...document.querySelectorAll('.map')].map((m) => [m.offsetWidth, m.parentElement.clientWidth])"
    shown = sight.page.evaluate(across)
    assert len(shown) == 3
    assert all(map_width <= room for map_width, room in shown), "nothing needs to be scrolled"
    assert min(map_width for map_width, _ in shown) > 0.8 * width
    assert sight.complaints == []


@pytest.mark.parametrize("width", [390, 1400])
def test_no_two_cures_have_the_same_label_in_a_chart(width: int, tmp_path: Path, look: Callable[..., Any]) -> None:
    assert main(["report", "--atlas", "--out", str(tmp_path / "atlas")]) == 0
    sight = look(tmp_path / "atlas" / "atlas-lacking-20.html", width=width)
    assert drawn(sight) == 3
    turned = "[...document.querySelectorAll('.canvas')[0].querySelectorAll('.tick[transform]')]"
    shown = sight.page.evaluate(f"{turned}.map((tick) => tick.firstChild.textContent)")
    assert len(shown) > 8
    assert len({*shown}) == len(shown)
    assert width < 1400 or not [label for label in shown if "…" in label], "there is room for whole labels"
    assert sight.page.evaluate(f"{turned}.every((tick) => tick.getBoundingClientRect().left >= 0)")


def test_on_a_phone_cards_are_alike_flags_whole_and_no_section_is_cut(
    measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    page = look(measured_page[1], width=390).page
    widths = page.evaluate("[...document.querySelectorAll('.facts div')].map((d) => Math.round(d.offsetWidth))")
    assert len(widths) == 5
    assert max(widths) - min(widths) <= 1
    heights = page.evaluate("[...document.querySelectorAll('#lead-command span')].map((s) => s.offsetHeight)")
    assert max(heights) < 2 * min(heights), "no word of the command is broken"
    assert page.evaluate("document.getElementById('lead-command').textContent").startswith("evenly useful photos --")
    assert page.evaluate("[...document.querySelectorAll('nav a')].every((a) => a.getBoundingClientRect().right <= 390)")
