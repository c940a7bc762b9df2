"""The earlier run of the same command, if changed data or defaults make it a new run."""

import os
from pathlib import Path

from evenly.errors import DataError, SetupError
from evenly.records import index
from evenly.records.identity import IDENTITY, Identity, differences
from evenly.records.run import RECIPE, Run
from evenly.typed.mappings import digest

_LOOKED_AT = 8  # of the runs with the same request, the latest


def previous_run(root: str | os.PathLike[str], identity: Identity) -> str | None:
    """A sentence that names the last run of the same request and why it does not count; None if there is none."""
    root = Path(root)
    request = identity.record()["asked"]
    for name in index.runs_with_request(root, request)[:_LOOKED_AT]:
        run = Run(root / name)
        try:
            kept = run.identity
            changes = differences(kept, run.recipe, identity) if kept is not None and kept["asked"] == request else []
        except (DataError, SetupError):
            continue
        if changes:
            return (
                f"run {identity.id} is new: run {name} had the same request, but {' and '.join(changes)}. "
                "It stays as it is."
            )
    old = root / digest(identity.request, digits=12)  # the name that evenly 0.1 gave to the run of this command
    if (old / RECIPE).is_file() and not (old / IDENTITY).exists():
        return (
            f"run {identity.id} is new: run {old.name} was made by evenly 0.1, which did not record its data, so "
            "it is not reused. It stays as it is, for `evenly runs`, `report` and `measure`."
        )
    return None
