"""The ledger: for every experiment and scale one row of plain JSON, and its figure beside it.

A row states the claims, the numbers of every seed and the verdict; nothing in it is written by hand.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from evenly import atomic, environment
from evenly.errors import DataError, UsageError
from evenly.files.layered import find, glob
from evenly.papers import shape
from evenly.papers.claim import DIRECTIONS
from evenly.papers.experiment import KINDS, SCALES, Experiment, Measured
from evenly.papers.identity.behaviour import Identity, of_this_package
from evenly.papers.verdict import VERDICTS, Judged, judge

Row = dict[str, Any]
SMALL = 60.0  # minutes up to which the full size suits any machine
_SEED = re.compile(r"-?[0-9]{1,18}")
_TEXT = re.compile(r".*", re.DOTALL)
_NUMBERS = {_SEED: float}
_VERDICT = frozenset(VERDICTS)
_MEAN = {"mean": float, "n": int, "level": float}
_INTERVAL = ({**_MEAN, "low": float, "high": float}, {**_MEAN, "low": None, "high": None})  # one value has no width
_CLAIM = {
    "name": str, "says": str, "value": str, "against": (str, float), "direction": frozenset(DIRECTIONS),
    "ours": _INTERVAL, "ours_against": (*_INTERVAL, None), "difference": _INTERVAL,
    "paper": (float, None), "paper_against": (float, None), "margin": (float, None), "effect": (float, None),
    "same_level": (bool, None), "seeds_needed": (int, None),
    "settled_if?": (frozenset({"claimed", "measured"}), None), "verdict": _VERDICT, "primary": bool, "corrects": bool,
    "after": bool, "note": str, "values": _NUMBERS, "references": _NUMBERS,
}  # fmt: skip
ROW = {
    "key": str, "title": str, "claim": str, "scale": frozenset(SCALES), "kind": frozenset(KINDS),
    "verdict": _VERDICT, "claims": [_CLAIM],
    "seeds": [int], "declared_seeds": bool, "levels": bool, "deviations": [str], "errata": [str],
    "quantities": {_TEXT: _NUMBERS}, "digest": str, "outside?": [str], "parts": {_TEXT: str}, "command": str,
    "minutes": float, "version": str, "origins": {_SEED: {"revision": str, "cpu": str, "date": str}}, "date": str,
    "figure": (str, None), "drawn": [int], "checksum": str,
    "machine": {"cpu": str, "usable_cpus": (int, None), "machine": str, "python": str,
                "libraries": {_TEXT: (str, None)}},
}  # fmt: skip


def shipped_ledger() -> Path:
    """The ledger that comes with the software: in the package, or at the root of its checkout."""
    inside = Path(__file__).parent / "claims"
    return inside if inside.is_dir() else Path(__file__).parents[3] / "claims"


def path_of(ledger: str | os.PathLike[str], key: str, scale: str) -> Path:
    """The path of an experiment's row at one scale.

    >>> path_of("claims", "nguyen2024/fig2", "full").name
    'nguyen2024-fig2-full.json'
    """
    return Path(ledger) / f"{key.replace('/', '-')}-{scale}.json"


def row(experiment: Experiment, scale: str, measured: Measured, *, seeds: Sequence[int], minutes: float) -> Row:
    """The row of a measurement: every claim judged, and everything needed to run it again."""
    size, seeds = experiment.scales[scale], sorted(seeds)
    stamp, identity = environment.stamp(), experiment.identity(scale, seeds)
    declared = seeds == sorted(size.seeds)
    return {
        "key": experiment.key,
        "title": experiment.title,
        "claim": experiment.claim,
        "scale": scale,
        **_verdicts(experiment, scale, measured.values),
        "seeds": seeds,
        "declared_seeds": declared,
        "levels": size.levels,
        "deviations": list(size.deviations),
        "errata": list(experiment.errata),
        "quantities": {name: {str(s): v for s, v in by.items()} for name, by in measured.values.items()},
        "digest": identity.digest,
        "outside": sorted(identity.outside),
        "parts": {part.name: part.digest for part in experiment.parts(scale, seeds)},
        "command": f"evenly reproduce {experiment.key} --scale {scale}"
        + ("" if declared else f" --seeds {','.join(map(str, seeds))} --ledger DIR"),
        "minutes": round(minutes, 2),
        "version": stamp["evenly"],
        "origins": {str(seed): dict(origin) for seed, origin in measured.origins.items()},
        "machine": {name: stamp[name] for name in ("cpu", "usable_cpus", "machine", "python", "libraries")},
        "date": stamp["time"],
        "figure": None if scale == "smoke" else f"{experiment.stem}-{scale}.svg",
        "drawn": list(seeds),
    }


def values_of(made: Row) -> dict[str, dict[int, float]]:
    """The quantities of a row, by seed."""
    return {name: {int(seed): v for seed, v in by.items()} for name, by in made["quantities"].items()}


def origins_of(made: Row) -> dict[int, dict[str, str]]:
    """Where each seed of a row was measured."""
    return {int(seed): origin for seed, origin in made["origins"].items()}


def judge_again(made: Row, experiment: Experiment) -> Row:
    """The same numbers, judged by the current claims; nothing is measured."""
    values, size = values_of(made), experiment.scales[made["scale"]]
    words = {"title": experiment.title, "claim": experiment.claim, "errata": list(experiment.errata)}
    declared = {"levels": size.levels, "deviations": list(size.deviations)}
    return {**made, **words, **declared, **_verdicts(experiment, made["scale"], values)}


def _verdicts(experiment: Experiment, scale: str, values: Mapping[str, Mapping[int, float]]) -> dict[str, Any]:
    """Every claim, judged; the verdict of the row is the worst of the primary ones."""
    levels, primary = experiment.scales[scale].levels, experiment.primary_claims
    claims = [judge(claim, values, levels=levels) for claim in experiment.claims]
    return {
        "kind": experiment.kind(scale),
        "verdict": max((each.verdict for each in claims if each.claim in primary), key=VERDICTS.index),
        "claims": [{**_judged_record(each), "primary": each.claim in primary} for each in claims],
    }


def write(ledger: str | os.PathLike[str], made: Row) -> Path:
    """Write a row to its place, with a checksum of its content."""
    path = path_of(ledger, made["key"], made["scale"])
    path.parent.mkdir(parents=True, exist_ok=True)
    made = {**made, "checksum": _checksum(made)}
    atomic.write_text(path, json.dumps(made, indent=1, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def read(ledger: str | os.PathLike[str], key: str, scale: str) -> Row | None:
    """The row of an experiment at one scale; None if it was not run."""
    path = find(ledger, path_of(ledger, key, scale).name)
    return _read(path) if path.is_file() else None


def rows(ledger: str | os.PathLike[str]) -> list[Row]:
    """Every row, in the order of file names."""
    return [_read(path) for path in glob(ledger, "*.json")]


def stale(made: Row, experiment: Experiment) -> bool:
    """Whether a row's numbers are no longer what would be measured: a default, a formula or a quantity has changed."""
    if made["scale"] not in experiment.scales:
        return True
    named = {name for claim in experiment.claims for name in (claim.value, claim.against) if isinstance(name, str)}
    if named - made["quantities"].keys():
        return True
    written = Identity(made["digest"], frozenset(made.get("outside", ())))
    return not of_this_package().same(written, experiment.identity(made["scale"], made["seeds"]))


def _read(path: Path) -> Row:
    remedy = "Remove it and run `evenly reproduce` again, or give another --ledger."
    made: Row = shape.read(path, ROW, remedy=remedy)
    named = path_of(path.parent, made["key"], made["scale"]).name
    if named != path.name:
        raise DataError(f"{path} holds the row of {made['key']} at {made['scale']}: call it {named}, or remove it.")
    if made.pop("checksum") != _checksum(made):
        raise DataError(f"{path} was edited: its numbers are not those that were written. {remedy}")
    if not made["claims"] or not made["seeds"]:
        raise DataError(f"{path} cannot be read (it has no {'seeds' if made['claims'] else 'claims'}). {remedy}")
    return made


def _checksum(made: Row) -> str:
    """Sixteen hex digits over the content of a row."""
    text = json.dumps(made, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _judged_record(each: Judged) -> dict[str, Any]:
    claim = each.claim
    return {
        "name": claim.name,
        "says": claim.says,
        "direction": claim.direction,
        "value": claim.value,
        "against": claim.against,
        "ours": _interval(each.value),
        "ours_against": _interval(each.against),
        "difference": _interval(each.difference),
        "paper": claim.paper,
        "paper_against": claim.paper_against,
        "margin": claim.margin,
        "effect": each.effect,
        "same_level": each.same_level,
        "verdict": each.verdict,
        "seeds_needed": each.seeds_needed,
        "settled_if": each.settled_if,
        "corrects": claim.corrects,
        "after": claim.after,
        "note": claim.note,
        "values": {str(seed): value for seed, value in zip(each.seeds, each.values, strict=True)},
        "references": {str(seed): value for seed, value in zip(each.seeds, each.references, strict=True)},
    }


def _interval(interval_: Any) -> dict[str, Any] | None:
    if interval_ is None:
        return None
    # One value has no interval, and JSON has no NaN.
    return {name: None if value != value else value for name, value in asdict(interval_).items()}


def resolve_scale(text: str, experiment: Experiment) -> str:
    """The scale of that name, or for `auto` the paper's own if it takes at most an hour.

    `small` also means `full` for an experiment without `small` whose full size is small.
    """
    if text != "auto":
        full = experiment.scales.get("full")
        if text == "small" and text not in experiment.scales and full is not None and full.minutes <= SMALL:
            return "full"
        if text not in experiment.scales:
            raise UsageError(f"{experiment.key} has no scale {text!r}: it has {', '.join(experiment.scales)}.")
        return text
    full = experiment.scales.get("full")
    if full is not None and (full.minutes <= SMALL or "small" not in experiment.scales):
        return "full"
    return "small" if "small" in experiment.scales else "smoke"
