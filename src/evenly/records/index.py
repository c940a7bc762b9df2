"""An index of a folder of runs, which describes each run without opening it.

A run's identity never changes, so it is recorded once, in an append-only file of the user's cache folder. The index is
optional: runs missing from it are opened, unreadable lines are skipped, and without it everything works, more slowly.
"""

import contextlib
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from evenly.cache import cache_folder
from evenly.errors import DataError, SetupError
from evenly.records import identity, lines


class Entry(NamedTuple):
    """The index entry of a run: its comparison key, the digest of its request, and its early run."""

    comparison_key: str
    request: str
    early: str | None


def entries(root: Path) -> dict[str, Entry | None]:
    """The entry of every folder in `root`, by name; None for one without a readable identity.

    >>> import tempfile
    >>> entries(Path(tempfile.mkdtemp()))
    {}
    """
    notes = _notes_file(root)
    known = _read_notes(notes)
    with os.scandir(root) as folders:
        names = sorted(one.name for one in folders if not one.name.startswith(".") and one.is_dir())
    new = {name: made for name in names if name not in known and (made := _read_entry(root / name)) is not None}
    for name, (entry, is_certain) in new.items():
        if is_certain:
            note(root, name, entry)
    return {name: known[name] if name in known else new[name][0] if name in new else None for name in names}


def note(root: Path, name: str, entry: Entry) -> None:
    """Add a run to the index, if the index can be written."""
    notes = _notes_file(root)
    if notes is not None:
        with contextlib.suppress(SetupError, OSError):
            notes.parent.mkdir(parents=True, exist_ok=True)
            # The keys are older than the names of the fields, and stay as they are on disk.
            row = {"run": name, "kin": entry.comparison_key, "asked": entry.request, "early": entry.early}
            lines.append(notes, row)


def entry_of(record: Mapping[str, Any]) -> Entry:
    """The entry of a run with this identity."""
    return Entry(record["kin"], record["asked"], record.get("early"))


def runs_with_request(root: Path, request: str) -> list[str]:
    """The runs in `root` with the same request, the latest first."""
    if not root.is_dir():
        return []
    names = [name for name, entry in entries(root).items() if entry is not None and entry.request == request]

    def modified_at(name: str) -> float:
        with contextlib.suppress(OSError):
            return (root / name / identity.IDENTITY).stat().st_mtime
        return 0.0

    return sorted(names, key=modified_at, reverse=True)


def _read_entry(folder: Path) -> tuple[Entry, bool] | None:
    """The entry of a folder, and whether the folder is named by the run's ID, so that the entry can be kept."""
    with contextlib.suppress(DataError, SetupError):
        record = identity.read(folder)
        return (entry_of(record), record["id"] == folder.name) if record is not None else None
    return None


def _notes_file(root: Path) -> Path | None:
    cache = cache_folder()
    name = hashlib.blake2b(os.fsencode(os.path.realpath(root)), digest_size=12).hexdigest()
    return cache / "runs" / f"{name}.jsonl" if cache is not None else None


def _read_notes(notes: Path | None) -> dict[str, Entry]:
    if notes is None:
        return {}
    known = {}
    with contextlib.suppress(OSError):
        for line in notes.read_bytes().split(b"\n")[:-1]:
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                row = json.loads(line)
                known[str(row["run"])] = Entry(row["kin"], row["asked"], row["early"])
    return known
