"""The atlas as a site: a map of every cure on every task for each kind of error, and a page for each task."""

import html
import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean

from evenly import atomic
from evenly.errors import UsageError
from evenly.papers.atlas.advice import METHODS, accuracy_in_words, rank_cures
from evenly.papers.atlas.cells import Cell, Row, cells
from evenly.papers.atlas.cures import CURES
from evenly.papers.atlas.tasks import ERRORS, TITLES, Task, draw
from evenly.papers.experiment import Measured
from evenly.report.blocks import Badge, Lead, Link, Listing, Map, Plot, Prose, Section, Square, Table
from evenly.report.page import render
from evenly.report.wording import duration

SHOWN = ("balanced", "test", "worst")
FEW = 5
RULE = (
    "A number is a difference to plain training in points of error, pair by pair, so that minus is better. "
    "A filled square stands after Holm's correction over all squares of its map; a tinted one has a 95% interval that "
    "excludes zero, and no more; the others may be chance. A square opens the task at its cure: every seed, the "
    "interval, and how small an effect the seeds could have shown. Cost is in gradients of plain training, for as many "
    "steps with a cure as without; `evenly compare` takes as many epochs, where copies cost more steps too."
)
# In the narrow heads of a map.
_SHORT = {"convnet": "conv", "fmnist-mnist": "fmn"}


def write_atlas(
    out: str | os.PathLike[str],
    rows: Sequence[Row],
    tasks: Mapping[str, Task],
    *,
    force: bool = False,
) -> Path:
    """Write the site into the folder `out` and return the path of its first page."""
    out = Path(out)
    first = out / "index.html"
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: the atlas needs a folder, such as --out atlas/")
    if first.exists() and not force:
        raise UsageError(f"{first} exists. Give another --out, or --force to replace the atlas.")
    cells_ = cells(rows)
    atomic.make_folder(out)
    for row in rows:
        own = [cell for cell in cells_ if cell.task == row["key"]]
        atomic.write_text(out / address(row["key"]), task_page(row, own, tasks[row["key"]]))
    atomic.write_text(first, map_page(rows, cells_, tasks))
    return first


def map_page(rows: Sequence[Row], cells_: Sequence[Cell], tasks: Mapping[str, Task]) -> str:
    """The first page: what helps with which minority, then a map for each kind of error."""
    shown = [tasks[row["key"]] for row in rows]
    missing = [task for key, task in tasks.items() if key not in {row["key"] for row in rows}]
    sections = [Section("short", "What helps where, in short", [Prose(RULE), _in_short(cells_, shown)])]
    for error in SHOWN:
        own = {(cell.task, cell.cure): cell for cell in cells_ if cell.error == error}
        sections.append(Section(error, f"Map: {TITLES[error].lower()}", [_map(own, shown, ERRORS[error])]))
    sections.append(Section("advice", "Advice, tested", [Prose(accuracy_in_words(rows))]))
    sections.append(Section("tasks", "Tasks", [_tasks(rows, tasks)]))
    if missing:
        listed = [[task.key, task.words] for task in missing]
        caption = "Declared, and not measured yet: nothing is said of these."
        sections.append(Section("missing", "Not measured", [Table(["task", "what it is"], listed, caption)]))
    sure = sum(cell.certain and cell.difference.mean < 0 for cell in cells_ if cell.error == "balanced")
    harm = sum(cell.certain and cell.difference.mean > 0 for cell in cells_ if cell.error == "test")
    seeds = sorted({len(row["seeds"]) for row in rows})
    finding = (
        f"{len(CURES) - 1} cures on {len(rows)} of {len(tasks)} declared tasks, {' or '.join(map(str, seeds))} seeds "
        f"each: {sure} squares certainly help where the easy feature says nothing, and {harm} certainly harm the "
        "ordinary test error."
    )
    lead = Lead(finding, advice="what to try on your data.", next_command="evenly advise DATA --model mlp",
                command="evenly reproduce atlas")  # fmt: skip
    return render("The atlas: which cure, when", lead, sections, site=True)


def _tasks(rows: Sequence[Row], tasks: Mapping[str, Task]) -> Table:
    listed = [
        [Link(row["key"].partition("/")[2], address(row["key"])), tasks[row["key"]].words, row["command"]]
        for row in sorted(rows, key=lambda row: _place(tasks[row["key"]]))
    ]
    return Table(["task", "what it is", "the command that repeats it"], listed, whole=True)


def _in_short(cells_: Sequence[Cell], shown: Sequence[Task]) -> Table:
    """For each minority, the cures that advice would rank first, and on how many tasks they certainly help."""
    rows = []
    for minority, own in groupby(sorted(shown, key=_place), key=lambda task: task.minority):
        keys = {task.key for task in own}
        ranking, _ = rank_cures([cell for cell in cells_ if cell.task in keys])
        for cure in [choice.cure for choice in ranking if choice.score < 0][:FEW]:
            mine = [cell for cell in cells_ if cell.cure == cure and cell.task in keys]
            words = [_MINORITIES[minority], CURES[cure].label, METHODS[cure]]
            numbers = [f"{_points(_mean(mine, error))} ({_count(mine, error)})" for error in SHOWN]
            rows.append([*words, *numbers, f"{fmean(cell.cost for cell in mine):.2f}×"])
    caption = (
        f"Up to {FEW} cures that helped most and harmed the ordinary test error on no task, by what the minority is: "
        "the mean difference over the tasks, and in brackets on how many of them it certainly helps / harms."
    )
    return Table(
        ["minority", "cure", "method", *(TITLES[error].lower() for error in SHOWN), "cost"], rows, caption, True
    )


_MINORITIES = {
    "lacking": "lack the easy feature",
    "conflicting": "are contradicted by it",
    "noisy": "have wrong labels (and a fifth lacks the easy feature)",
}


def _mean(own: Sequence[Cell], error: str) -> float:
    return fmean(cell.difference.mean for cell in own if cell.error == error)


def _count(own: Sequence[Cell], error: str) -> str:
    words = [cell.verdict for cell in own if cell.error == error]
    return f"{words.count('helps')} / {words.count('harms')}"


def _map(own: Mapping[tuple[str, str], Cell], shown: Sequence[Task], words: str) -> Map:
    """Cures by tasks; within a minority, perceptrons come first, by share and size, then networks, then data."""
    columns = sorted(shown, key=_place)
    rows: dict[str, list[Square | str]] = {}
    for cure in CURES:
        if any((task.key, cure) in own for task in columns):
            cost = fmean(cell.cost for (_, name), cell in own.items() if name == cure)
            squares: list[Square | str] = [_square(own[task.key, cure]) for task in columns]
            rows[CURES[cure].label] = [f"{cost:.2f}×", *squares]
    plain = {task.key: next(cell.plain for (key, _), cell in own.items() if key == task.key) for task in columns}
    rows["plain, error in %"] = ["1.00×", *(f"{plain[task.key]:.1f}" for task in columns)]
    heads = [
        [("cost", 1), *_spans([_MINORITIES[task.minority].split(" (")[0] for task in columns])],
        [("", 1), *_spans([f"{100 * task.share:g}%" for task in columns], [task.minority for task in columns])],
        [("", 1), *((_size(task), 1) for task in columns)],
    ]
    others = dict.fromkeys(name for task in columns for name in (task.model, task.data) if name in _SHORT)
    legend = "".join(f"; {_SHORT[name]}: {name}" for name in others)
    caption = f"Points of error on {words}, minus plain training. Below each share: examples{legend}."
    return Map("cure", heads, rows, caption)


def _size(task: Task) -> str:
    size = f"{task.size // 1000}k" if task.size % 1000 == 0 else str(task.size)
    return " ".join([size, *(_SHORT[name] for name in (task.model, task.data) if name in _SHORT)])


def _square(cell: Cell) -> Square:
    difference = cell.difference
    words = f"{CURES[cell.cure].label} on {cell.task}: {_interval(cell)} points, {cell.verdict}"
    tone = "" if not difference.excludes_zero else "good" if difference.mean < 0 else "bad"
    return Square(
        _points(difference.mean),
        words,
        f"{address(cell.task)}#{anchor(cell.cure)}",
        tone,
        cell.certain,
    )


def _interval(cell: Cell) -> str:
    difference = cell.difference
    return f"{difference.mean:+.2f} [{difference.low:+.2f}, {difference.high:+.2f}]".replace("-", "−")


def _points(difference: float) -> str:
    """A difference as it stands in a narrow square.

    >>> _points(-0.04), _points(-9.16), _points(12.3)
    ('0.0', '−9.2', '+12')
    """
    shown = f"{round(difference, 1) + 0.0:+.1f}" if abs(difference) < 9.95 else f"{difference:+.0f}"
    return "0.0" if shown in ("+0.0", "-0.0") else shown.replace("-", "−")


def _spans(words: Sequence[str], within: Sequence[str] = ()) -> list[tuple[str, int]]:
    """Equal neighbours merged into one heading.

    >>> _spans(["a", "a", "b"])
    [('a', 2), ('b', 1)]
    """
    keys = zip(within or words, words, strict=True)
    return [(word, len(list(own))) for (_, word), own in groupby(keys)]


def _place(task: Task) -> tuple[int, bool, str, bool, str, float, int]:
    data, model = (task.data != "digit-dominoes", task.data), (task.model != "mlp", task.model)
    return list(_MINORITIES).index(task.minority), *data, *model, task.share, -task.size


def task_page(row: Row, own: Sequence[Cell], task: Task) -> str:
    """The page of one task: its figure, then the effect of every cure, with each seed."""
    values = {name: {int(seed): value for seed, value in by.items()} for name, by in row["quantities"].items()}
    plots = [Plot(chart, height=420, wide=True) for chart in draw(Measured(values, {}))]
    sections = [Section("figure", "All cures", plots)]
    seeds = [str(seed) for seed in row["seeds"]]
    for cure in CURES:
        mine = [cell for cell in own if cell.cure == cure]
        if mine:
            sections.append(Section(anchor(cure), CURES[cure].label, [_outcome(mine), _by_seed(row, cure, seeds)]))
    plain = _by_seed(row, "plain", seeds)
    early = {name: by for name, by in row["quantities"].items() if name.startswith("early.")}
    shown = [[name.removeprefix("early."), *(by.get(seed) for seed in seeds)] for name, by in early.items()]
    caption = "What an early network shows without group labels, seed by seed: advice goes by the means."
    looks = Table(["quantity", *(f"seed {seed}" for seed in seeds)], shown, caption)
    sections.append(
        Section("plain", "Plain training and its early networks", [plain, looks, Listing("Runs", _runs(row))])
    )
    helping = [cell for cell in own if cell.error == "balanced" and cell.verdict == "helps"]
    best = min(helping, key=lambda cell: cell.difference.mean, default=None)
    finding = f"{task.words[0].upper()}{task.words[1:]}. " + (
        f"Most helps {CURES[best.cure].label}: {best.difference.mean:+.1f} points on balanced data."
        if best is not None
        else "No cure certainly helps on balanced data."
    ).replace("-", "−")
    lead = Lead(finding, command=row["command"])
    return render(row["title"], lead, sections, up=Link("The atlas", "index.html"), site=True)


def _outcome(mine: Sequence[Cell]) -> Table:
    rows = [
        {
            "error": TITLES[cell.error],
            "plain %": cell.plain,
            "this %": cell.plain + cell.difference.mean,
            "difference [95%]": _interval(cell),
            "": Badge(cell.verdict),
            "could be seen": f"{cell.detectable:.2f}",
        }
        for cell in mine
    ]
    cure = CURES[mine[0].cure]
    same = "epochs" if cure.batch_share < 1 else "steps"
    more = ", so that copies cost more there" if cure.factor > 1 and not cure.weighted else ""
    caption = (
        f"With as many {same} as plain training, this costs {mine[0].cost:.2f}× its gradients. `evenly compare DATA "
        f"--methods plain,{METHODS[mine[0].cure]}` does the like on your data, with as many epochs{more}. The last "
        "column is the effect that as many seeds show nine times out of ten."
    )
    return Table(list(rows[0]), rows, caption, whole=True)


def _by_seed(row: Row, cure: str, seeds: Sequence[str]) -> Table:
    shown = [[TITLES[error], *(row["quantities"][f"{cure}.{error}"].get(seed) for seed in seeds)] for error in ERRORS]
    return Table(["error in %", *(f"seed {seed}" for seed in seeds)], shown, whole=True)


def _runs(row: Row) -> str:
    parts = "\n".join(f"{name}: {digest}" for name, digest in row["parts"].items())
    revisions = ", ".join(sorted({origin["revision"] for origin in row["origins"].values()}))
    return f"{row['command']}\n{parts}\ndate: {row['date']}\ntime: {duration(row['minutes'])}\nrevision: {revisions}"


def address(key: str) -> str:
    """The file of a task's page."""
    return html.escape(key.replace("/", "-")) + ".html"


def anchor(cure: str) -> str:
    """The place of a cure on that page."""
    return cure.replace("+", "-")
