"""Stored comparisons of methods, for the terminal, pages and live views: `RUNS/comparisons/ID.json`.

It holds::

    id, created, updated, command, state        state: running, done or stopped
    data, data_fingerprint, model, optimizer, split, epochs, seeds, baseline
    num_runs    of all methods and seeds, early runs included
    early       by seed: the early run, the epoch of its separation, and whether the rule for that epoch fired
    methods     each with name, label, settings that differ from the baseline's, cost, and its runs by seed;
                whether it is a control, and the controls among the others that could explain its gain;
                error and paired difference to the baseline, with intervals, as far as runs are done
    recommendation    badge, sentence, the method to use, and the command that would settle more

Errors are shares (0.12), not per cent. Nothing here imports torch.
"""

import contextlib
import logging
import math
import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from evenly import atomic
from evenly.errors import DataError, UsageError, did_you_mean
from evenly.records import json_text
from evenly.records.lock import Busy, Lock, is_locked

_log = logging.getLogger(__name__)
FOLDER = "comparisons"  # in a folder of runs
FORMAT = 1
_LAST = 253402300800.0  # seconds since 1970 to the year 10000, beyond which no calendar goes
STATES = ("planned", "running", "done", "failed", "stopped")
Comparison = dict[str, Any]
_KINDS = {
    "id": str,
    "state": str,
    "data": str,
    "split": str,
    "seeds": list,
    "baseline": str,
    "early": dict,
    "methods": list,
}
_OF_A_METHOD = {"name": str, "runs": dict, "settings": dict}
_RUN = re.compile(r"[\w.-]{1,100}", re.ASCII)  # the ID of a run, which is also the name of its folder
_REMEDY = "Repeat the command that made it: what is trained is found again."


def write(runs: str | os.PathLike[str], comparison: Mapping[str, Any]) -> Path:
    """Store a comparison in a folder of runs, whole or not at all; `created` stays, `updated` is now.

    >>> import tempfile
    >>> runs = tempfile.mkdtemp()
    >>> path = write(runs, {"id": "c0ffee", "state": "done", "data": "digits", "split": "test", "seeds": [0],
    ...     "baseline": "plain", "early": {}, "methods": []})
    >>> read(runs, "c0f")["state"]
    'done'
    """
    path = Path(runs) / FOLDER / f"{comparison['id']}.json"
    now = round(time.time(), 3)
    stored = {"format": FORMAT, **comparison, "created": comparison.get("created") or now, "updated": now}
    _check(path, stored)
    atomic.write_text(path, json_text.text(stored, path="comparison"))
    return path


@contextlib.contextmanager
def being_written(runs: str | os.PathLike[str], which: str, *, leads: bool = True) -> Iterator[None]:
    """Within the context, the comparison counts as running; with many processes, the one that `leads` marks it.

    A killed process leaves its lock file behind, unlocked: `read` then reports that the comparison was stopped.
    """
    path = _lock_file(Path(runs) / FOLDER / f"{which}.json")
    try:
        lock = Lock(path) if leads else None
    except Busy:  # the same command runs twice: each run has its own lock, which reports that
        lock = None
    try:
        yield
    finally:
        if lock is not None:
            path.unlink(missing_ok=True)
            lock.release()


def read(runs: str | os.PathLike[str], which: str) -> Comparison:
    """The stored comparison whose ID is, or begins with, `which`."""
    named = [path for path in _files(runs) if path.stem.startswith(which)]
    if len(named) == 1 or any(path.stem == which for path in named):
        return _read(named[0] if len(named) == 1 else Path(runs) / FOLDER / f"{which}.json")
    if named:
        raise UsageError(f"{which!r} begins the ID of {len(named)} comparisons. Give more of it.")
    known = [path.stem for path in _files(runs)]
    hint = did_you_mean(which, known) if known else "There are none: `evenly compare` makes one."
    raise UsageError(f"there is no comparison {which!r} in {runs}. {hint}")


def comparisons(runs: str | os.PathLike[str]) -> list[Comparison]:
    """All stored comparisons, the newest first; one that cannot be read is skipped with a warning."""
    readable = []
    for path in _files(runs):
        try:
            readable.append(_read(path))
        except DataError as error:
            _log.warning("left out a comparison: %s", error)
    return sorted(readable, key=lambda each: float(each.get("updated") or 0), reverse=True)


def of_run(runs: str | os.PathLike[str], run: str) -> Comparison | None:
    """The newest comparison that a run belongs to, as a method's run or as an early run; None where there is none."""
    return next((each for each in comparisons(runs) if run in run_ids(each)), None)


def run_ids(comparison: Mapping[str, Any]) -> set[str]:
    """The IDs of all runs of a comparison, early runs too."""
    rows = [row for method in comparison["methods"] for row in method["runs"].values()]
    return {str(row["run"]) for row in (*rows, *comparison["early"].values()) if row.get("run")}


def progress(comparison: Mapping[str, Any]) -> dict[str, int]:
    """The number of its runs in each state.

    >>> progress({"methods": [{"runs": {"0": {"state": "done"}, "1": {"state": "running"}}}]})
    {'planned': 0, 'running': 1, 'done': 1, 'failed': 0, 'stopped': 0}
    """
    states = [row.get("state") for method in comparison["methods"] for row in method["runs"].values()]
    return {state: states.count(state) for state in STATES}


def epochs_of_equal_steps(epochs: int, *, share: float, factor: float) -> int:
    """Epochs of plain training that take as many steps as upsampling a share h by a factor k: T (1 + h (k − 1)).

    >>> epochs_of_equal_steps(30, share=0.4, factor=2)
    42
    """
    return round(epochs * (1 + share * (factor - 1)))


def relative_cost(gradients: float, *, early: float = 0.0, baseline: float) -> float:
    """The cost of a run: its gradients of single examples and those of its early run, over those of the baseline.

    >>> relative_cost(2_000, baseline=1_000), relative_cost(1_400, early=100, baseline=1_000)
    (2.0, 1.5)
    """
    return (gradients + early) / baseline


def _files(runs: str | os.PathLike[str]) -> list[Path]:
    return sorted(path for path in (Path(runs) / FOLDER).glob("*.json") if not path.name.startswith("."))


def _read(path: Path) -> Comparison:
    try:
        stored = json_text.read(path)
    except FileNotFoundError:
        raise DataError(f"{path} does not exist. {_REMEDY}") from None
    _check(path, stored)
    lock = _lock_file(path)
    if stored["state"] == "running" and lock.is_file() and not is_locked(lock):
        stored |= {"state": "stopped"}  # its process was killed
    return dict(stored)


def _lock_file(path: Path) -> Path:
    return path.with_suffix(".lock")


def _check(path: Path, stored: Any) -> None:
    """Raise unless this has the structure of a comparison, on which readers rely."""
    if not isinstance(stored, dict):
        raise DataError(f"{path} is damaged: expected a JSON object. {_REMEDY}")
    if stored.get("format") != FORMAT:
        raise DataError(
            f"{path} has format {stored.get('format')!r}, and this version of evenly reads {FORMAT}. {_REMEDY}"
        )
    _require(path, stored, _KINDS, "")
    for name in ("created", "updated"):
        if not _is_number_or_none(stored.get(name)) or not abs(stored.get(name) or 0) < _LAST:
            raise DataError(f"{path} is damaged: {name} is {stored[name]!r:.40}, expected seconds. {_REMEDY}")
    if not isinstance(stored.get("recommendation") or {}, dict):
        raise DataError(f"{path} is damaged: recommendation is not a JSON object. {_REMEDY}")
    for seed, row in stored["early"].items():
        _check_run(path, row, f"early.{seed}")
    for number, method in enumerate(stored["methods"]):
        where = f"methods[{number}]"
        if not isinstance(method, dict):
            raise DataError(f"{path} is damaged: {where} is not a JSON object. {_REMEDY}")
        _require(path, method, _OF_A_METHOD, f"{where}.")
        for seed, row in method["runs"].items():
            _check_run(path, row, f"{where}.runs.{seed}")
            if row.get("state") not in STATES:
                raise DataError(f"{path} is damaged: {where}.runs.{seed} has no known state. {_REMEDY}")
        for name in ("error", "difference"):
            _check_interval(path, method.get(name), f"{where}.{name}")


def _check_run(path: Path, row: Any, where: str) -> None:
    if not isinstance(row, dict):
        raise DataError(f"{path} is damaged: {where} is not a JSON object. {_REMEDY}")
    run = row.get("run")
    if run is not None and not (isinstance(run, str) and _RUN.fullmatch(run)):
        raise DataError(f"{path} is damaged: {where}.run is {run!r:.40}, expected the ID of a run. {_REMEDY}")


def _check_interval(path: Path, interval: Any, where: str) -> None:
    if interval is None:
        return
    if not isinstance(interval, dict):
        raise DataError(f"{path} is damaged: {where} is {interval!r:.40}, expected a JSON object. {_REMEDY}")
    for name in ("mean", "low", "high", "n"):
        value = interval.get(name)
        if not _is_number_or_none(value) or (name == "n" and not math.isfinite(value or 0)):
            raise DataError(f"{path} is damaged: {where}.{name} is {value!r:.40}, expected a number. {_REMEDY}")


def _is_number_or_none(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))


def _require(path: Path, mapping: Mapping[str, Any], kinds: Mapping[str, Any], under: str) -> None:
    for name, kind in kinds.items():
        if not isinstance(mapping.get(name), kind):
            raise DataError(
                f"{path} is damaged: {under}{name} is {mapping.get(name)!r:.40}, expected {kind.__name__}. {_REMEDY}"
            )
