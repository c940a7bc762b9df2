"""Runs as rows of a table: data, model, method, time and result."""

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from evenly.cli.output import say
from evenly.errors import DataError, SetupError, UsageError

# The error of a run is on the first of these splits that it has.
JUDGED = ("test", "validation")
#: The widths of columns, together with the spaces between them at most 80.
WIDTHS = {"id": 7, "date": 11, "data": 9, "model": 8, "method": 10, "lr": 5, "rho": 4, "epochs": 6, "seed": 4}
_WORDS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def rows_of(runs: Iterable[Any]) -> list[dict[str, Any]]:
    """A row per run, the newest first; a run that cannot be read is skipped with a message on stderr."""
    rows = []
    for run in runs:
        try:
            rows.append(row_of(run))
        except (DataError, SetupError) as error:  # one damaged run must not hide the others
            say(f"Left out {run.id}: {error}")
    return sorted(rows, key=lambda row: str(row["date"]), reverse=True)


def row_of(run: Any) -> dict[str, Any]:
    """The row of one run, as plain values; errors are fractions."""
    from evenly.report.run_pairs import method_of
    from evenly.typed.mappings import flatten

    recipe, summary = flatten(run.recipe), run.summary()
    # From the summary of a finished run, since its last line of metrics may be lost.
    last = summary if "epoch" in summary else (run.metrics() or [{}])[-1]
    rule = recipe.get("ascent.rule", "none")
    row = {
        "id": run.id,
        "date": start_time(run),
        "state": run.state,
        "data": recipe.get("data.name"),
        "model": recipe.get("model.name"),
        "optimizer": recipe.get("optimizer.name") if rule == "none" else rule,
        "method": method_of(recipe),
        "lr": recipe.get("optimizer.lr"),
        "rho": recipe.get("ascent.rho") if rule != "none" else None,
        "seed": recipe.get("seed"),
        "epoch": last.get("epoch", 0),
        "epochs": recipe.get("epochs"),
        "train error": last.get("train.error"),
        "test error": last.get("test.error"),
        "validation error": last.get("validation.error"),
        "seconds": summary.get("seconds"),
        "collapsed": summary.get("collapsed"),
    }
    for name in ("epoch", "train error", "test error", "validation error", "seconds"):
        if row[name] is not None and not isinstance(row[name], int | float):
            raise DataError(f"{run.path}: {name} is {row[name]!r:.40}, expected a number. Something else changed it.")
    return row


def start_time(run: Any) -> str | None:
    """When a run began, in ISO format and local time: by its first stamp, or by the time of its files."""
    for stamp in run.stamps()[:1]:
        try:
            return datetime.fromisoformat(str(stamp["time"])).astimezone().isoformat(timespec="seconds")
        except (LookupError, TypeError, ValueError, OverflowError):
            break
    try:
        return datetime.fromtimestamp((run.path / "recipe.yaml").stat().st_mtime).astimezone().isoformat("T", "seconds")
    except OSError:
        return None


def filter_rows(
    rows: Sequence[dict[str, Any]], *, data: str | None, model: str | None, since: str | None
) -> list[dict[str, Any]]:
    """The rows of this data set, model, and of a time not before `since`."""
    first = since_when(since) if since is not None else ""
    return [
        row
        for row in rows
        if (data is None or _is_named(str(row["data"]), data))
        and (model is None or _is_named(str(row["model"]), model))
        and (row["date"] or "") >= first
    ]


def since_when(text: str, *, now: datetime | None = None) -> str:
    """The time given by `--since`, a date or how long ago, in ISO format.

    >>> since_when("2h", now=datetime(2026, 1, 2, 12)).startswith("2026-01-02T10:00:00")
    True
    >>> since_when("yesterday")
    Traceback (most recent call last):
    evenly.errors.UsageError: --since 'yesterday': expected a date, such as 2026-01-31, or how long ago: 30m, ...
    """
    ago = re.fullmatch(r"(\d{1,6})([mhdw])", text.strip())
    try:
        if ago:
            moment = (now or datetime.now()) - timedelta(**{_WORDS[ago[2]]: int(ago[1])})
        else:
            moment = datetime.fromisoformat(text.strip())
        return moment.astimezone().isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        raise UsageError(
            f"--since {text!r}: expected a date, such as 2026-01-31, or how long ago: 30m, 2h, 3d, 1w."
        ) from None


def _is_named(value: str, asked: str) -> bool:
    """Whether a name matches the filter; a path also matches by its last part."""
    return asked.rstrip("/") in (value.rstrip("/"), value.rstrip("/").rpartition("/")[2])


def shown_rows(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """The rows for the terminal, within 80 columns: errors in per cent, long names cut."""
    digits = _digits([str(row["id"]) for row in rows])
    lines = []
    for row in rows:
        date = str(row["date"] or "")
        line = {
            "id": str(row["id"])[:digits],
            "date": f"{date[5:10]} {date[11:16]}",
            "data": str(row["data"] or "").rstrip("/").rpartition("/")[2],
            "model": str(row["model"] or ""),
            "method": str(row["method"]),
            "lr": _short(row["lr"]),
            "rho": _short(row["rho"]),
            "epochs": str(row["epoch"] or "") if row["state"] == "done" else f"{row['epoch']}/{row['epochs'] or '?'}",
            "seed": str(row["seed"] if row["seed"] is not None else ""),
            "error %": error_of(row),
        }
        lines.append(
            {name: _cut(value, WIDTHS.get(name, 99)) if name != "id" else value for name, value in line.items()}
        )
    return lines


def error_of(row: Mapping[str, Any]) -> str:
    """The error in per cent, with a letter where it is not the test split's; the state of a run that is not done."""
    for split in (*JUDGED, "train"):
        error = row[f"{split} error"]
        if error is not None and (row["state"] == "done" or split != "train"):
            letter = {"test": "", "validation": " v", "train": " t"}[split]
            mark = "!" if row.get("collapsed") else ""
            return f"{error * 100:.2f}{letter}{mark}" + ("" if row["state"] == "done" else f" {row['state']}")
    return str(row["state"])


def _digits(names: Sequence[str]) -> int:
    """The number of leading digits that distinguish all IDs."""
    return next((n for n in range(WIDTHS["id"], 64) if len({name[:n] for name in names}) == len(set(names))), 64)


def _short(value: Any) -> str:
    """A number in five characters at most.

    >>> _short(0.05), _short(0.00025), _short(300.0), _short(None)
    ('0.05', '3e-4', '300', '')
    """
    text = f"{float(f'{value:.2g}'):g}" if isinstance(value, int | float) else ""
    return text if len(text) <= WIDTHS["lr"] else f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e")


def _cut(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"
