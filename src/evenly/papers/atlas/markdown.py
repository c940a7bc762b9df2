"""The map of one kind of error as a table for the documentation."""

from collections.abc import Sequence

from evenly.papers.atlas.cells import Cell, Row, cells
from evenly.papers.atlas.cures import CURES


def markdown(rows: Sequence[Row], error: str) -> str:
    """Cures by tasks, in points minus plain training: **certain**, an interval that excludes zero, (may be chance)."""
    by_cure = {(cell.task, cell.cure): cell for cell in cells(rows) if cell.error == error}
    tasks = [row["key"] for row in rows]
    lines = [["cure", *(key.partition("/")[2] for key in tasks)], ["---"] * (len(tasks) + 1)]
    for cure in CURES:
        if cure != "plain" and tasks:
            lines.append([CURES[cure].label, *(_format_cell(by_cure[key, cure]) for key in tasks)])
    plain = [next(cell.plain for (task, _), cell in by_cure.items() if task == key) for key in tasks]
    lines.append(["plain training, %", *(f"{value:.1f}" for value in plain)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _format_cell(cell: Cell) -> str:
    text = f"{round(cell.difference.mean, 1) + 0.0:+.1f}".replace("-", "−")
    return f"**{text}**" if cell.certain else text if cell.difference.excludes_zero else f"({text})"
