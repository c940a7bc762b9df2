"""Archives of runs, made in memory, for machines that share no folder; they are unpacked run by run."""

import contextlib
import hashlib
import io
import json
import tarfile
import tempfile
from collections.abc import Iterable
from pathlib import Path

from evenly import atomic
from evenly.records.lock import is_locked
from evenly.sweep.plan import Job

NOT_RUNS = ("sweep",)  # logs and the state of plans
MADE = "made"  # in the folder of plans: the names of the runs that each job made


def pack(folder: Path, names: Iterable[str] | None = None) -> bytes:
    """An archive of the runs of a folder, or of those with these names."""
    chosen = [path.name for path in folder.iterdir() if path.name not in NOT_RUNS] if names is None else names
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name in sorted(chosen):
            archive.add(folder / name, arcname=name)
    return buffer.getvalue()


def unpack(content: bytes, folder: Path) -> None:
    """Unpack an archive of `pack` run by run; a run in the folder that is done or being written is kept."""
    if not content:
        return
    with tempfile.TemporaryDirectory(dir=folder, prefix=".arriving-") as arriving:
        with tarfile.open(fileobj=io.BytesIO(content)) as archive:
            archive.extractall(arriving, filter="data")
        for path in sorted(Path(arriving).iterdir()):
            _lay(path, folder / path.name, Path(arriving))


def _lay(new: Path, place: Path, arriving: Path) -> None:
    with contextlib.suppress(OSError):
        new.rename(place)
        return
    if not (new.is_dir() and place.is_dir()):
        return  # another command has written this file meanwhile
    if not (new / "recipe.yaml").exists():  # a folder of runs, such as that of the parts of experiments
        for path in sorted(new.iterdir()):
            _lay(path, place / path.name, arriving)
    elif (new / "done").exists() and not (place / "done").exists() and not is_locked(place / "lock"):
        with contextlib.suppress(OSError):
            place.rename(arriving / f".{place.name}-before")
            new.rename(place)


def remember(runs: Path, job: Job, content: bytes) -> None:
    """Record which runs a job made, so that they can be sent along if it runs on another node."""
    if not content:
        return
    with tarfile.open(fileobj=io.BytesIO(content)) as archive:
        names = {member.name.rpartition("/")[0] for member in archive if member.name.endswith("/recipe.yaml")}
    path = _memory(runs, job)
    path.parent.mkdir(parents=True, exist_ok=True)
    atomic.write_json(path, sorted(names))


def pack_previous_runs(runs: Path, job: Job) -> bytes:
    """An archive of this job's earlier runs that are still in the folder."""
    try:
        names = json.loads(_memory(runs, job).read_bytes())
    except (OSError, ValueError):
        return b""
    there = [name for name in names if isinstance(name, str) and ".." not in name and (runs / name).is_dir()]
    return pack(runs, there) if there else b""


def _memory(runs: Path, job: Job) -> Path:
    key = hashlib.blake2b(json.dumps([job.call, job.arguments], sort_keys=True).encode(), digest_size=12).hexdigest()
    return runs / "sweep" / MADE / f"{key}.json"
