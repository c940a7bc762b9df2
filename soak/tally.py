"""What was done and what broke, as a table: for the terminal, and for docs/reliability.md."""

import re
from dataclasses import dataclass, field, fields
from pathlib import Path

PLACE = re.compile(r"(<!-- soak -->\n).*?(<!-- end of soak -->)", re.DOTALL)


@dataclass
class Row:
    """A line of the table; `kills` and `inputs` are what was tried, the rest is what went wrong."""

    what: str
    kills: int = 0
    inputs: int = 0
    differences: int = 0
    tracebacks: int = 0
    hangs: int = 0
    stray: int = 0
    other: int = 0  # memory, an exit code that is none, a file outside, a live view that does not answer

    @property
    def wrong(self) -> int:
        """How much went wrong."""
        return self.differences + self.tracebacks + self.hangs + self.stray + self.other


_TITLES = {"what": "", "stray": "stray files", "other": "other faults"}


@dataclass
class Tally:
    """All rows, in the order in which they came, and a sentence for every kind of fault."""

    rows: dict[str, Row] = field(default_factory=dict)
    faults: dict[str, list[str]] = field(default_factory=dict)

    def row(self, what: str) -> Row:
        """The row of that name, made when it is first asked for."""
        return self.rows.setdefault(what, Row(what))

    def fault(self, sentence: str, example: str) -> None:
        """Count a fault by what it says, and remember an example."""
        self.faults.setdefault(sentence, []).append(example)

    @property
    def total(self) -> Row:
        """The sum of all rows."""
        whole = Row("all")
        for row in self.rows.values():
            for each in fields(Row)[1:]:
                setattr(whole, each.name, getattr(whole, each.name) + getattr(row, each.name))
        return whole

    def markdown(self) -> str:
        """The table in Markdown, which is readable in a terminal too."""
        names = [each.name for each in fields(Row)]
        lines = [[_TITLES.get(name, name) for name in names]]
        for row in (*self.rows.values(), self.total):
            cells = [getattr(row, name) for name in names[1:]]
            lines.append([row.what, *(f"{cell:,}" for cell in cells)])
        widths = [max(len(line[i]) for line in lines) for i in range(len(names))]
        rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
        shown = [
            [line[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True))]
            for line in (lines[0], *lines[1:])
        ]
        return "\n".join("| " + " | ".join(line) + " |" for line in (shown[0], rule, *shown[1:]))


def write_docs(path: Path, text: str) -> None:
    """Put `text` between the marks in `path`."""
    old = path.read_text()
    new, count = PLACE.subn(lambda found: f"{found[1]}{text}\n{found[2]}", old)
    if count != 1:
        raise SystemExit(f"{path} has {count} places between <!-- soak --> and <!-- end of soak -->: expected one.")
    path.write_text(new)
