"""One page that needs nothing else: sections of prose, plots, tables and pictures in a single HTML file.

The page makes no network request, works in light and dark, on a phone, on paper and by keyboard; names in it are
escaped, and a policy inside it forbids anything else.
"""

import csv
import io
import json
import re
from base64 import b64encode
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.errors import SetupError, UsageError
from evenly.report.blocks import Block as Block
from evenly.report.blocks import Drawing as Drawing
from evenly.report.blocks import Gallery as Gallery
from evenly.report.blocks import Link as Link
from evenly.report.blocks import Listing as Listing
from evenly.report.blocks import Picture as Picture
from evenly.report.blocks import Plot as Plot
from evenly.report.blocks import Prose as Prose
from evenly.report.blocks import Section as Section
from evenly.report.blocks import Shelf as Shelf
from evenly.report.blocks import Table as Table
from evenly.report.chart import Chart
from evenly.report.interactive import table, themed

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
_CHARTING = "<script>/* charting */</script>"  # where the template leaves room for it


def render(
    title: str,
    verdict: str,
    sections: Sequence[Section],
    command: str | None = None,
    *,
    facts: Sequence[tuple[str, str]] = (),
    live: str = "",
    up: Link | None = None,
    charted: bool = True,
) -> str:
    """The whole page as text: what was found in a line, the `command` that repeats it, and the sections.

    `facts` are pairs of a few words and a number, shown large under the verdict; `up` leads to the page above this
    one. With `live`, an address on the page's own server, the page asks there for what has changed (see `content`).
    Unless `charted`, five megabytes of charting are left to `pieces`, which writes them without reading them as text.

    >>> page = render("Digits", "Nothing <b>was</b> found.", [Section("curves", "Curves", [Prose("None yet.")])])
    >>> "&lt;b&gt;was" in page, "http://" in page.split("<main")[1].split("</main>")[0]
    (True, False)
    """
    _check(sections)
    plots = _plots(sections)
    themes = {name: themed(name) for name in ("light", "dark")}
    text = (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            verdict=verdict,
            facts=list(facts),
            command=command,
            sections=sections,
            live=live,
            up=up,
            css=_file("page.css"),
            script=_file("page.js"),
            charting=bool(plots),
            data=_script(f'{{"plots":{_object(plots)},"themes":{json.dumps(themes)},"live":{json.dumps(live)}}}'),
        )
    )
    return b"".join(pieces(text)).decode() if charted and plots else text


def pieces(text: str) -> list[bytes]:
    """What a file of a page holds that is not `charted`: its text, with the charting in its place.

    >>> [len(piece) > 10**6 for piece in pieces(f"<p>{_CHARTING}<p>")], pieces("none")
    ([False, True, False], [b'none'])
    """
    # What a user wrote cannot look like the place: its signs are escaped.
    before, place, after = text.partition(_CHARTING)
    if not place:
        return [text.encode()]
    return [f"{before}<script>".encode(), _plotly(), f"</script>{after}".encode()]


def content(verdict: str, sections: Sequence[Section], *, facts: Sequence[tuple[str, str]] = ()) -> dict[str, Any]:
    """What a live page asks for: the verdict, every block that is text as HTML, and every plot, by their places.

    Galleries stay as they were when the page was opened: their pictures would be most of every answer.
    """
    _check(sections)
    template: Any = _environment().get_template("blocks.html").module  # its macros are attributes
    blocks = {
        f"{section.id}-{number}": str(template.block(block, f"{section.id}-{number}"))
        for section in sections
        for number, block in enumerate(section.blocks)
        if not isinstance(block, Plot | Gallery)
    }
    headline = str(template.headline(verdict, list(facts)))
    return {
        "headline": headline,
        "sections": [section.id for section in sections],
        "blocks": blocks,
        "plots": {place: json.loads(drawn) for place, drawn in _plots(sections).items()},
    }


def csv_text(chart: Chart) -> str:
    """The numbers of a chart as CSV.

    >>> from evenly.report.chart import Line
    >>> print(csv_text(Chart("Error", "epoch", "%", [Line("SGD", [1], [9])], "It falls.")), end="")
    series,x,y
    SGD,1,9
    """
    columns, rows = table(chart)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns or ["series", "x", "y"])
    writer.writerows(rows)
    return text.getvalue()


def _check(sections: Sequence[Section]) -> None:
    names = [section.id for section in sections]
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
            raise UsageError(f"{name!r} cannot be the id of a section: use small letters, digits and hyphens.")
        if names.count(name) > 1:
            raise UsageError(f"two sections have the id {name!r}: give each its own.")


def _plots(sections: Sequence[Section]) -> dict[str, str]:
    """What plotly draws, as JSON, by its place."""
    return {
        f"{section.id}-{number}": block.drawn
        for section in sections
        for number, block in enumerate(section.blocks)
        if isinstance(block, Plot)
    }


def _object(members: Mapping[str, str]) -> str:
    """A JSON object of members that are JSON already."""
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members.items()) + "}"


def _script(text: str) -> str:
    """JSON that may stand inside a script element: nothing in it can end the element or begin another."""
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {"marked": _marked, "kind": lambda block: type(block).__name__, "cells": _cells, "shown": _shown}
    made.filters |= {"csv_link": _csv_link}
    made.filters |= {"file_name": lambda text: re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "data"}
    made.filters |= {"numeric": lambda value: isinstance(value, int | float) or bool(_NUMBER.match(str(value)))}
    return made


def _csv_link(chart: Chart) -> Any:
    from markupsafe import Markup

    # Nothing in base64 needs escaping.
    return Markup("data:text/csv;charset=utf-8;base64," + b64encode(csv_text(chart).encode()).decode())


_NUMBER = re.compile(r"^[+\-−]?[\d.,]+")


def _marked(text: str) -> Any:
    """Escaped text in which `code` is code."""
    from markupsafe import Markup, escape

    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:  # an odd backtick is only a backtick
        parts = [escape(text)]
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(parts))


def _cells(row: Any, columns: Sequence[str]) -> list[Any]:
    return [row.get(name, "") for name in columns] if isinstance(row, Mapping) else list(row)


def _shown(value: Any) -> Any:
    if value is None:
        return "—"
    if isinstance(value, Link):
        from markupsafe import Markup

        return Markup('<a href="{}">{}</a>').format(value.address, value.text)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@cache
def _file(name: str) -> Any:
    from markupsafe import Markup

    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))


@cache
def _plotly() -> bytes:
    """The charting library's own script, as its package brings it."""
    from importlib.util import find_spec

    found = find_spec("plotly")  # its place is enough: importing it would take longer than all else here
    if found is None or found.origin is None:
        raise SetupError("the page needs plotly for its charts. Install it: pip install plotly")
    path = Path(found.origin).parent / "package_data" / "plotly.min.js"
    if not path.is_file():
        raise SetupError(f"plotly's package has no {path.name}. Install it again: pip install --force-reinstall plotly")
    return path.read_bytes().replace(b"</script", b"<\\/script")
