"""`evenly runs`: list runs and their results; show, compare and remove runs."""

import os
import sys
import time
from argparse import SUPPRESS
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, verb
from evenly.cli.run_rows import filter_rows, rows_of, shown_rows
from evenly.cli.train import metric_text
from evenly.errors import EvenlyError, UsageError, did_you_mean
from evenly.progress import printable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from evenly.report.run_pairs import Pair

EXAMPLES = """
  evenly runs
  evenly runs --data photos --since 2d
  evenly runs show 3f2a
  evenly runs compare 3f2a 91c0
  evenly runs rm 3f2a
"""
_COMPARE = """
  evenly runs compare 3f2a 91c0            the first is what the others are compared with
  evenly runs compare 3f2a 91c0 --split validation
"""
_REMOVE = """
  evenly runs rm 3f2a 91c0
  evenly runs rm 3f2a --yes
"""
_PAUSE = 3.0  # seconds between two refreshes
EVERY = 30.0  # seconds between two lines without a terminal


def fill(parser: Parser) -> None:
    """The arguments of `evenly runs`."""
    parser.calls(table, examples=EXAMPLES)
    parser.add_argument("--data", metavar="DATA", help="only runs on this data set")
    parser.add_argument("--model", metavar="M", help="only runs of this model")
    parser.add_argument("--since", metavar="WHEN", help="only runs begun since: 2026-01-31, 30m, 2h, 3d")
    parser.add_argument("--watch", action="store_true", help="redraw the table until no run is active")
    inner = parser.add_subparsers(metavar="VERB", title="verbs")
    one = verb(
        inner,
        "show",
        _refuse_filters(show),
        help="one run: its recipe, metrics and state",
        examples="evenly runs show 3f2a",
    )
    one.add_argument("id", metavar="ID", help="the ID of a run, its beginning, or its folder")
    two = verb(
        inner,
        "compare",
        _refuse_filters(compare),
        help="compare runs, paired by seed",
        examples=_COMPARE,
    )
    two.add_argument("ids", metavar="ID", nargs="+", help="runs of different settings; their other seeds are found")
    two.add_argument("--split", help="where the error is taken (default: test, or validation)")
    gone = verb(inner, "rm", _refuse_filters(remove), help="delete runs, after asking", examples=_REMOVE)
    gone.add_argument("ids", metavar="ID", nargs="+", help="the ID of a run, or its beginning")
    gone.add_argument("--yes", action="store_true", help="do not ask")
    for each in (parser, one, two, gone):
        # `evenly runs --runs DIR rm ID`: the default of an inner verb would replace what stands before it.
        folder, as_json = ("runs", False) if each is parser else (SUPPRESS, SUPPRESS)
        each.add_argument("--runs", metavar="DIR", default=folder, help="where run folders are (default: runs)")
        add_json(each, default=as_json)


def _refuse_filters(run: "Callable[..., None]") -> "Callable[..., None]":
    """Refuse the options that filter the table for an inner verb."""

    def check_filters(*, data: str | None, model: str | None, since: str | None, watch: bool, **given: Any) -> None:
        options = {"--data": data, "--model": model, "--since": since, "--watch": watch or None}
        if extra := [name for name, value in options.items() if value is not None]:
            raise UsageError(f"{extra[0]} is for the table of `evenly runs` alone: leave it out here.")
        run(**given)

    return check_filters


def table(*, data: str | None, model: str | None, since: str | None, watch: bool, runs: str, json: bool) -> None:
    """Print a row per run, the newest first."""
    from evenly import records
    from evenly.sweep.status import under_way

    due = 0.0  # when to print the next line, where the table cannot be redrawn in place
    while True:
        every = rows_of(records.runs(runs))
        rows = filter_rows(every, data=data, model=model, since=since)
        if json:
            print_json(rows)
            return
        if every and not rows:
            _say_what_there_is(every, {"data": data, "model": model})
        plans = under_way(runs) if watch else []
        going_on = sum(row["state"] == "running" for row in rows) if watch else 0
        if not (going_on or plans) or sys.stdout.isatty():
            print("\x1b[H\x1b[2J" if going_on or plans else "", end="")
            print_runs(rows)
            for line in plans:
                say(line)
        elif time.monotonic() > due:
            say("\n".join(plans) or f"{going_on} of {len(rows)} runs are running.")
            due = time.monotonic() + EVERY
        if not (going_on or plans):
            break
        time.sleep(_PAUSE)
    letters = [
        text
        for letter, text in (
            (" v", "v = on validation"),
            (" t", "t = on training examples"),
            ("!", "! = learned nothing"),
        )
        if any(letter in row["error %"] for row in shown_rows(rows))
    ]
    count = f"{len(every)} run{'' if len(every) == 1 else 's'} in {runs}"
    if len(rows) < len(every):
        count = f"{len(rows)} of {count} {'matches' if len(rows) == 1 else 'match'}"
    say(f"\n{count}. `evenly runs show ID` shows one in detail."
        + (f" Marks: {', '.join(letters)}." if letters else ""))  # fmt: skip


def _say_what_there_is(rows: "Sequence[dict[str, Any]]", asked: dict[str, str | None]) -> None:
    """Answer a filter that no run passes with the names that there are."""
    for name, word in asked.items():
        there = {str(row[name]) for row in rows}
        if word is not None and not filter_rows(rows, **{"data": None, "model": None, "since": None, name: word}):
            say(f"--{name} {word}: no run has it. {did_you_mean(word, there)}")


def print_runs(rows: "Sequence[dict[str, Any]]") -> None:
    """The table of runs, within 80 columns."""
    print_table(
        shown_rows(rows), ["id", "date", "data", "model", "method", "lr", "rho", "epochs", "seed", "error %"], gap=1
    )


def show(*, id: str, runs: str, json: bool) -> None:
    """Print one run."""
    from evenly import records
    from evenly.typed import yaml_text

    run = records.Run.open(id, runs)
    metrics, summary = run.metrics(), run.summary()
    if json:
        print_json({"id": run.id, "state": run.state, "recipe": run.recipe, "metrics": metrics, "summary": summary})
        return
    print(printable(yaml_text.render(run.recipe)))
    if metrics:
        print_table([{k: metric_text(k, v) for k, v in row.items()} for row in metrics], _columns(metrics[-1]))
    error = next((f"{split}.error" for split in ("test", "validation") if f"{split}.error" in summary), None)
    remarks = [run.failure(), f"It {summary['collapsed']}" if "collapsed" in summary else None]
    if error is not None:
        remarks.insert(0, f"{error.replace('.', ' ').capitalize()}: {metric_text(error, summary[error])}")
    say(f"\nRun {run.id} is {run.state}: {run.path}" + "".join(f"\n{line}" for line in remarks if line))


def _columns(row: "Mapping[str, Any]") -> list[str]:
    """The first eight of the columns that matter: of the splits that judge a run, then the errors of parts of them.

    >>> parts = [f"train.{part}.{what}" for part in ("easy", "hard") for what in ("loss", "error")]
    >>> _columns(dict.fromkeys(["epoch", "train.loss", "train.error", *parts, "test.error"]))[4:]
    ['train.easy.error', 'train.hard.error', 'train.easy.loss', 'train.hard.loss']
    """
    named = [name for name in row if name.rpartition(".")[2] in ("epoch", "lr", "loss", "error")]
    order = ["", "train", "test", "validation"]

    def place(name: str) -> tuple[int, bool]:
        split, _, what = name.rpartition(".")
        return (order.index(split), False) if split in order else (len(order), what != "error")

    return sorted(named, key=place)[:8]


def compare(*, ids: list[str], split: str | None, runs: str, json: bool) -> None:
    """Print the error of every recipe, and the difference to the first over shared seeds."""
    from evenly.report import run_pairs as pairs

    if len(ids) < 2:
        raise UsageError("give two or more runs to compare. `evenly runs` lists them.")
    groups = pairs.groups(ids, runs)
    differing = pairs.differing_settings(groups)
    split, lines = pairs.compare(groups, split)
    if json:
        print_json({"split": split, "differing": differing, "groups": [_pair_record(line) for line in lines]})
        return
    names = [line.group.named[:7] for line in lines]
    print_table(
        [
            {"setting": name} | {run: "—" if value is None else value for run, value in zip(names, values, strict=True)}
            for name, values in differing.items()
        ],
        ["setting", *names],
    )
    print()
    print_table(
        [{"run": name, **_pair_cells(line)} for name, line in zip(names, lines, strict=True)],
        ["run", "method", "seeds", "error %", "difference", "cost"],
    )
    say(f"\nErrors on {split}, differences in points with 95% intervals.")
    say("\n".join(pairs.conclusions(names, lines)))


def _pair_record(pair: "Pair") -> dict[str, Any]:
    """One recipe of a comparison as plain data."""
    from dataclasses import asdict

    return {
        "run": pair.group.named,
        "method": pair.group.method,
        "runs": [run.id for run in pair.group.runs.values()],
        "seeds": list(pair.group.runs),
        "error": asdict(pair.error),
        "difference": asdict(pair.difference) if pair.difference is not None else None,
        "cost": pair.cost,
        "collapsed": pair.group.collapsed_runs(),
    }


def _pair_cells(pair: "Pair") -> dict[str, Any]:
    """One recipe of a comparison as cells of a table."""
    from evenly.intervals import points_with_interval
    from evenly.report.wording import percent

    return {
        "method": pair.group.method,
        "seeds": len(pair.group.runs),
        "error %": percent(pair.error),
        "difference": points_with_interval(pair.difference) if pair.difference is not None else "",
        "cost": f"{pair.cost:.2f}×" if pair.cost is not None else "",
    }


def _name_in(runs: str, path: Path) -> str:
    """The name of a run's folder, which must be in `runs`: a folder of the same name there may be another copy."""
    path = Path(os.path.abspath(path))
    if path.parent.resolve() != Path(runs).resolve():
        raise UsageError(f"{path} is not in {runs}. Name the folder that it is in: --runs {path.parent}")
    return path.name


def remove(*, ids: list[str], yes: bool, runs: str, json: bool) -> None:
    """Delete runs that evenly made, after asking."""
    from evenly import records
    from evenly.records import index
    from evenly.records.removal import refusal, sweep
    from evenly.records.removal import remove as delete

    sweep(runs)
    chosen = list(dict.fromkeys(_name_in(runs, records.Run.open(name, runs).path) for name in ids))
    for name in chosen:
        if (why := refusal(runs, name)) is not None:
            raise UsageError(why)
    needed = [name for name, entry in index.entries(Path(runs)).items() if entry and entry.early in chosen]
    others = [name for name in needed if name not in chosen]
    what = f"{len(chosen)} run{'s' * (len(chosen) > 1)} in {runs}: {', '.join(chosen)}"
    if others:
        what += (
            f" ({', '.join(others)} chose examples by it; without it, training sets cannot be exported and unfinished "
            "runs cannot resume)"
        )
    if not yes:
        if not sys.stdin.isatty():
            raise UsageError(f"this would delete {what}. Without a terminal to ask on, say so with --yes.")
        print(f"Delete {what}? [y/N] ", end="", file=sys.stderr, flush=True)
        if input().strip().lower() not in ("y", "yes"):
            say("Nothing was deleted.")
            return
    failed: list[str] = []
    for name in chosen:
        try:
            delete(runs, name)
        except EvenlyError as error:
            failed.append(str(error))
    removed = [name for name in chosen if not (Path(runs) / name).exists()]
    if json:
        print_json({"removed": removed})
    else:
        say(f"Deleted {', '.join(removed) or 'nothing'} from {runs}.")
    if failed:
        raise UsageError("; ".join(failed))
