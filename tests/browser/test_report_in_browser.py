"""The page as a person meets it: it opens, obeys, fits, and asks the network for nothing."""

import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from evenly.recipe import Recipe, digest, to_mapping
from evenly.records import Run
from evenly.report.live import Server
from evenly.report.run_page import run_page

Made = dict[tuple[str, int], Run]
EVIL = "<script>window.harmed = true</script>"


def drawn(sight: Any) -> int:
    """How many plots are drawn once all of the page was in view."""
    number = sight.page.locator(".canvas").count()
    for index in range(number):
        canvas = sight.page.locator(".canvas").nth(index)
        canvas.scroll_into_view_if_needed()
        canvas.locator(".main-svg").first.wait_for(timeout=10_000)
    return number


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
    expected = [section.id for section in run_page([made["useful", 0].path]).sections]
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
    shelves = sight.page.evaluate("document.querySelector('.gallery').offsetHeight")
    assert abs(sight.page.evaluate("document.getElementById('run').offsetTop") - before) <= shelves
    heights = sight.page.evaluate(
        "[...document.querySelectorAll('.canvas')].map((c) => [c.offsetHeight, c.style.height])"
    )
    assert all(f"{shown}px" == given for shown, given in heights)


def test_the_class_filter_and_the_suspects(measured_page: tuple[Made, Path], look: Callable[..., Any]) -> None:
    page = look(measured_page[1]).page
    assert page.locator(".count").inner_text() == "8 examples"
    page.locator(".class-filter").select_option(label=EVIL)
    assert page.locator(".shelf:visible").count() == 1
    assert page.locator(".shelf:visible h3").inner_text() == EVIL
    assert page.locator(".count").inner_text() == "4 examples"
    page.get_by_label("only those whose label to check").check()
    assert page.locator(".count").inner_text() == "1 example"
    page.locator(".class-filter").select_option("")
    assert page.locator(".shelf:visible").count() == 2


def test_the_theme_button_repaints_page_and_plots_and_is_remembered(
    measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    sight = look(measured_page[1])
    page = sight.page
    drawn(sight)

    def inks() -> tuple[str, str]:
        return page.evaluate(
            "[getComputedStyle(document.body).color, document.querySelector('.canvas').layout.font.color]"
        )

    light = inks()
    page.locator("#theme").click()
    dark = inks()
    assert light[0] != dark[0]
    assert (light[1], dark[1]) == ("#24292F", "#E6E8EB")
    page.reload()
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_keyboard_reaches_everything(measured_page: tuple[Made, Path], look: Callable[..., Any]) -> None:
    page = look(measured_page[1]).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.className"))
    assert {"theme", "copy", "class-filter", "suspect-filter", "csv"} <= reached
    assert page.evaluate("[...document.images].every((i) => i.alt)")
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
    assert lines[2].startswith("error,useful,9.0")
    canvas = page.locator("#curves .canvas").first
    canvas.scroll_into_view_if_needed()
    canvas.locator(".main-svg").first.wait_for()
    point = canvas.locator(".scatterlayer .point").first.bounding_box()
    page.mouse.move(point["x"] + 2, point["y"] + 2)
    canvas.locator(".hoverlayer text").first.wait_for()


def test_a_printed_page_draws_every_plot(measured_page: tuple[Made, Path], look: Callable[..., Any]) -> None:
    sight = look(measured_page[1], scheme="dark")
    sight.page.pdf()  # prints, which the page hears of
    missing = sight.page.evaluate(
        "[...document.querySelectorAll('.canvas')].filter((c) => !c.querySelector('.main-svg'))"
    )
    assert missing == []
    assert sight.complaints == []


def test_on_paper_everything_is_light_open_and_as_wide_as_the_page(
    measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    page = look(measured_page[1], scheme="dark").page
    widths = "[...document.querySelectorAll('.canvas .main-svg')].map((s) => s.getBoundingClientRect().width)"
    page.locator(".canvas .main-svg").first.wait_for()
    on_screen = page.evaluate(widths)[0]
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    on_paper = page.evaluate(widths)
    assert len(on_paper) >= 15
    assert max(on_paper) <= 640 < on_screen
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(0, 0, 0)"
    assert page.evaluate("document.querySelector('.canvas').layout.font.color") == "#24292F"
    assert page.evaluate("[...document.querySelectorAll('details')].every((d) => d.open)")
    page.emulate_media(media="screen")
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.evaluate(widths)[0] == on_screen
    assert not page.evaluate("[...document.querySelectorAll('details')].some((d) => d.open)")
    assert page.evaluate("document.querySelector('.canvas').layout.font.color") == "#E6E8EB"


def test_paper_of_any_width_cuts_off_no_part_of_a_plot_or_a_listing(
    measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    page = look(measured_page[1], width=1000).page  # two columns on a screen of that width
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    cut = "(all) => all.filter((e) => e.scrollWidth > e.clientWidth + 1).map((e) => e.id || e.className)"
    assert page.locator(".canvas").evaluate_all(cut) == []
    page.set_viewport_size({"width": 500, "height": 900})
    page.evaluate("document.querySelector('.listing pre').textContent = 'evenly train '.repeat(40)")
    assert page.locator(".listing pre").evaluate_all(cut) == []


def test_no_number_is_wider_than_its_card(measured_page: tuple[Made, Path], look: Callable[..., Any]) -> None:
    for width in (390, 794, 1024, 1440):
        page = look(measured_page[1], width=width).page
        over = "[...document.querySelectorAll('.facts div')].filter((d) => d.scrollWidth > d.clientWidth).length"
        assert page.evaluate(over) == 0, width
        # As two seeds that disagree bring it about.
        page.evaluate("document.querySelector('.facts dd').textContent = '−21.88 ± 277.95'")
        assert page.evaluate(over) == 0, width


@pytest.mark.parametrize(
    "how",
    [
        {"names": [f"class {i}" for i in range(1000)], "errors": {"original": (0.1,), "useful": (0.2,)}},
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
    with Server(lambda: run_page([run.path]), port=0) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            sight = look(server.address)
            assert "is running after epoch 1 of 3" in sight.page.locator(".verdict").inner_text()
            drawn(sight)
            run.log(epoch=2, **{"test.error": 0.4})
            awaited(sight, "document.querySelector('.canvas').data.at(-1).x.length === 2")
            assert "after epoch 2 of 3" in sight.page.locator(".verdict").inner_text()
            run.finish({"test.error": 0.3})
            awaited(sight, "document.querySelector('.live').textContent === 'done'")
            assert sight.complaints == []
            assert set(sight.asked_for) == {f"{server.address}news.json"}
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(("width", "bars"), [(390, 0), (1440, 1)])
def test_the_toolbar_comes_with_the_pointer_has_no_ground_and_not_on_a_phone(
    width: int, bars: int, measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    sight = look(measured_page[1], width=width)
    canvas = sight.page.locator(".canvas").first
    canvas.scroll_into_view_if_needed()
    canvas.locator(".main-svg").first.wait_for()
    assert canvas.locator(".modebar").count() == bars
    if bars:
        opacity = "getComputedStyle(document.querySelector('.canvas .modebar-group')).opacity"
        sight.page.mouse.move(5, 5)
        awaited(sight, f"{opacity} === '0'")
        canvas.hover()
        awaited(sight, f"{opacity} === '1'")
        grounds = "[...document.querySelectorAll('.modebar-group')].map((g) => getComputedStyle(g).backgroundColor)"
        assert set(sight.page.evaluate(grounds)) == {"rgba(0, 0, 0, 0)"}


def test_on_a_phone_cards_are_alike_flags_whole_and_no_section_is_cut(
    measured_page: tuple[Made, Path], look: Callable[..., Any]
) -> None:
    page = look(measured_page[1], width=390).page
    widths = page.evaluate("[...document.querySelectorAll('.facts div')].map((d) => Math.round(d.offsetWidth))")
    assert len(widths) == 5
    assert max(widths) - min(widths) <= 1
    heights = page.evaluate("[...document.querySelectorAll('#command span')].map((s) => s.offsetHeight)")
    assert max(heights) < 2 * min(heights), "no word of the command is broken"
    assert page.evaluate("document.getElementById('command').textContent").startswith("evenly useful photos --")
    assert page.evaluate("[...document.querySelectorAll('nav a')].every((a) => a.getBoundingClientRect().right <= 390)")
