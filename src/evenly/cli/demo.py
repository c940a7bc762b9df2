"""`evenly demo`: the embedded data on one page, with no download."""

import html
from pathlib import Path

from evenly import atomic
from evenly.cli.data import draw_sheet
from evenly.cli.output import say
from evenly.cli.parser import Parser
from evenly.progress import track

EMBEDDED = ("digit-dominoes", "spirals", "patches", "parity", "digits")


def fill(parser: Parser) -> None:
    """The arguments of `evenly demo`."""
    parser.calls(demo, examples="evenly demo\nevenly demo --out demo --open")
    parser.add_argument("--out", type=Path, default=Path("demo"), metavar="DIR", help="a folder (default: %(default)s)")
    parser.add_argument("--open", action="store_true", help="open the page in a browser")


def demo(*, out: Path, open: bool) -> None:
    """Draw every embedded data set and write the page that shows them."""
    from evenly.data import load

    sections = []
    for name in track(EMBEDDED, "drawing"):
        part = load(name).train
        draw_sheet(part, out / f"{name}.png", per_class=10, max_classes=10)
        sections.append(
            f"<h2>{html.escape(name)}</h2>\n<p>{html.escape(repr(part).strip('<>'))}</p>\n"
            f'<img src="{name}.png" alt="Examples of {html.escape(name)}, class by class">'
        )
    page = out / "index.html"
    atomic.write_text(page, _PAGE.replace("SECTIONS", "\n".join(sections)))
    print(page)
    say(f"Open {page.resolve().as_uri()}")
    if open:
        import webbrowser

        webbrowser.open(page.resolve().as_uri())


_PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>evenly: embedded data</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem }
img { max-width: 100%; background: white }
</style>
<h1>Data with an easy and a hard feature</h1>
<p>Each of these ships with evenly or is drawn on the spot. Networks learn the easy feature first and lean on it.</p>
SECTIONS
</html>
"""
