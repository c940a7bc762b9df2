"""Runs with different settings, paired by seed: which settings differ, and by how much the errors do."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenly.errors import UsageError
from evenly.intervals import Interval, interval, paired_difference
from evenly.records.comparison import relative_cost
from evenly.records.identity import APART, data_key
from evenly.records.query import runs as all_runs
from evenly.records.run import Run
from evenly.typed.mappings import digest, flatten

EARLY = "resampling.early"  # differs between seeds, like the early runs
SPLITS = ("test", "validation")


@dataclass(frozen=True)
class Group:
    """The runs of one recipe, by seed, its settings by dotted path, and the ID of the run by which it was named."""

    runs: Mapping[int, Run]
    settings: Mapping[str, Any]
    named: str

    def errors(self, split: str) -> dict[int, float]:
        """The error of every seed."""
        return {seed: float(run.summary()[f"{split}.error"]) for seed, run in self.runs.items()}

    def collapsed_runs(self) -> list[str]:
        """The IDs of the runs that learned nothing."""
        return [run.id for run in self.runs.values() if "collapsed" in run.summary()]


@dataclass(frozen=True)
class Pair:
    """A group beside the first one: its error, the difference over shared seeds, and its cost in gradients."""

    group: Group
    error: Interval
    difference: Interval | None
    cost: float | None


def groups(which: Sequence[str], root: str | os.PathLike[str] = "runs") -> list[Group]:
    """The recipes of the named runs, each with all runs in `root` that differ from it in the seed alone.

    Runs of different data are refused, and so are names that all mean one recipe.
    """
    chosen = [Run.open(name, root) for name in which]
    keys = {run.id: _key(run) for run in chosen}
    first = chosen[0]
    for run in chosen[1:]:
        if keys[run.id][0] != keys[first.id][0]:
            raise UsageError(
                f"runs {first.id} and {run.id} are not of the same data ({_data(first)} and {_data(run)}): a "
                "difference of their errors would say nothing."
            )
    found: dict[tuple[str, str], dict[int, Run]] = {keys[run.id]: {} for run in chosen}
    if len(found) < 2:
        raise UsageError(
            f"{' and '.join(dict.fromkeys(run.id for run in chosen))} are of one recipe and differ in the seed at "
            "most: there is nothing to compare. `evenly runs` lists the others."
        )
    for run in [*chosen, *(run for run in all_runs(_folder(chosen, root)) if run.identity is not None)]:
        key = keys.get(run.id) or _key(run)
        if key in found and run.state == "done":
            found[key].setdefault(int(run.recipe.get("seed", 0)), run)
    for run in chosen:
        if not found[keys[run.id]]:
            raise UsageError(f"run {run.id} is {run.state}: only runs that are done can be compared.")
    named = {keys[run.id]: run.id for run in reversed(chosen)}
    return [
        Group(dict(sorted(of.items())), _settings(next(iter(of.values()))), named[key]) for key, of in found.items()
    ]


def differing_settings(of: Sequence[Group]) -> dict[str, list[Any]]:
    """The settings in which the groups differ, each with its value in every group."""
    names = dict.fromkeys(name for group in of for name in group.settings)
    values = {name: [group.settings.get(name) for group in of] for name in names}
    return {name: row for name, row in values.items() if any(digest(value) != digest(row[0]) for value in row)}


def compare(of: Sequence[Group], split: str | None = None) -> tuple[str, list[Pair]]:
    """The split on which all runs have an error, and every group beside the first, paired by seed."""
    split = split or next((name for name in SPLITS if _has(of, name)), None)
    if split is None or not _has(of, split):
        raise UsageError(
            f"not all of these runs have an error on {split or 'test or validation'}: hold some examples out "
            "(--set data.validation=0.2), or give another --split."
        )
    base = of[0].errors(split)
    pairs = []
    for group in of:
        own = group.errors(split)
        shared = sorted(base.keys() & own.keys())
        difference = (
            paired_difference([own[s] for s in shared], [base[s] for s in shared])
            if group is not of[0] and shared
            else None
        )
        costs = [_cost(group.runs[s], of[0].runs[s]) for s in shared]
        known = [each for each in costs if each is not None]
        cost = sum(known) / len(known) if known and len(known) == len(costs) else None
        pairs.append(Pair(group, interval(list(own.values())), difference, cost))
    return split, pairs


def _has(of: Sequence[Group], split: str) -> bool:
    return all(f"{split}.error" in run.summary() for group in of for run in group.runs.values())


def _cost(run: Run, first: Run) -> float | None:
    """The cost of a run relative to the first, early runs included; None if that is no longer known."""
    own, base = _gradients(run), _gradients(first)
    return relative_cost(own, baseline=base) if own is not None and base else None


def _gradients(run: Run) -> float | None:
    """The gradients of a run and of the early run that chose its examples; None where the early run is gone."""
    own = float(run.summary().get("gradients", 0))
    early = flatten(run.recipe).get(EARLY)
    if early is None:
        return own
    try:
        return own + float(Run.open(str(early), run.path.parent).summary().get("gradients", 0))
    except UsageError:
        return None


def _folder(chosen: Sequence[Run], root: str | os.PathLike[str]) -> Path:
    """The folder in which to look for other seeds: that of the runs named by their folders."""
    return Path(root) if Path(root).is_dir() else chosen[0].path.resolve().parent


def _key(run: Run) -> tuple[str, str]:
    """Two digests: of the data, and of every setting that is not the seed."""
    if run.identity is None:
        raise UsageError(
            f"run {run.id} was made by evenly 0.1, which did not keep what data it was of: train it again."
        )
    given = {name: value for name, value in run.identity["given"].items() if name != "indices"}
    return data_key(run.identity["data"]), digest([_settings(run), given])


def _settings(run: Run) -> dict[str, Any]:
    settings = flatten(run.recipe)
    kept = {name: value for name, value in settings.items() if name not in APART and name != EARLY}
    if settings.get("ascent.rule", "none") == "none":
        kept["ascent.rho"] = None  # the recipe has one that nothing reads
    return kept | {"data.name": Path(str(settings.get("data.name", ""))).name}  # whatever the form of the path


def _data(run: Run) -> str:
    data = run.identity["data"] if run.identity is not None else {}
    return f"{data.get('name', '?')}, fingerprint {data.get('fingerprint', '?')}"
