"""The subject of a page: an experiment, which is a stored comparison with its runs, or a single run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from evenly.errors import DataError, SetupError
from evenly.records import Run
from evenly.records.run import DONE, RECIPE
from evenly.report import palette
from evenly.report.run_pairs import is_early, method_of
from evenly.typed.mappings import flatten

EARLY = "early run"
# The numbers of a summary, besides errors, that a page uses.
COUNTED = {"hard_share", "gradients", "examples_seen", "training_examples"}


class Member:
    """A run of an experiment: its method and seed, and its early run where it has one."""

    def __init__(self, run: Run, method: str, seed: int, *, early: Run | None = None, label: str = "") -> None:
        self.run, self.method, self.seed, self.early = run, method, seed, early
        self.id = run.id
        self.label = label or palette.display_name(method)

    @cached_property
    def recipe(self) -> dict[str, Any]:
        """The settings by their full names."""
        return flatten(self.run.recipe)

    @cached_property
    def metrics(self) -> list[dict[str, Any]]:
        """A row for every evaluation, in order."""
        return self.run.metrics()

    @cached_property
    def summary(self) -> dict[str, Any]:
        """The results of the run; empty while it is not done."""
        numbers = self.run.summary()
        for name, value in numbers.items():
            counted = name in COUNTED or ".error" in name or ".worst." in name
            if counted and value is not None and not isinstance(value, int | float):
                raise DataError(f"{self.run.path / DONE}: {name} is {value!r}, expected a number. Repeat the run.")
        return numbers

    @property
    def epochs(self) -> str:
        """The run's progress in words."""
        last = self.metrics[-1].get("epoch", 0) if self.metrics else 0
        return f"{last} of {self.recipe.get('epochs', '?')}"

    @property
    def description(self) -> str:
        """The run in words, as in captions."""
        return f"run {self.id} ({self.label}, seed {self.seed})"

    def check(self) -> None:
        """Read everything once, so that damage is detected here."""
        _ = self.metrics, self.summary
        for name in ("seed", "epochs"):
            if not isinstance(self.recipe.get(name, 0), int):
                raise DataError(f"{self.run.path / RECIPE}: {name} is {self.recipe[name]!r}, expected a whole number.")


@dataclass(frozen=True)
class Experiment:
    """The runs that belong together; `shown` is the one presented in detail."""

    id: str
    title: str
    members: list[Member]
    shown: Member | None
    record: Mapping[str, Any] = field(default_factory=dict)  # the stored comparison; empty for a single run
    remarks: list[str] = field(default_factory=list)

    @cached_property
    def by_label(self) -> dict[str, list[Member]]:
        """The runs of every method, by seed, in the order of the comparison."""
        groups: dict[str, list[Member]] = {}
        for member in self.members:
            groups.setdefault(member.label, []).append(member)
        return {label: sorted(own, key=lambda member: member.seed) for label, own in groups.items()}

    @property
    def split(self) -> str:
        """The split on which errors are compared: the comparison's, else the test or the validation split."""
        if isinstance(self.record.get("split"), str):
            return str(self.record["split"])
        known = {name for member in self.members for row in member.metrics[-1:] for name in row}
        return next((split for split in ("test", "validation") if f"{split}.error" in known), "train")

    @property
    def state(self) -> str:
        """`running` while any run is; else the comparison's state, or that of the single run."""
        if any(member.run.state == "running" for member in self.members):
            return "running"
        if self.record:
            return str(self.record.get("state", "done"))
        return self.shown.run.state if self.shown is not None else "unreadable"


def of_run(run: Run) -> Experiment:
    """The experiment of a run that belongs to no comparison."""
    settings = flatten(run.recipe)
    method = EARLY if is_early(settings) else method_of(settings)
    seed = settings.get("seed", 0)
    member = Member(run, method, seed if isinstance(seed, int) else 0)
    member.check()
    return Experiment(run.id, _title([method], settings), [member], member)


def of_comparison(
    record: Mapping[str, Any], runs: Path, *, name: str, named_runs: frozenset[str] = frozenset()
) -> Experiment:
    """The experiment of a stored comparison with runs in the folder `runs`; unreadable ones get a remark.

    `named_runs` are the IDs of runs that the user named: one of them is presented in detail.
    """
    members: list[Member] = []
    remarks: list[str] = []
    for method in record["methods"]:
        for seed, cell in sorted(method["runs"].items(), key=lambda item: _number(item[0])):
            if not isinstance(cell.get("run"), str):
                continue
            run = Run(runs / cell["run"])
            started = record.get("early", {}).get(seed, {}) if isinstance(record.get("early"), Mapping) else {}
            first = Run(runs / started["run"]) if isinstance(started, Mapping) and started.get("run") else None
            member = Member(run, method["name"], _number(seed), early=first, label=label_of(method))
            if not (run.path / RECIPE).is_file():
                if cell.get("state") == "done":  # others may have ended before they had a folder
                    remarks.append(f"Left out {member.description}: its folder {run.path} is not there.")
                continue
            try:
                member.check()
            except (DataError, SetupError) as error:
                remarks.append(f"Left out {member.description}: {error}")
                continue
            members.append(member)
    closely = sorted(
        members, key=lambda m: (m.id not in named_runs, palette.is_control(m.method), not m.summary, m.seed)
    )
    settings = {f"{part}.name": record.get(part) for part in ("data", "model", "optimizer")}
    names = [label_of(method) for method in record["methods"] if not palette.is_control(label_of(method))]
    return Experiment(
        name, _title(names or ["plain"], settings), members, closely[0] if closely else None, record, remarks
    )


def label_of(method: Mapping[str, Any]) -> str:
    """The name of a method of a stored comparison as pages show it.

    >>> label_of({"name": "useful"}), label_of({"name": "useful", "label": "USEFUL, factor 5"})
    ('USEFUL', 'USEFUL, factor 5')
    """
    label = method.get("label")
    return palette.display_name(label if isinstance(label, str) and label else str(method["name"]))


def _title(methods: list[str], settings: Mapping[str, Any]) -> str:
    data, model = str(settings.get("data.name", "?")), settings.get("model.name", "?")
    rule, named = settings.get("ascent.rule", "none"), {word for method in methods for word in method.split("+")}
    optimizer = settings.get("optimizer.name", "sgd") if rule in ("none", *named) else rule
    what = ", ".join(palette.display_name(method) for method in methods)
    place = data.rstrip("/").rpartition("/")[2] or data
    return f"{what} on {place}: {model}, {str(optimizer).upper()}"


def _number(seed: Any) -> int:
    try:
        return int(seed)
    except (TypeError, ValueError):
        return -1
