"""Output of verbs: results on stdout, as a table or as JSON; everything else on stderr."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from evenly.progress import printable, wrap_text


def say(text: str) -> None:
    """Print a message on stderr, wrapped to the width of the terminal."""
    print(wrap_text(text), file=sys.stderr)


def print_json(value: Any) -> None:
    """Print a result as JSON on stdout."""
    print(json.dumps(_finite(value), indent=2, ensure_ascii=False, allow_nan=False))


def _finite(value: Any) -> Any:
    """JSON has neither NaN nor infinity: numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {name: _finite(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_table(
    rows: Sequence[Mapping[str, Any]], columns: Sequence[str], *, title: str | None = None, gap: int = 2
) -> None:
    """Print a result as a table on stdout, as wide as the terminal, or plain without one; `gap` separates columns."""
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    table = Table(title=title, box=None, pad_edge=False, header_style="bold", title_justify="left",
                  padding=(0, gap - 1, 0, 1))  # fmt: skip
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(escape(printable(str(row.get(column, "")))) for column in columns))
    # Without a terminal there is no width to respect: one row, one line, for grep.
    console = Console(width=None if sys.stdout.isatty() else 10_000, soft_wrap=not sys.stdout.isatty())
    # Printed by Python, since rich ends the process with an error if the reader has gone (`evenly runs | head`).
    with console.capture() as rendered:
        console.print(table)
    print(rendered.get(), end="")
