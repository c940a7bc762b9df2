"""The stored results of experiments: a folder for every finished part, read instead of running it again."""

import hashlib
import logging
import re
import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from evenly import environment
from evenly.errors import DataError, UsageError
from evenly.papers import shape
from evenly.papers.experiment import Context, Measured, Part, PartResult
from evenly.records import Run, json_text
from evenly.records.removal import ID, refusal, remove

PARTS = "parts"  # of a folder of runs
FOUND = "found.json"
_log = logging.getLogger(__name__)
_TEXT, _SEED = re.compile(r".*", re.DOTALL), re.compile(r"-?[0-9]{1,18}")
_NUMBER = (float, frozenset({"NaN", "Infinity", "-Infinity"}))  # as records spell them
_FOUND = {"values": {_TEXT: {_SEED: _NUMBER}}, "series": {_TEXT: shape.ANYTHING}}
_DONE = {"part": str, "work": str, "minutes": float, "checksum": str}
_STAMPS = [{"evenly": str, "source": ({"revision": str, "dirty": (bool, None)}, None), "cpu": str, "time": str}]


def store(context: Context, part: Part, work: Callable[[], PartResult]) -> None:
    """Run an unfinished part and store its result; its folder is identified by what it computes, not by a name."""
    from evenly.training.ensemble.checkpoints import FOLDER, keeping_checkpoints

    begun = time.monotonic()
    recipe = {"code": part.identity.digest, "arguments": part.resolved}
    with Run.create(context.runs / PARTS, recipe, part.digest, environment=environment.stamp()) as run:
        if run.state == "done":
            return
        with keeping_checkpoints(run) as kept:
            result = work()
        values = {name: {str(seed): float(v) for seed, v in by.items()} for name, by in result.values.items()}
        path = run.write_json(FOUND, {"values": values, "series": result.series})
        # Its runs may have been trained by other processes, or before an interruption.
        trained = sum(_seconds(context, name) for name in set(run_ids(result.series)))
        took = max(kept.earlier + time.monotonic() - begun, trained) / 60
        shutil.rmtree(run.path / FOLDER, ignore_errors=True)
        run.finish({"part": part.name, "work": part.address, "minutes": took, "checksum": _checksum(path)})


def is_stored(context: Context, part: Part) -> bool:
    """Whether a part is done and its result is there; if only the result is gone, the part will run again."""
    folder = _folder(context, part)
    if not (folder / "done").is_file():
        return False
    if not (folder / FOUND).exists():
        _log.warning("%s is gone from a part that was done (%s): the part is done again.", folder / FOUND, part.name)
        remove(folder.parent, folder.name)
        return False
    return True


def load(context: Context, parts: Sequence[Part]) -> tuple[Measured, float]:
    """The results of all parts, and the minutes they took."""
    values: dict[str, dict[int, float]] = {}
    series: dict[str, dict[str, Any]] = {}
    minutes = 0.0
    stamps: dict[int, list[dict[str, Any]]] = {}  # of all parts that measured a seed
    for part in parts:
        result, took, own = _read(_folder(context, part))
        minutes += took
        series[part.name] = result["series"]
        for seed in {int(seed) for by_seed in result["values"].values() for seed in by_seed}:
            stamps.setdefault(seed, []).extend(own)
        for name, by_seed in result["values"].items():
            mine = values.setdefault(name, {})
            for seed, number in by_seed.items():
                if int(seed) in mine and mine[int(seed)] != number:
                    raise UsageError(f"two parts measured {name!r} for seed {seed} and do not agree: name them apart.")
                mine[int(seed)] = number
    ordered = {name: dict(sorted(by.items())) for name, by in values.items()}
    origins = {seed: _origin(each) for seed, each in sorted(stamps.items())}
    return Measured(ordered, series, origins), minutes


def discard(context: Context, part: Part) -> None:
    """Delete a finished part: its result and the runs that it trained.

    Its result names those runs; anything that is not the ID of a run of evenly's in that folder is left alone.
    """
    folder = _folder(context, part)
    if not (folder / "done").exists():
        return
    try:
        trained = run_ids(_read(folder)[0]["series"])
    except DataError:
        _log.warning("%s is damaged: the part is done again, and the runs that it trained are kept.", folder)
        trained = []
    for name in trained:
        if (why := refusal(context.runs, name)) is None:
            remove(context.runs, name)
        elif not (isinstance(name, str) and ID.fullmatch(name)) or (context.runs / name).exists():
            _log.warning("%s names a run that is not removed: %s", folder / FOUND, why)
    remove(folder.parent, folder.name)


def _folder(context: Context, part: Part) -> Path:
    return context.runs / PARTS / part.digest


def _seconds(context: Context, name: str) -> float:
    """The seconds of training that a run's summary states."""
    return float(Run.open(name, context.runs).summary().get("seconds", 0.0))


def run_ids(series: Mapping[str, Any]) -> list[Any]:
    """The runs that a result names: its own, or those of the comparisons in it."""
    several = series.get("runs", {})
    own = [series["run"]] if "run" in series else list(several.values()) if isinstance(several, dict) else []
    inner = (each for name, each in series.items() if name != "runs" and isinstance(each, dict) and "runs" in each)
    return [*own, *(name for each in inner for name in run_ids(each))]


def _read(folder: Path) -> tuple[dict[str, Any], float, list[dict[str, Any]]]:
    """The result of a part, its minutes and the stamps of the processes that worked on it, as they were written."""
    remedy = f"Remove the folder {folder}, and the same command does this part again."
    done = shape.read(folder / "done", _DONE, remedy=remedy)
    stamps = shape.read(folder / "environment.json", _STAMPS, remedy=remedy)
    result = shape.read(folder / FOUND, _FOUND, remedy=remedy)
    if not stamps:
        raise DataError(f"{folder / 'environment.json'} cannot be read: it holds no stamp. {remedy}")
    if _checksum(folder / FOUND) != done["checksum"]:
        raise DataError(f"{folder / FOUND} is not what was written there: something has changed it. {remedy}")
    return json_text.decode(result), float(done["minutes"]), stamps


def _origin(stamps: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Which revisions and processors did a piece of work, and when it was done."""
    return {
        "revision": ", ".join(dict.fromkeys(_revision(stamp) for stamp in stamps)),
        "cpu": ", ".join(dict.fromkeys(str(stamp["cpu"]) for stamp in stamps)),
        "date": max(stamp["time"] for stamp in stamps),
    }


def _checksum(path: Path) -> str:
    return hashlib.blake2b(path.read_bytes(), digest_size=16).hexdigest()


def _revision(stamp: Mapping[str, Any]) -> str:
    """The revision of the code that did a piece of work, from its stamp."""
    source = stamp["source"]
    if not source:
        return f"evenly {stamp['evenly']}"
    return f"{source['revision']} with changes" if source["dirty"] else str(source["revision"])
