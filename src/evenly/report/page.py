"""A self-contained page: a lead, sections and chapters in a single HTML file.

The page makes no network request, works in light and dark, on a phone, on paper and by keyboard; names are escaped,
and a content policy in the page forbids anything else. The callers decide what stands on it and where its numbers come
from: `report.experiments.page` for runs and comparisons, `report.claims_site` for the ledger, `demo.page` for the demo.
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

from evenly.errors import UsageError
from evenly.report.blocks import Badge, Chapter, Gallery, Lead, Link, Plot, Section, Switch, iterate_blocks
from evenly.report.chart import Chart
from evenly.report.interactive import table

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


def render(
    title: str,
    lead: Lead | str,
    sections: Sequence[Section],
    command: str = "",
    *,
    chapters: Sequence[Chapter] = (),
    live: str = "",
    up: Link | None = None,
    site: bool = False,
) -> str:
    """The whole page as text: the lead, or a finding and the `command` that repeats it, the sections and the chapters.

    `up` links to the page above this one; a page of a `site` may show pictures in its folder. With `live`, an address
    on the page's own server, the page requests updates there (see `content`).

    >>> page = render("Digits", "Nothing <b>was</b> found.", [Section("curves", "Curves", [])], "evenly demo")
    >>> "&lt;b&gt;was" in page, "http://" in page.split("<main")[1].split("</main>")[0]
    (True, False)
    """
    lead = Lead(lead, command=command) if isinstance(lead, str) else lead
    every = _check_sections(sections, chapters)
    plots = _plots(every)
    return (
        _environment()
        .get_template("page.html")
        .render(
            title=title,
            lead=lead,
            sections=sections,
            chapters=chapters,
            live=live,
            up=up,
            site=site,
            css=_file("page.css"),
            charting=_file("chart.js") if plots else "",
            script=_file("page.js"),
            data=_script(f'{{"plots":{_object(plots)},"live":{json.dumps(live)}}}'),
        )
    )


def content(lead: Lead | str, sections: Sequence[Section], *, chapters: Sequence[Chapter] = ()) -> dict[str, Any]:
    """The update of a live page: the leads, every text block as HTML, and every plot, by their places.

    Galleries are not updated: their pictures would make up most of every answer.
    """
    lead = Lead(lead) if isinstance(lead, str) else lead
    every = _check_sections(sections, chapters)
    template: Any = _environment().get_template("blocks.html").module  # its macros are attributes
    return {
        "leads": {"lead": str(template.lead(lead, "lead"))}
        | {f"{chapter.id}-lead": str(template.lead(chapter.lead, f"{chapter.id}-lead")) for chapter in chapters},
        "sections": [section.id for section in every],
        "blocks": {
            place: str(template.block(block, place))
            for place, block in iterate_blocks(every)
            if not isinstance(block, Plot | Gallery | Switch)
        },
        "plots": {place: json.loads(drawn) for place, drawn in _plots(every).items()},
        "captions": {
            place: {
                "text": str(_mark_code(block.chart.sentence)),
                "label": _label(block.chart),
                "csv": str(_csv_link(csv_text(block.chart))),
            }
            for place, block in iterate_blocks(every)
            if isinstance(block, Plot)
        },
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


def _check_sections(sections: Sequence[Section], chapters: Sequence[Chapter]) -> list[Section]:
    """The sections of the page and of its chapters, whose IDs must be valid anchors."""
    every = [*sections, *(section for chapter in chapters for section in chapter.sections)]
    names = [*(section.id for section in every), *(chapter.id for chapter in chapters)]
    for name in names:
        if not re.fullmatch(r"[a-z][a-z0-9-]*", name):
            raise UsageError(f"{name!r} cannot be the id of a section: use small letters, digits and hyphens.")
        if names.count(name) > 1:
            raise UsageError(f"two sections have the id {name!r}: give each its own.")
    return every


def _plots(sections: Sequence[Section]) -> dict[str, str]:
    """Every chart as JSON, by its place."""
    return {place: block.drawn for place, block in iterate_blocks(sections) if isinstance(block, Plot)}


def _object(members: Mapping[str, str]) -> str:
    """A JSON object of members that are JSON already."""
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in members.items()) + "}"


def _script(text: str) -> str:
    """JSON that is safe inside a script element: nothing in it can end the element or begin another."""
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "marked": _mark_code,
        "kind": lambda block: type(block).__name__,
        "cells": _cells,
        "shown": _format_cell,
    }
    environment.filters |= {"csv_link": _csv_link, "csv_text": csv_text, "tone": _tone, "label": _label}
    environment.filters |= {"file_name": lambda text: re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "data"}
    environment.filters |= {"numeric": lambda value: bool(_NUMBER.match(str(value))) and " [" not in str(value)}
    return environment


def _label(chart: Chart) -> str:
    """The text of a chart for screen readers."""
    return f"{chart.title}. {chart.sentence} Arrow keys read the values."


def _csv_link(text: str) -> Any:
    from markupsafe import Markup

    # Nothing in base64 needs escaping.
    return Markup("data:text/csv;charset=utf-8;base64," + b64encode(text.encode()).decode())


_NUMBER = re.compile(r"^[+\-−]?[\d.,]+")


def _mark_code(text: str) -> Any:
    """Escaped text with `code` marked up."""
    from markupsafe import Markup, escape

    parts = [escape(part) for part in text.split("`")]
    if len(parts) % 2 == 0:  # an odd backtick is only a backtick
        parts = [escape(text)]
    return Markup("").join(Markup("<code>{}</code>").format(p) if i % 2 else p for i, p in enumerate(parts))


def _tone(text: str) -> str:
    """The CSS class of a badge by its words: good, bad, open, or none.

    >>> _tone("helped"), _tone("✗ contradicted"), _tone("too few seeds"), _tone("· not run")
    ('good', 'bad', 'open', 'none')
    """
    tones = {
        "good": ("helped", "reproduced", "stronger than claimed", "weaker than claimed", "seen in", "holds", "helps"),
        "bad": ("hurt", "harms", "contradicted", "learned nothing", "failed", "does not hold", "not seen"),
        "open": ("no difference", "too few seeds", "may ", "inconclusive", "unclear", "stopped", "stale"),
    }
    words = text.lstrip("✓✗~?· ")
    return next((tone for tone, starts in tones.items() if words.startswith(starts)), "none")


def _cells(row: Any, columns: Sequence[str]) -> list[Any]:
    return [row.get(name, "") for name in columns] if isinstance(row, Mapping) else list(row)


def _format_cell(value: Any) -> Any:
    if value is None:
        return "—"
    if isinstance(value, Link):
        from markupsafe import Markup

        image = Markup('<img class="thumb" src="{}" alt="" loading="lazy">').format(value.image) if value.image else ""
        whole = "" if " " in value.text else Markup(' class="number"')  # a name is not broken at its hyphens
        return Markup('<a href="{}"{}>{}{}</a>').format(value.address, whole, image, value.text)
    if isinstance(value, Badge):
        from markupsafe import Markup

        return Markup('<span class="badge {}">{}</span>').format(_tone(value.text), value.text)
    if isinstance(value, str) and value.startswith("evenly "):  # a command: an option is not broken at its hyphens
        from markupsafe import Markup

        return Markup('<code class="number">{}</code>').format(value)
    if isinstance(value, str) and _NUMBER.match(value) and " [" in value:
        from markupsafe import Markup

        mean, _, interval = value.partition(" [")  # a line may end between them, never inside of one
        return Markup('<span class="number">{}</span> <span class="number">[{}</span>').format(mean, interval)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


@cache
def _file(name: str) -> Any:
    from markupsafe import Markup

    return Markup((TEMPLATES / name).read_text(encoding="utf-8"))
