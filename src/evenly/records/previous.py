"""The run that a person may have meant by the same words, where it is not the one that these words mean now."""

import os
from pathlib import Path

from evenly.errors import DataError, SetupError
from evenly.records import index
from evenly.records.identity import IDENTITY, Identity, differences
from evenly.records.run import RECIPE, Run
from evenly.typed.mappings import digest

_LOOKED_AT = 8  # of the runs asked for in the same words, the last ones


def previous_run(root: str | os.PathLike[str], identity: Identity) -> str | None:
    """A sentence that names the last run asked for in the same words, and why it does not answer them any more."""
    root = Path(root)
    asked = identity.record()["asked"]
    for name in index.runs_with_request(root, asked)[:_LOOKED_AT]:
        run = Run(root / name)
        try:
            kept = run.identity
            found = differences(kept, run.recipe, identity) if kept is not None and kept["asked"] == asked else []
        except (DataError, SetupError):
            continue
        if found:
            return (
                f"run {identity.id} is new: run {name} was asked for in the same words, but {' and '.join(found)}. "
                "It stays as it is."
            )
    old = root / digest(identity.asked, digits=12)  # how evenly 0.1 named the run of this command
    if (old / RECIPE).is_file() and not (old / IDENTITY).exists():
        return (
            f"run {identity.id} is new: run {old.name} was made by evenly 0.1, which did not keep what data it was of, "
            "and is not taken for it. It stays as it is, for `evenly runs`, `report` and `measure`."
        )
    return None
