"""The user's cache folder: deleting it costs time and nothing else."""

import os
from contextlib import suppress
from pathlib import Path


def cache_folder() -> Path | None:
    """`EVENLY_CACHE`, else `evenly` in `XDG_CACHE_HOME` or `~/.cache`; None where there is no home.

    >>> cache_folder() is None or cache_folder().is_absolute()
    True
    """
    if os.environ.get("EVENLY_CACHE"):
        return Path(os.environ["EVENLY_CACHE"]).expanduser().absolute()
    if os.environ.get("XDG_CACHE_HOME"):
        return Path(os.environ["XDG_CACHE_HOME"]).absolute() / "evenly"
    with suppress(RuntimeError):
        return Path.home() / ".cache" / "evenly"
    return None
