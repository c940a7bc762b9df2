"""Which runs belong together: those of one comparison, by their recipes and their data."""

import glob
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from evenly import progress, records
from evenly.errors import DataError, SetupError, UsageError
from evenly.recipe import from_record, identity_settings
from evenly.records import Run
from evenly.records.identity import APART
from evenly.records.run import DONE, RECIPE, RESERVED
from evenly.report.run_page.kin import around, data_of
from evenly.typed.mappings import flatten

EARLY = "early run"  # the method of a first stage that is looked at by itself

# The numbers of a summary, besides errors, that a page counts with.
COUNTED = {"hard_share", "gradients", "examples_seen", "training_examples"}


class Member:
    """A run of a comparison: how its examples were chosen, its seed, and its early run where that is found."""

    def __init__(self, run: Run, early: Run | None = None) -> None:
        self.run, self.early = run, early
        self.id = run.id
        self.recipe: dict[str, Any] = flatten(run.recipe)
        self.data, self.fingerprint = data_of(run, self.recipe)
        self.method = EARLY if self.is_early else {"none": "original"}.get(self.chosen_by, self.chosen_by)
        self.label = self.method
        self.plain_epochs: int = self.recipe.get("epochs", 0)  # of the plain training that its cost is measured by

    @property
    def chosen_by(self) -> str:
        """The recipe's own word for how the examples were chosen."""
        return str(self.recipe.get("resampling.method", "none"))

    @property
    def is_early(self) -> bool:
        """Whether the run is the first stage of another."""
        return bool(self.recipe.get("until.rule", "end") != "end")

    @property
    def seed(self) -> int:
        """The seed by which it is paired with the runs of the other methods."""
        return int(self.recipe.get("seed", 0))

    @property
    def data_seed(self) -> int:
        """The seed by which its data were drawn, where they are drawn."""
        own = self.recipe.get("data.seed")
        return int(own) if isinstance(own, int) else self.seed

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """A row for every evaluation, in order."""
        return self.run.metrics()

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What the run came to; empty while it is not done."""
        return numbers(self.run)

    @cached_property
    def early_summary(self) -> dict[str, Any]:
        """What its early run came to; empty where that is not known."""
        return numbers(self.early) if self.early is not None else {}

    @cached_property
    def family(self) -> tuple[tuple[str, str], ...]:
        """Recipe and data but for what differs within a comparison: equal for runs that may be compared."""
        return (*_settings(self.settings, but=("resampling.", "until.")), ("data", self.data))

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The settings that count, whichever version of evenly wrote them down."""
        try:
            return flatten(identity_settings(from_record(self.run.recipe)))
        except UsageError:  # of a version that had other settings
            return self.recipe

    @cached_property
    def variant(self) -> tuple[tuple[str, str], ...]:
        """How a method was set: how often hard examples are shown, and what the early run was."""
        if self.chosen_by == "none":
            return ()
        own = [(name, repr(self.recipe.get(name))) for name in ("resampling.factor", "resampling.keep_suspects")]
        first = _settings(flatten(self.early.recipe), but=("resampling.",)) if self.early is not None else ()
        return (*own, *((f"early.{name}", value) for name, value in first))


@dataclass(frozen=True)
class Comparison:
    """The runs that a page is about; `shown` is the one that is looked at closely."""

    members: list[Member]
    shown: Member
    remarks: list[str]

    @cached_property
    def by_label(self) -> dict[str, list[Member]]:
        """The runs of every way of training, by seed; plain training first, then the method."""
        order = {"original": 0, "useful": 1}
        ranked = sorted(self.members, key=lambda m: (order.get(m.method, 2), m.label, m.seed))
        found: dict[str, list[Member]] = {}
        for member in ranked:
            found.setdefault(member.label, []).append(member)
        return found

    @property
    def split(self) -> str:
        """Where errors are compared: the test split, else the validation split, else the training split."""
        known = {name for member in self.members for row in member.metrics[-1:] for name in row}
        return next((split for split in ("test", "validation") if f"{split}.error" in known), "train")


def find(which: Sequence[str | os.PathLike[str]], root: str | os.PathLike[str] = "runs") -> Comparison:
    """The comparison that the given runs belong to, with their siblings in the same folder.

    Each of `which` is a run's ID, its beginning, its folder, or a folder of runs.
    """
    given: list[Run] = []
    named: set[Path] = set()
    listed: dict[Path, list[Run]] = {}
    for word in which:
        path = Path(word)
        if path.is_dir() and not (path / RECIPE).is_file() and any(path.glob(f"*/{RECIPE}")):
            given += listed.setdefault(path.resolve(), records.runs(path))
            if not listed[path.resolve()]:
                raise DataError(f"of the runs in {path} none could be read: their {RECIPE} are damaged.")
        else:
            _refuse_empty(path, root)
            given.append(Run.open(word, root))
            named.add(Path(os.path.realpath(given[-1].path)))
    if not given:
        raise UsageError(
            "which run? Give its ID or folder: evenly report 3f2a --out page.html. `evenly runs` lists them."
        )
    remarks: list[str] = []
    nearby = {Path(os.path.realpath(run.path)): run for run in given}
    first = list(nearby)
    for folder in dict.fromkeys(path.parent for path in first):
        if folder not in listed:
            nearby = around(folder, [run for path, run in nearby.items() if path.parent == folder]) | nearby
    known = {
        path: member
        for path, run in progress.track(list(nearby.items()), "reading recipes")
        if (member := _member(run, path, nearby, remarks)) is not None
    }
    chosen = [known[path] for path in first if path in known]
    if not chosen:
        raise DataError(f"nothing could be read of {given[0].path}: {' '.join(remarks)}")
    return _compare(chosen, list(known.values()), remarks, asked={known[path].id for path in named if path in known})


def _refuse_empty(path: Path, root: str | os.PathLike[str]) -> None:
    """A folder without any run is called that, unless its name is also the beginning of an ID."""
    ours = any((path / name).exists() for name in RESERVED)
    if path.is_dir() and not ours and not any(Path(root).glob(f"{glob.escape(path.name)}*/{RECIPE}")):
        raise UsageError(
            f"the folder {path} holds no runs. Give one that does, or make some: evenly train --runs {path}"
        )


def _member(run: Run, path: Path, nearby: dict[Path, Run], remarks: list[str]) -> Member | None:
    try:
        early = flatten(run.recipe).get("resampling.early")
        first = nearby.get(path.parent / str(early)) if early else None
        member = Member(run, first)
        _ = member.family, member.variant
        for name in ("seed", "epochs"):
            if not isinstance(member.recipe.get(name, 0), int):
                raise DataError(f"{run.path / RECIPE}: {name} is {member.recipe[name]!r}, expected a whole number.")
    except (DataError, SetupError) as error:
        remarks.append(f"Left out {run.id}: {error}")
        return None
    if early and first is None:
        remarks.append(f"The early run {early} of {run.id} is not in its folder: its cost and curve are not known.")
    return member


def _readable(members: list[Member], asked: set[str], remarks: list[str]) -> list[Member]:
    """The runs whose numbers can be read; one that was asked for by name and cannot is an error."""
    found = []
    for member in members:
        try:
            _ = member.metrics, member.summary
        except (DataError, SetupError) as error:
            if member.id in asked:
                raise
            remarks.append(f"Left out {member.id} ({member.method}, seed {member.seed}): {error}")
            continue
        try:
            _ = member.early_summary
        except (DataError, SetupError) as error:
            member.early_summary = {}
            remarks.append(f"Left out what the early run of {member.id} cost: {error}")
        found.append(member)
    return found


def _compare(chosen: list[Member], everyone: list[Member], remarks: list[str], *, asked: set[str]) -> Comparison:
    # A first stage stands for the second stages that were made from it, if there are any.
    whole: list[Member] = []
    for member in chosen:
        second = [m for m in everyone if m.early is not None and m.early.id == member.id]
        whole += second if member.is_early and second else [member]
    families = {member.family for member in whole}
    variants = {member.variant for member in whole if member.variant}
    members = [
        member
        for member in everyone
        if member.family in families
        and not member.is_early
        and (not variants or not member.variant or member.variant in variants)
    ]
    members += [member for member in whole if member not in members]
    members = _of_one_draw(_readable(members, asked, remarks), whole, remarks)
    whole = [member for member in whole if member in members]
    if not whole:
        raise DataError(f"none of the runs could be read. {' '.join(remarks)}")
    members += _readable(_longer(members, everyone), asked, remarks)
    _label(members)
    ranked = sorted(whole, key=lambda m: (m.method != "useful", m.seed))
    shown = ranked[0]
    kept = {member.id for member in members} | {m.early.id for m in members if m.early is not None}
    told = [
        remark
        for remark in dict.fromkeys(remarks)
        if remark.startswith("Left out") or any(name in remark for name in kept)
    ]
    return Comparison(members, shown, told)


def _of_one_draw(members: list[Member], whole: list[Member], remarks: list[str]) -> list[Member]:
    """The runs without those whose seed drew other data than that of another run: then it is the code that differs."""
    drawn: dict[tuple[str, int], str] = {}
    for member in (*whole, *members):
        drawn.setdefault((member.data, member.data_seed), member.fingerprint)
    other = [m for m in members if m.fingerprint != drawn[m.data, m.data_seed] and m not in whole]
    remarks += [f"Left out {m.id} ({m.method}, seed {m.seed}): its seed drew other data then." for m in other]
    return [member for member in members if member not in other]


def numbers(run: Run) -> dict[str, Any]:
    """The summary of a run, in which what is counted with is a number."""
    found = run.summary()
    for name, value in found.items():
        counted = name in COUNTED or ".error" in name or ".worst." in name
        if counted and value is not None and not isinstance(value, int | float):
            raise DataError(f"{run.path / DONE}: {name} is {value!r}, expected a number. Repeat the run.")
    return found


def longer(useful: Member) -> tuple[tuple[str, str], ...] | None:
    """The family of the control that takes as many steps as the method: the same recipe with more epochs."""
    factor = useful.recipe.get("resampling.factor", 2)
    if useful.summary.get("hard_share") is None or not isinstance(factor, int | float):
        return None
    epochs = round(useful.recipe["epochs"] * (1 + useful.summary["hard_share"] * (factor - 1)))
    return tuple((name, repr(epochs)) if name == "epochs" else (name, value) for name, value in useful.family)


def _longer(members: list[Member], everyone: list[Member]) -> list[Member]:
    """The control that takes as many steps as the method, on the original data."""
    found = []
    for useful in (m for m in members if m.method == "useful"):
        wanted = longer(useful)
        for member in everyone:
            same = member.family == wanted and member.seed == useful.seed and member.chosen_by == "none"
            if same and not member.is_early and member not in members and member not in found:
                member.method, member.plain_epochs = "steps", useful.recipe["epochs"]
                found.append(member)
    return found


def _label(members: list[Member]) -> None:
    """Name every run by its method and, where one method was run in several ways, by what differs between them."""
    for method in {member.method for member in members}:
        own = [member for member in members if member.method == method]
        # A control of as many steps has a number of epochs of its own for every seed.
        facts = [dict(m.variant) | (dict(m.family) if method != "steps" else {"data": m.data}) for m in own]
        names = [name for name in facts[0] if len({fact.get(name) for fact in facts}) > 1]
        for member, fact in zip(own, facts, strict=True):
            differing = ", ".join(f"{name}={fact[name].strip(chr(39))}" for name in names if name in fact)
            member.label = f"{method} ({differing})" if differing else method


def _settings(recipe: dict[str, Any], *, but: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, repr(value)) for name, value in sorted(recipe.items()) if name not in APART and not name.startswith(but)
    )
