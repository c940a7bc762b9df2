"""Queries over many runs: all of them, those with given settings, and tables that compare them."""

import contextlib
import logging
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenly.errors import DataError, SetupError, UsageError, did_you_mean
from evenly.records.run import RESERVED, Run
from evenly.typed.mappings import flatten

_log = logging.getLogger(__name__)
_MEASURED = re.compile(r"(last|min|max|summary)\((.+)\)")


def runs(root: str | os.PathLike[str] = "runs") -> list[Run]:
    """Every run in `root`, by ID; a run that cannot be read is skipped with a warning.

    A folder without any file of a run, such as one with figures or further runs, is ignored.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> Run.create(root, {"seed": 1}, "b1").close(), Run.create(root, {"seed": 0}, "a0").close()
    (None, None)
    >>> runs(root)
    [<run a0: new>, <run b1: new>]
    """
    root = Path(root)
    if not root.is_dir():
        raise UsageError(f"there is no folder {root} with runs. `evenly train` makes one, or give another with --runs.")
    readable = []
    for path in sorted(root.iterdir()):
        with _warn_and_skip(path):
            if path.is_dir() and not path.name.startswith(".") and not _foreign(path):
                run = Run(path)
                _ = run.recipe  # cached, and proves that there is a recipe
                readable.append(run)
    return readable


def select(root: str | os.PathLike[str] = "runs", /, **where: Any) -> list[Run]:
    """The runs in `root` with these settings: `select("runs", **{"optimizer.lr": 0.1})`.

    `id` and `state` work like settings.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> for seed in range(3):
    ...     Run.create(root, {"data": {"name": "digits"}, "seed": seed}, f"a{seed}").close()
    >>> select(root, **{"data.name": "digits", "seed": 2})
    [<run a2: new>]
    """
    all_runs = runs(root)
    facts = [_facts(run) for run in all_runs]
    _check_known(where, facts)
    return [
        run
        for run, known in zip(all_runs, facts, strict=True)
        if all(name in known and _same(known[name], value) for name, value in where.items())
    ]


def table(
    root: str | os.PathLike[str], columns: Sequence[str], *, where: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """A row per run in `root`, with the named columns; missing values are None.

    A column is `id`, `state`, a setting (`optimizer.lr`), the last, smallest or largest value of a metric
    (`last(loss)`, `min(test_error)`, `max(test_accuracy)`, NaN never being the smallest or largest), or an
    entry of the summary (`summary(test_error)`).

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> with Run.create(root, {"seed": 7}, "a7") as run:
    ...     for error in (0.5, 0.2, 0.3):
    ...         run.log(error=error)
    >>> table(root, ["id", "seed", "last(error)", "min(error)"])
    [{'id': 'a7', 'seed': 7, 'last(error)': 0.3, 'min(error)': 0.2}]
    """
    selected = select(root, **(where or {}))
    facts = [_facts(run) for run in selected]
    _check_known([column for column in columns if not _MEASURED.fullmatch(column)], facts)
    rows = []
    for run, known in zip(selected, facts, strict=True):
        with _warn_and_skip(run.path):
            measured = run.metrics(), run.summary()
            rows.append({column: _cell(column, known, *measured) for column in columns})
    return rows


def _foreign(path: Path) -> bool:
    """Whether a folder has no file of a run, not even a half-written one."""
    return not any((path / name).exists() for name in RESERVED)


@contextlib.contextmanager
def _warn_and_skip(path: Path) -> Iterator[None]:
    """A warning in place of an error: one bad folder must not hide a thousand good ones."""
    try:
        yield
    except (DataError, SetupError) as error:
        _log.warning("skipped %s: %s", path, error)
    except OSError as error:
        _log.warning("skipped %s: it cannot be read: %s", path, error.strerror)


def _facts(run: Run) -> dict[str, Any]:
    return {"id": run.id, "state": run.state, **flatten(run.recipe)}


def _check_known(names: Iterable[str], facts: Sequence[Mapping[str, Any]]) -> None:
    known = {name for fact in facts for name in fact}
    for name in names:
        if facts and name not in known:
            hint = did_you_mean(name, known)
            raise UsageError(f"no run has a setting {name!r}. {hint} A metric is asked for as last({name}).")


def _same(recorded: Any, wanted: Any) -> bool:
    if isinstance(recorded, bool) != isinstance(wanted, bool):
        return False
    return bool(recorded == (list(wanted) if isinstance(wanted, tuple) else wanted))


def _cell(
    column: str, known: Mapping[str, Any], metrics: Sequence[Mapping[str, Any]], summary: Mapping[str, Any]
) -> Any:
    measured = _MEASURED.fullmatch(column)
    if measured is None:
        return known.get(column)
    which, name = measured.groups()
    if which == "summary":
        return summary.get(name)
    values = [row[name] for row in metrics if name in row]
    if which == "last":
        return values[-1] if values else None
    numbers = [value for value in values if isinstance(value, int | float) and not math.isnan(value)]
    return (min if which == "min" else max)(numbers, default=None)
