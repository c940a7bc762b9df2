"""Maps of the atlas as tables for the documentation: by kind of error, by cure, and for other networks and data."""

from collections.abc import Sequence

from evenly.papers.atlas.cells import Cell, Row, cells
from evenly.papers.atlas.cures import CURES
from evenly.papers.atlas.task_list import TASKS
from evenly.papers.atlas.tasks import ERRORS, TITLES

#: The kinds of minority with the task that stands for each, its words, and the error that matters most there.
EXAMPLES = {
    "lacking": ("lacking-20", "lacking, 20%", "balanced"),
    "conflicting": ("conflicting-5", "contradicted, 5%", "worst"),
    "noisy": ("noisy-10", "wrong labels, 10%", "test"),
}
#: What stands above the table of each kind of minority.
HEADINGS = {
    "lacking": "**Examples that lack the easy digit**, by their share of the training set:",
    "conflicting": "**Examples whose easy digit indicates the other class**, by their share:",
    "noisy": "**Examples with a wrong label**, by their share, while a fifth lack the easy digit:",
}


def markdown(rows: Sequence[Row], error: str) -> str:
    """Cures by tasks, in points minus plain training: **certain**, an interval that excludes zero, (may be chance).

    A table for each kind of minority, and one for other networks and data: each fits the width of a page.
    """
    by_cure = {(cell.task, cell.cure): cell for cell in cells(rows) if cell.error == error}
    blocks: list[str] = []
    for heading, tasks in _groups(rows).items():
        lines = [["cure", *tasks.values()]]
        for cure in CURES:
            if cure != "plain":
                lines.append([CURES[cure].label, *(_format_cell(by_cure[key, cure]) for key in tasks)])
        plain = [next(cell.plain for (task, _), cell in by_cure.items() if task == key) for key in tasks]
        lines.append(["plain training, %", *(f"{value:.1f}" for value in plain)])
        blocks += [heading, _table(lines)]
    return "\n\n".join(blocks)


def _groups(rows: Sequence[Row]) -> dict[str, dict[str, str]]:
    """The tasks of each table by its heading, and the title of each one's column."""
    groups: dict[str, dict[str, str]] = {}
    for row in rows:
        task = TASKS[row["key"]]
        if task.prefix:
            heading, title = "**Other networks and data:**", row["key"].partition("/")[2]
        else:
            heading = HEADINGS[task.minority]
            title = f"{100 * task.share:g}%{', few' if task.suffix else ''}"
        groups.setdefault(heading, {})[row["key"]] = title
    return groups


def evidence(rows: Sequence[Row], cures: Sequence[str]) -> str:
    """A few cures on one task of each minority, and on how many shares and sizes their intervals exclude zero."""
    all_cells = cells(rows)
    lines = [["minority", "cure", *(TITLES[error].lower() for error in ERRORS)]]
    for minority, (example, words, _) in EXAMPLES.items():
        for number, cure in enumerate(cures):
            mine = [c for c in all_cells if c.cure == cure and c.task.startswith(f"atlas/{minority}-")]
            row = [words if number == 0 else "", CURES[cure].label]
            for error in ERRORS:
                own = [cell for cell in mine if cell.error == error]
                [shown] = [cell for cell in own if cell.task == f"atlas/{example}"]
                down = sum(cell.difference.high < 0 for cell in own)
                up = sum(cell.difference.low > 0 for cell in own)
                row.append(f"{_format_cell(shown, width=True)}; {down}↓ {up}↑ of {len(own)}")
            lines.append(row)
    return _table(lines)


def elsewhere(rows: Sequence[Row]) -> str:
    """All cures on other networks and data, in the error that matters most for each minority."""
    columns = [
        (row["key"], error)
        for row in rows
        for minority, (_, _, error) in EXAMPLES.items()
        if f"-{minority}-" in row["key"]
    ]
    by_place = {(cell.task, cell.cure, cell.error): cell for cell in cells(rows)}
    lines = [["cure", *(f"{key.partition('/')[2]}, {TITLES[error].lower()}" for key, error in columns)]]
    for cure in CURES:
        if cure != "plain":
            lines.append(
                [CURES[cure].label, *(_format_cell(by_place[key, cure, error], width=True) for key, error in columns)]
            )
    plain = [by_place[key, "useful", error].plain for key, error in columns]
    return _table([*lines, ["plain training, %", *(f"{value:.1f}" for value in plain)]])


def _format_cell(cell: Cell, *, width: bool = False) -> str:
    text = f"{round(cell.difference.mean, 1) + 0.0:+.1f}".replace("-", "−")
    text += f" ± {cell.difference.half_width:.1f}" if width else ""
    return f"**{text}**" if cell.certain else text if cell.difference.excludes_zero else f"({text})"


def _table(lines: Sequence[Sequence[str]]) -> str:
    first, *others = lines
    return "\n".join(f"| {' | '.join(line)} |" for line in (first, ["---"] * len(first), *others))
