"""Runs with different settings, paired by seed: which settings differ, and by how much the errors do."""

import logging
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenly.errors import DataError, SetupError, UsageError
from evenly.intervals import Interval, holm, interval, paired_difference, points_with_interval
from evenly.records.comparison import relative_cost
from evenly.records.identity import APART, data_key
from evenly.records.query import runs as all_runs
from evenly.records.run import DONE, RECIPE, Run
from evenly.typed.mappings import digest, flatten

_log = logging.getLogger(__name__)
EARLY = "resampling.early"  # differs between seeds, like the early runs
SPLITS = ("test", "validation")


@dataclass(frozen=True)
class Group:
    """The runs of one recipe, by seed, its settings by dotted path, and the ID of the run by which it was named."""

    runs: Mapping[int, Run]
    settings: Mapping[str, Any]
    named: str

    @property
    def method(self) -> str:
        """The method that its settings amount to."""
        return method_of(self.settings)

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
    by_key: dict[tuple[str, str], dict[int, Run]] = {keys[run.id]: {} for run in chosen}
    if len(by_key) < 2:
        same = list(dict.fromkeys(run.id for run in chosen))
        what = f"both are run {same[0]}" if len(same) == 1 else f"{' and '.join(same)} differ only in the seed"
        raise UsageError(f"{what}: there is nothing to compare. `evenly runs` lists the others.")
    for run in [*chosen, *filter(_has_identity, all_runs(_folder(chosen, root)))]:
        key = keys.get(run.id) or _key(run)
        if key in by_key and run.state == "done":
            try:
                _check_numbers(run)
            except DataError as error:
                if run.id in keys:  # the user named it
                    raise
                _log.warning("skipped %s", error)
                continue
            by_key[key].setdefault(int(run.recipe.get("seed", 0)), run)
    for run in chosen:
        if not by_key[keys[run.id]]:
            raise UsageError(f"run {run.id} is {run.state}: only runs that are done can be compared.")
    named = {keys[run.id]: run.id for run in reversed(chosen)}
    return [
        Group(dict(sorted(of.items())), _settings(next(iter(of.values()))), named[key]) for key, of in by_key.items()
    ]


def comparable_groups(runs: Iterable[Run]) -> list[list[Group]]:
    """The recipes of finished runs, for each data set that has several: plain training with the most seeds first.

    Early runs are not compared, and runs that cannot be read are left out; of two with one seed the first counts.
    """
    by_data: dict[str, dict[str, dict[int, Run]]] = {}
    for run in runs:
        try:
            if run.state == "done" and run.identity is not None and not is_early(flatten(run.recipe)):
                (data, recipe), seed = _key(run), int(run.recipe.get("seed", 0))
                _check_numbers(run)
                by_data.setdefault(data, {}).setdefault(recipe, {}).setdefault(seed, run)
        except (SetupError, ValueError, TypeError):  # a DataError is a ValueError
            continue
    several = []
    for recipes in by_data.values():
        found = [
            Group(dict(sorted(of.items())), _settings(next(iter(of.values()))), next(iter(of.values())).id)
            for of in recipes.values()
        ]
        if len(found) > 1:
            several.append(sorted(found, key=lambda group: (group.method != "plain", -len(group.runs))))
    return several


def method_of(settings: Mapping[str, Any]) -> str:
    """The method of a run from its settings by dotted path: plain, sam, useful, sam+useful:8, logit-penalty, …

    >>> method_of({}), method_of({"ascent.rule": "sam", "resampling.method": "useful"})
    ('plain', 'sam+useful')
    >>> method_of({"resampling.method": "useful", "resampling.factor": 8, "resampling.augment": ["noise:0.2"]})
    'useful:8+noise'
    >>> method_of({"resampling.method": "random", "resampling.factor": 5, "resampling.like": "misclassified"})
    'random:5+like-misclassified'
    >>> method_of({"until.rule": "gain"}), method_of({"logit_penalty": 0.01})
    ('early', 'logit-penalty')
    """
    given = dict(settings)
    resampling, factor = given.get("resampling.method", "none"), given.get("resampling.factor", 2)
    if resampling != "none" and factor != 2:
        resampling = f"{resampling}:{factor}"
    augment = given.get("resampling.augment") or ()
    target = given.get("resampling.augment_target", "hard")
    words = {
        str(given.get("ascent.rule", "none")): True,
        "early" if is_early(settings) else str(resampling): True,
        "augment-all" if target == "all" else ",".join(str(each).partition(":")[0] for each in augment): bool(augment),
        f"like-{given.get('resampling.like')}": bool(given.get("resampling.like")),
        "right": given.get("resampling.among") == "right",
        "continue": given.get("resampling.start") == "early",
        "logit-penalty": bool(given.get("logit_penalty")),
        "label-smoothing": bool(given.get("label_smoothing")),
        "dfr": bool(given.get("last_layer")),
    }
    return "+".join(word for word, applies in words.items() if applies and word != "none") or "plain"


def is_early(settings: Mapping[str, Any]) -> bool:
    """Whether a run with these settings ends when its examples are separated."""
    return bool(settings.get("until.rule", "end") != "end")


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


def conclusions(names: Sequence[str], pairs: Sequence[Pair]) -> list[str]:
    """A sentence for each difference, and for the runs that learned nothing; `names` are those of the groups.

    Of many recipes one looks better by chance: a difference is announced if it remains after Holm's correction.
    """
    sentences = []
    differences = [pair.difference for pair in pairs[1:]]
    certain = [False, *holm([math.nan if each is None else each.p_value for each in differences])]
    for name, pair, is_certain in zip(names, pairs, certain, strict=True):
        num = len(pair.group.runs)
        if lost := len(pair.group.collapsed_runs()):
            sentences.append(f"{lost} of {num} {'run' if num == 1 else 'runs'} like {name} learned nothing.")
        if pair is pairs[0]:
            continue
        if pair.difference is None:
            sentences.append(f"{name} shares no seed with {names[0]}: their errors cannot be paired.")
        elif pair.difference.n < 2:
            sentences.append(
                f"{name} and {names[0]} share one seed, which says nothing yet: train both with more seeds."
            )
        elif not pair.difference.excludes_zero:
            sentences.append(
                f"{name}: {points_with_interval(pair.difference)} points. The interval includes zero, so the "
                f"difference to {names[0]} may be chance."
            )
        else:
            word = "lower" if pair.difference.mean < 0 else "higher"
            points = f"{points_with_interval(pair.difference)} points over {pair.difference.n} paired seeds"
            sentences.append(
                f"{name} has a {word} error than {names[0]}: {points}."
                if is_certain
                else f"{name} may have a {word} error than {names[0]}: {points}. One of {len(pairs) - 1} recipes may "
                "differ as much by chance."
            )
    return sentences


def _check_numbers(run: Run) -> None:
    """Raise unless the seed, the errors and the cost of a run are numbers."""
    numbers = {name: run.summary().get(name, 0) for name in ("gradients", *(f"{split}.error" for split in SPLITS))}
    for name, value in numbers.items():
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise DataError(f"{run.path / DONE}: {name} is {value!r:.40}, expected a number. Train the run again.")
    if not isinstance(seed := run.recipe.get("seed", 0), int):
        raise DataError(f"{run.path / RECIPE}: seed is {seed!r:.40}, expected a whole number.")


def _has(of: Sequence[Group], split: str) -> bool:
    return all(f"{split}.error" in run.summary() for group in of for run in group.runs.values())


def _cost(run: Run, first: Run) -> float | None:
    """The cost of a run relative to the first, early runs included; None if that is no longer known."""
    own, base = _gradients(run), _gradients(first)
    return relative_cost(own, baseline=base) if own is not None and base else None


def _gradients(run: Run) -> float | None:
    """The gradients of a run and of the early run that chose its examples; None if that is gone or damaged."""
    own = float(run.summary().get("gradients", 0))
    early = flatten(run.recipe).get(EARLY)
    if early is None:
        return own
    try:
        return own + float(Run.open(str(early), run.path.parent).summary().get("gradients", 0))
    except (ValueError, TypeError):  # a UsageError or a DataError is a ValueError
        return None


def _folder(chosen: Sequence[Run], root: str | os.PathLike[str]) -> Path:
    """The folder in which to look for other seeds: that of the runs named by their folders."""
    return Path(root) if Path(root).is_dir() else chosen[0].path.resolve().parent


def _has_identity(run: Run) -> bool:
    try:
        return run.identity is not None
    except DataError as error:
        _log.warning("skipped %s: %s", run.path, error)
        return False


def _key(run: Run) -> tuple[str, str]:
    """Two digests: of the data, and of every setting that is not the seed."""
    if run.identity is None:
        raise UsageError(f"run {run.id} was made by evenly 0.1, which did not record its data: train it again.")
    return data_key(run.identity["data"]), digest(_settings(run))


def _settings(run: Run) -> dict[str, Any]:
    """Every setting that is not the seed, and digests of what else the training was given."""
    settings = flatten(run.recipe)
    kept = {name: value for name, value in settings.items() if name not in APART and name != EARLY}
    if settings.get("ascent.rule", "none") == "none":
        kept["ascent.rho"] = None  # the recipe has one that nothing reads
    given = dict(run.identity["given"]) if run.identity is not None else {}
    if "indices" in given:
        given["indices"] = "chosen"  # they differ between seeds, like the early runs
    return kept | given | {"data.name": Path(str(settings.get("data.name", ""))).name}  # whatever the form of the path


def _data(run: Run) -> str:
    data = run.identity["data"] if run.identity is not None else {}
    return f"{data.get('name', '?')}, fingerprint {data.get('fingerprint', '?')}"
