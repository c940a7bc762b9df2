"""Deleting a run: only a folder that evenly made, by the run's own ID, directly in the folder of runs."""

import contextlib
import json
import os
import re
import shutil
from pathlib import Path
from typing import Any

from evenly.errors import SetupError, UsageError
from evenly.records.lock import Lock
from evenly.records.run import DONE, ENVIRONMENT, LOCK, RECIPE

ID = re.compile(r"[0-9a-f]{6,64}")
_REMOVED = re.compile(r"\.[0-9a-f]{6,64}\.removed")  # the name of a run's folder while it is being deleted


def remove(root: str | os.PathLike[str], name: str) -> None:
    """Delete the run `name` of the folder `root`, with everything in it; links in it are removed, never followed.

    A path, a link, a folder without the records of a run, or a run that some process is writing is refused. The
    folder is renamed first, atomically: a run either exists or does not. If the process is killed, the rest of the
    folder is deleted with the next run that is removed.

    >>> remove("runs", "../../precious")
    Traceback (most recent call last):
    evenly.errors.UsageError: '../../precious' is not the ID of a run: expected its 12 hex digits, and no path.
    """
    if (why := refusal(root, name)) is not None:
        raise UsageError(why)
    sweep(root)
    folder = Path(root) / name
    lock = Lock(folder / LOCK)
    try:
        nameless = folder.with_name(f".{name}.removed")
        folder.rename(nameless)
        shutil.rmtree(nameless)
    except OSError as error:
        raise SetupError(f"cannot remove {folder}: {error.strerror}. Make it writable and repeat.") from error
    finally:
        lock.release()


def sweep(root: str | os.PathLike[str]) -> None:
    """Delete the remains in `root` of runs whose removal was interrupted."""
    with contextlib.suppress(OSError), os.scandir(root) as inside:
        for one in inside:
            if _REMOVED.fullmatch(one.name) and one.is_dir(follow_symlinks=False):
                shutil.rmtree(one.path, ignore_errors=True)


def refusal(root: str | os.PathLike[str], name: Any) -> str | None:
    """Why the folder of this name in `root` may not be deleted; None if it is a run.

    >>> refusal("runs", "")
    "'' is not the ID of a run: expected its 12 hex digits, and no path."
    """
    if not isinstance(name, str) or not ID.fullmatch(name):
        return f"{name!r:.80} is not the ID of a run: expected its 12 hex digits, and no path."
    folder = Path(root) / name
    if folder.is_symlink() or not folder.is_dir():
        what = "a link" if folder.is_symlink() else "no folder"
        return f"{folder} is {what}: only a run's own folder can be removed. `evenly runs` lists them."
    missing = _missing(folder)
    if missing is None:
        return None
    return f"{folder} is left as it is: {missing}, and so may be no run of evenly's. Look at it, and move it away."


def _missing(folder: Path) -> str | None:
    """What this folder lacks of a run: its own recipe, or the stamp of the evenly that wrote it."""
    for name in (RECIPE, ENVIRONMENT):
        if (folder / name).is_symlink() or not (folder / name).is_file():
            return f"it has no {name} of its own"
    if (folder / LOCK).is_symlink() or (folder / DONE).is_symlink():
        return "its lock or its end is a link"
    try:
        stamps = json.loads((folder / ENVIRONMENT).read_bytes())
    except (ValueError, OSError, RecursionError):
        stamps = None
    if not isinstance(stamps, list) or not any(isinstance(each, dict) and "evenly" in each for each in stamps):
        return f"its {ENVIRONMENT} has no stamp of evenly's"
    return None
