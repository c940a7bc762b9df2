"""The stored comparison of several ways of training: `RUNS/comparisons/ID.json`, which terminal and pages read."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evenly.errors import DataError
from evenly.records import plain

FOLDER, FORMAT = "comparisons", 1


def paths(runs: str | os.PathLike[str]) -> list[Path]:
    """The comparisons of a folder of runs, the newest first."""
    folder = Path(runs) / FOLDER
    return sorted(folder.glob("*.json"), key=lambda path: (path.stat().st_mtime, path.name), reverse=True)


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """A stored comparison, whose parts are there and of the right kind."""
    path = Path(path)
    record = plain.read(path)
    if not isinstance(record, dict) or record.get("format") != FORMAT:
        which = record.get("format") if isinstance(record, dict) else None
        raise DataError(f"{path} is no comparison of this version: its format is {which!r}, expected {FORMAT}.")
    methods = record.get("methods")
    if not isinstance(methods, list) or not all(_is_method(method) for method in methods):
        raise DataError(f"{path} is damaged: expected a list of methods with a name and runs. Repeat its command.")
    return record


def _is_method(method: Any) -> bool:
    if not isinstance(method, Mapping) or not isinstance(method.get("name"), str):
        return False
    runs = method.get("runs")
    return isinstance(runs, Mapping) and all(isinstance(cell, Mapping) for cell in runs.values())
