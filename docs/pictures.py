"""Draw the pictures of README and documentation.

`python docs/pictures.py DEMO/toy.json` draws the figure of the landing page from the numbers that `evenly demo` leaves:
both features, four methods, medians and interquartile ranges over seeds. `python docs/pictures.py PAGE.html` takes the
picture in "Reading the report" from a page that `evenly report` wrote, and numbers its parts. It needs playwright and
chromium.
"""

import json
import shutil
import sys
from pathlib import Path

from evenly.demo.page import alignment_charts
from evenly.report.static import figure, save

STATIC = Path(__file__).parent / "_static"
#: What the numbers 1 to 6 of the picture stand at; docs/reading-the-report.md explains them.
PARTS = (".badge", ".verdict", ".facts", ".next", "#comparison-0 thead", "#comparison figure.plot .canvas")
NUMBER = """([selector, number]) => {
    const place = document.querySelector(selector).getBoundingClientRect()
    const mark = document.createElement("div")
    mark.textContent = number
    mark.style.cssText = `position: absolute; width: 30px; height: 30px; border-radius: 15px; background: #D9480F;
        color: white; font: 18px/30px sans-serif; text-align: center; z-index: 9;
        left: ${place.left + scrollX - 36}px; top: ${place.top + scrollY - 3}px`
    document.body.append(mark)
}"""


def draw(toy: dict, path: Path = STATIC / "cure.svg") -> None:
    """The two features side by side, with the same y axis."""
    easy, hard = alignment_charts(toy)
    save(figure([easy, hard], note=f"{toy['setting']['seeds']} seeds: median and interquartile range"), path)


def photograph(page: Path, path: Path = STATIC / "report.png") -> None:
    """The first screens of a report, up to the end of its first chart, with its parts numbered."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as library:
        browser = library.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        sight = browser.new_page(viewport={"width": 1475, "height": 1000})
        sight.goto(page.resolve().as_uri())
        for number, selector in enumerate(PARTS, 1):
            sight.evaluate(NUMBER, [selector, str(number)])
        end = sight.evaluate("document.querySelector('#comparison figure.plot').getBoundingClientRect().bottom + 16")
        sight.screenshot(path=path, full_page=True, clip={"x": 0, "y": 0, "width": 1475, "height": end})
        browser.close()


if __name__ == "__main__":
    source = Path(sys.argv[1])
    if source.suffix == ".html":
        photograph(source)
    else:
        draw(json.loads(source.read_text(encoding="utf-8")))
