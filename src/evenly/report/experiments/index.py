"""The index of a folder: every experiment with its badge and numbers, from the comparisons and summaries alone."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from evenly.errors import DataError, SetupError
from evenly.intervals import points_with_interval
from evenly.records import Run
from evenly.report.blocks import Badge, Block, Link, Section, Table
from evenly.report.experiments.experiment import label_of
from evenly.report.experiments.lead import interval_of, main_method
from evenly.report.experiments.lookup import Folder, Stored
from evenly.report.experiments.run_records import DAMAGE
from evenly.report.wording import percent

MOST_ROWS = 2000


def index_section(folder: Folder, shown: Mapping[str, Link], paired: Sequence[Table] = ()) -> Section:
    """A row for every comparison of the folder and for every run without one; `shown` links to those with sections.

    `paired` are the tables of runs that were trained one by one.
    """
    rows = [_row_or_damage(name, record, shown) for name, record in folder.comparisons.items()]
    blocks: list[Block] = []
    if rows:
        columns = ["data", "result", "model", "method", "error %", "difference, points", "seeds", "date", "comparison"]
        blocks.append(Table(columns, rows, filters=("result", "data", "method") if len(rows) > 8 else ()))
    blocks.extend(paired)
    loose = folder.loose()
    if loose:
        cells = [_loose(Run(folder.path / name), shown) for name in loose[:MOST_ROWS]]
        more = f" The {MOST_ROWS:,} latest are listed." if len(loose) > MOST_ROWS else ""
        num = f"{len(loose):,} runs belong" if len(loose) != 1 else "1 run belongs"
        pair = " `evenly runs compare ID ID` pairs them by seed." if len(loose) > 1 and not paired else ""
        caption = f"{num} to no comparison.{more}{pair}"
        blocks.append(Table(["run", "state", "error %", "experiment"], cells, caption))
    return Section("index", "Index", blocks)


def _row_or_damage(name: str, record: Stored, shown: Mapping[str, Link]) -> list[Any]:
    """The row of a comparison; damage to one does not hide the others."""
    try:
        return _row(name, record, shown)
    except DAMAGE as error:
        return _row(name, str(error), shown)


def _row(name: str, record: Stored, shown: Mapping[str, Link]) -> list[Any]:
    data = name if isinstance(record, str) else str(record.get("data", "?")).rstrip("/").rpartition("/")[2]
    link = Link(data, shown[name].address) if name in shown else data
    if isinstance(record, str):
        return [link, Badge("failed to read"), *[None] * 6, name]
    main = main_method(record) or next(iter(record["methods"]), {})
    error, difference = interval_of(main.get("error")), interval_of(main.get("difference"))
    state = record.get("state")
    over = state not in ("running", "stopped")
    badge = (over and (record.get("recommendation") or {}).get("badge")) or state or "new"
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


def _loose(run: Run, shown: Mapping[str, Link]) -> list[Any]:
    name = run.path.name
    link = Link(name, shown[name].address) if name in shown else name
    title = shown[name].text if name in shown else None
    try:
        summary = run.summary()
    except (DataError, SetupError):
        return [link, "damaged", None, title]
    errors = [summary.get(f"{split}.error") for split in ("test", "validation")]
    error = next((value for value in errors if isinstance(value, int | float)), None)
    return [link, "done" if summary else run.state, f"{error * 100:.2f}" if error is not None else None, title]


def _date(created: Any) -> str:
    """The day of a time, in seconds since 1970."""
    return time.strftime("%Y-%m-%d", time.gmtime(created)) if isinstance(created, int | float) else ""
