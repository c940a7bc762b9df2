"""What a page is built of: prose, plots, tables, pictures by class, listings and drawings."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from evenly.report.chart import Chart
from evenly.report.interactive import plot


@dataclass(frozen=True)
class Prose:
    """Paragraphs, parted by empty lines; what stands between `backticks` is set as code."""

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
        """What plotly draws, as JSON, made once; a chart that cannot be drawn is an error here, not in a browser."""
        return json.dumps(plot(self.chart), ensure_ascii=False, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class Table:
    """Rows under named columns; a row is a list of cells or a mapping by column."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Any] | Mapping[str, Any]]
    caption: str = ""
    whole: bool = False  # shown in full, however long


@dataclass(frozen=True)
class Picture:
    """One example: a picture (a data URI) or its text, and what is said of it."""

    caption: str
    alt: str
    source: str = ""
    text: str = ""
    suspect: bool = False


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
    """A text as it stands, such as a recipe."""

    title: str
    text: str
    open: bool = False


@dataclass(frozen=True)
class Drawing:
    """A finished picture, such as an SVG as a data URI, with what it shows."""

    source: str
    alt: str
    caption: str = ""


@dataclass(frozen=True)
class Link:
    """A cell that leads elsewhere, within the same site."""

    text: str
    address: str


Block = Prose | Plot | Table | Gallery | Listing | Drawing


@dataclass(frozen=True)
class Section:
    """A part of the page; `id` is what a link to it ends with."""

    id: str
    title: str
    blocks: Sequence[Block]
