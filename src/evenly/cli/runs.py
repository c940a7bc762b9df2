"""`evenly runs`: what has been run, and what came of it."""

from typing import Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, verb
from evenly.cli.train import duration, shown
from evenly.errors import DataError, SetupError

EXAMPLES = """
  evenly runs
  evenly runs show 3f2a
"""
# Where the error of a run is taken: the first of these splits that it has.
JUDGED = ("test", "validation")


def fill(parser: Parser) -> None:
    """The arguments of `evenly runs`."""
    parser.calls(table, examples=EXAMPLES)
    parser.add_argument("--runs", metavar="DIR", default="runs", help="where run folders are (default: runs)")
    add_json(parser)
    inner = parser.add_subparsers(metavar="VERB", title="verbs")
    one = verb(inner, "show", show, help="one run: its recipe, metrics and state", examples="evenly runs show 3f2a")
    one.add_argument("id", metavar="ID", help="the ID of a run, its beginning, or its folder")
    one.add_argument("--runs", metavar="DIR", default="runs", help="where run folders are (default: runs)")
    add_json(one)


def table(*, runs: str, json: bool) -> None:
    """Print a row per run: state, epoch, error, time."""
    from evenly import records

    rows = []
    for run in records.runs(runs):
        try:
            rows.append(_row(run))
        except (DataError, SetupError) as error:  # one damaged run must not hide the others
            say(f"Left out {run.id}: {error}")
    if json:
        print_json(rows)
        return
    for row in rows:
        row["error"] = next(
            (f"{shown(row[f'{on} error'])} ({on})" for on in JUDGED if row[f"{on} error"] is not None), ""
        )
        row |= {"train error": shown(row["train error"]) if row["train error"] is not None else ""}
        row["time"] = duration(row["seconds"]) if row["seconds"] is not None else ""
        row |= {name: "" for name, value in row.items() if value is None}
    print_table(
        rows,
        ["id", "state", "data", "model", "optimizer", "method", "seed", "epoch", "train error", "error", "time"],
    )
    say(f"\n{len(rows)} run{'' if len(rows) == 1 else 's'} in {runs}. `evenly runs show ID` tells more of one.")


def show(*, id: str, runs: str, json: bool) -> None:
    """Print one run."""
    from evenly import records
    from evenly.typed import yaml_text

    run = records.Run.open(id, runs)
    metrics = run.metrics()
    if json:
        print_json(
            {"id": run.id, "state": run.state, "recipe": run.recipe, "metrics": metrics, "summary": run.summary()}
        )
        return
    print(yaml_text.render(run.recipe))
    if metrics:
        columns = [name for name in metrics[-1] if name.count(".") <= 1]
        print_table([{k: shown(v) for k, v in row.items()} for row in metrics], columns)
    say(f"\nRun {run.id} is {run.state}: {run.path}" + (f"\n{run.failure()}" if run.failure() else ""))


def _row(run: Any) -> dict[str, Any]:
    from evenly.typed.mappings import flatten

    recipe, summary = flatten(run.recipe), run.summary()
    # A run that is done says itself where it ended; its last line of metrics may be lost.
    last = summary if "epoch" in summary else (run.metrics() or [{}])[-1]
    rule = recipe.get("ascent.rule", "none")
    row = {
        "id": run.id,
        "state": run.state,
        "data": recipe.get("data.name"),
        "model": recipe.get("model.name"),
        "optimizer": recipe.get("optimizer.name") if rule == "none" else rule,
        "method": _method(recipe),
        "seed": recipe.get("seed"),
        "epoch": last.get("epoch", 0),
        "epochs": recipe.get("epochs"),
        "train error": last.get("train.error"),
        "test error": last.get("test.error"),
        "validation error": last.get("validation.error"),
        "seconds": summary.get("seconds"),
    }
    for name in ("epoch", "train error", "test error", "validation error", "seconds"):
        if row[name] is not None and not isinstance(row[name], int | float):
            raise DataError(f"{run.path}: {name} is {row[name]!r:.40}, expected a number. Something else changed it.")
    return row


def _method(recipe: dict[str, Any]) -> str:
    """What part a run has in USEFUL: its early stage, the way its examples were chosen, or none."""
    if recipe.get("until.rule", "end") != "end":
        return "early"
    method = recipe.get("resampling.method", "none")
    return "" if method == "none" else str(method)
