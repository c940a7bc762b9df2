"""The index of a folder: every experiment with its badge and numbers, from the comparisons and summaries alone."""

import time
from typing import Any

from evenly.errors import DataError, SetupError
from evenly.intervals import points_with_interval
from evenly.records import Run
from evenly.report import palette
from evenly.report.blocks import Badge, Block, Link, Section, Table
from evenly.report.experiments.experiment import label_of
from evenly.report.experiments.finding import Folder, Stored
from evenly.report.experiments.lead import interval_of
from evenly.report.wording import percent

MOST_ROWS = 2000


def index_section(folder: Folder, shown: dict[str, str]) -> Section:
    """A row for every comparison of the folder and for every run without one; `shown` has the places of sections."""
    rows = [_row(name, record, shown) for name, record in folder.comparisons.items()]
    blocks: list[Block] = []
    if rows:
        columns = ["data", "result", "model", "method", "error %", "difference, points", "seeds", "date", "comparison"]
        blocks.append(Table(columns, rows, filters=("result", "data", "method") if len(rows) > 8 else ()))
    loose = folder.loose()
    if loose:
        cells = [_loose(Run(folder.path / name), shown) for name in loose[:MOST_ROWS]]
        more = f" The {MOST_ROWS:,} latest are listed." if len(loose) > MOST_ROWS else ""
        num = f"{len(loose):,} runs belong" if len(loose) != 1 else "1 run belongs"
        caption = f"{num} to no comparison.{more}"
        blocks.append(Table(["run", "state", "error %"], cells, caption))
    return Section("index", "Index", blocks)


def _row(name: str, record: Stored, shown: dict[str, str]) -> list[Any]:
    data = name if isinstance(record, str) else str(record.get("data", "?")).rstrip("/").rpartition("/")[2]
    link = Link(data, f"#{shown[name]}") if name in shown else data
    if isinstance(record, str):
        return [link, Badge("failed to read"), *[None] * 6, name]
    tried = [method for method in record["methods"] if not palette.is_control(label_of(method))] or record["methods"]
    main = next((method for method in tried if method.get("error")), tried[0] if tried else {})
    error, difference = interval_of(main.get("error")), interval_of(main.get("difference"))
    state = record.get("state")
    badge = "running" if state == "running" else (record.get("recommendation") or {}).get("badge") or state or "new"
    return [
        link,
        Badge(str(badge)),
        record.get("model"),
        label_of(main) if main else None,
        percent(error) if error else None,
        points_with_interval(difference) if difference else None,
        len(record.get("seeds") or []),
        _date(record.get("created")),
        name,
    ]


def _loose(run: Run, shown: dict[str, str]) -> list[Any]:
    name = run.path.name
    link = Link(name, f"#{shown[name]}") if name in shown else name
    try:
        summary = run.summary()
    except (DataError, SetupError):
        return [link, "damaged", None]
    errors = [summary.get(f"{split}.error") for split in ("test", "validation")]
    error = next((value for value in errors if isinstance(value, int | float)), None)
    return [link, "done" if summary else run.state, f"{error * 100:.2f}" if error is not None else None]


def _date(created: Any) -> str:
    """The day of a time, in seconds since 1970."""
    return time.strftime("%Y-%m-%d", time.gmtime(created)) if isinstance(created, int | float) else ""
