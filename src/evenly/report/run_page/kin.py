"""The runs that may belong to a comparison, found without opening the others of their folder; and the data of a run."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenly import records
from evenly.errors import DataError, SetupError
from evenly.records import Run, index
from evenly.records.identity import data_key


def around(folder: Path, given: Sequence[Run]) -> dict[Path, Run]:
    """The runs in `folder` that are of a kind with those given: of the same data, made from them, or their early runs.

    Runs of evenly 0.1, which kept no identity, are only with each other.
    """
    noted = index.entries(folder)
    if any(noted.get(run.path.name) is None for run in given):
        old = {folder / run.path.name: run for run in records.runs(folder) if noted.get(run.path.name) is None}
    else:
        old = {}
    names = {run.path.name for run in given}
    names |= {name for name, entry in noted.items() if entry is not None and entry.early in names}
    kinds = {entry.kin for name in names if (entry := noted.get(name)) is not None}
    names |= {name for name, entry in noted.items() if entry is not None and entry.kin in kinds}
    names |= {str(entry.early) for name in names if (entry := noted.get(name)) is not None and entry.early in noted}
    return old | {folder / name: Run(folder / name) for name in sorted(names)}


def data_of(run: Run, recipe: Mapping[str, Any]) -> tuple[str, str]:
    """What the data of a run are known by: within a comparison, and for its seed alone.

    A run of evenly 0.1 has noted a fingerprint beside its environment; for data that are drawn by the seed it differs
    from seed to seed, so that only data of the user's own, which are given by a path, are told apart by it.
    """
    if run.identity is not None:
        return data_key(run.identity["data"]), str(run.identity["data"]["fingerprint"])
    name = str(recipe.get("data.name", ""))
    if os.sep not in name and not Path(name).suffix:
        return "", ""
    try:
        stamps = run.stamps()
    except (DataError, SetupError):
        return "", ""
    noted = str(stamps[-1].get("data")) if stamps else ""
    return noted, noted
