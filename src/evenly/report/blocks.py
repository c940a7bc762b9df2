"""The blocks of a page: prose, plots, tables, maps, pictures by class, listings, drawings and downloads."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evenly.report.chart import Chart
from evenly.report.interactive import plot


@dataclass(frozen=True)
class Prose:
    """Paragraphs, separated by empty lines; text between `backticks` is set as code."""

    text: str
    tone: str = ""  # "warning" sets it apart


@dataclass(frozen=True)
class Plot:
    """A chart with its sentence, its hover values and its data as CSV."""

    chart: Chart
    height: int = 340
    wide: bool = False

    @cached_property
    def drawn(self) -> str:
        """The chart as JSON, made once; a chart that cannot be drawn is an error here, not in a browser."""
        return json.dumps(plot(self.chart), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class Table:
    """Rows under named columns; a row is a list of cells or a mapping by column."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any] | Mapping[str, Any]]
    caption: str = ""
    whole: bool = False  # shown in full, however long
    filters: Sequence[str] = ()  # columns that rows can be filtered by; every column of such a table can be sorted


@dataclass(frozen=True)
class Picture:
    """One example: a picture (a data URI) or its text, its caption, and the details shown when enlarged."""

    caption: str
    alt: str
    source: str = ""
    text: str = ""
    suspect: bool = False
    details: Mapping[str, str] = field(default_factory=dict)

    @property
    def detail_lines(self) -> str:
        """The details as one text: a line each, term and description separated by a tab.

        >>> Picture("x.png", "a cat", details={"file": "a\\nb.png"}).detail_lines
        'file\\ta b.png'
        """
        flat = str.maketrans("\t\r\n", "   ")  # a file's name may hold them
        return "\n".join(f"{term.translate(flat)}\t{words.translate(flat)}" for term, words in self.details.items())


@dataclass(frozen=True)
class Shelf:
    """The examples of one class, in named rows such as easiest and hardest."""

    name: str
    rows: Mapping[str, Sequence[Picture]]
    note: str = ""


@dataclass(frozen=True)
class Gallery:
    """Examples by class, with a filter."""

    shelves: Sequence[Shelf]
    caption: str = ""


@dataclass(frozen=True)
class Listing:
    """Verbatim text, such as a recipe."""

    title: str
    text: str
    open: bool = False


@dataclass(frozen=True)
class Drawing:
    """A finished picture, such as an SVG as a data URI, with its description."""

    source: str
    alt: str
    caption: str = ""


@dataclass(frozen=True)
class Link:
    """A cell with a link; `image`, a data URI, is a thumbnail above its text."""

    text: str
    address: str
    image: str = ""


@dataclass(frozen=True)
class Badge:
    """A verdict in a word, with its mark and colour."""

    text: str


@dataclass(frozen=True)
class Square:
    """One square of a map: its text, its full text, its link, and its verdict.

    `tone` is `good`, `bad` or nothing; a `sure` one is filled.
    """

    text: str
    title: str
    address: str
    tone: str = ""
    sure: bool = False


@dataclass(frozen=True)
class Map:
    """Squares in named rows, under rows of headings that span several columns."""

    corner: str
    heads: Sequence[Sequence[tuple[str, int]]]
    rows: Mapping[str, Sequence[Square | str]]
    caption: str = ""


@dataclass(frozen=True)
class Download:
    """A link that saves a text, such as a CSV file, under a name."""

    title: str
    name: str
    text: str


@dataclass(frozen=True)
class Switch:
    """Groups of blocks, one of which is shown at a time, such as one for each seed."""

    label: str
    choices: Mapping[str, Sequence["Block"]]


Block = Prose | Plot | Table | Map | Gallery | Listing | Drawing | Download | Switch


@dataclass(frozen=True)
class Section:
    """A part of the page; `id` is its anchor."""

    id: str
    title: str
    blocks: Sequence[Block]


@dataclass(frozen=True)
class Lead:
    """The top of a page: a badge, the finding in a sentence, a few large numbers, and what to do next."""

    finding: str
    badge: str = ""
    facts: Sequence[tuple[str, str]] = ()
    advice: str = ""  # a sentence before the next command
    next_command: str = ""
    command: str = ""  # the command that repeats what is shown


@dataclass(frozen=True)
class Chapter:
    """One experiment of a page with several: its lead and its sections."""

    id: str
    title: str
    lead: Lead
    sections: Sequence[Section]


def iterate_blocks(sections: Sequence[Section]) -> Iterator[tuple[str, Block]]:
    """Every block of the sections with its place, also those inside of switches.

    >>> [place for place, _ in iterate_blocks([Section("a", "A", [Switch("seed", {"0": [Prose("x")]})])])]
    ['a-0', 'a-0-0-0']
    """
    waiting = [(f"{section.id}-{number}", block) for section in sections for number, block in enumerate(section.blocks)]
    for place, block in waiting:
        yield place, block
        if isinstance(block, Switch):
            for choice, inner in enumerate(block.choices.values()):
                waiting += [(f"{place}-{choice}-{number}", each) for number, each in enumerate(inner)]
