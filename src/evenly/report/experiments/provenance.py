"""Where the numbers come from: the runs, the recipe, the environment, and warnings."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly import environment
from evenly.report.blocks import Block, Listing, Prose, Section, Table
from evenly.report.experiments.experiment import Experiment
from evenly.report.experiments.run_records import Reader
from evenly.report.wording import capital
from evenly.typed import yaml_text


def run_section(experiment: Experiment, remarks: Sequence[str], reader: Reader) -> Section:
    """The runs behind an experiment, the recipe and the environment of the one that is shown, and all warnings."""
    blocks: list[Block] = [Prose(remark, tone="warning") for remark in remarks]
    rows = [
        [member.id, member.label, member.seed, member.run.state, member.epochs]
        for own in experiment.by_label.values()
        for member in own
    ]
    if rows:
        blocks.append(Table(["run", "method", "seed", "state", "epoch"], rows, "The runs that this is drawn from."))
    shown = experiment.shown
    if shown is not None:
        stamps = reader.stamps(shown.run)
        if stamps:
            lines = [f"{name}: {value}" for name, value in _facts(stamps[-1])]
            blocks.append(Listing(f"Environment of run {shown.id}", "\n".join(lines)))
        blocks.append(Listing(f"Recipe of run {shown.id}", yaml_text.render(shown.run.recipe)))
    return Section("run", "Runs, recipe, environment", blocks)


def warnings(experiment: Experiment, reader: Reader) -> list[str]:
    """What a reader should know before relying on the numbers."""
    lines = []
    runs = [run for member in experiment.members for run in (member.run, member.early) if run is not None]
    stamps = [stamps[-1] for run in {run.path: run for run in runs}.values() if (stamps := reader.stamps(run))]
    # Toy data depend on the seed, so their fingerprints differ as they should.
    changes = [line for stamp in stamps for line in environment.difference(stamps[0], stamp)]
    if names := {line.split(":")[0] for line in changes} - {"data"}:
        lines.append(f"The runs were not all made in the same environment. What differs: {', '.join(sorted(names))}.")
    for member in experiment.members:
        if failure := reader.failure(member.run):
            lines.append(f"{capital(member.description)} failed: {failure}")
    waiting = [member for member in experiment.members if member.run.state in ("stopped", "new")]
    if waiting:
        words = ", ".join(member.description for member in waiting)
        them = "it" if len(waiting) == 1 else "them"
        lines.append(f"Not done: {words}. The same command continues {them}.")
    return lines


def _facts(stamp: Mapping[str, Any]) -> list[list[str]]:
    facts = [[name, _words(value)] for name, value in stamp.items() if value is not None and name != "libraries"]
    libraries = stamp.get("libraries")
    known = libraries if isinstance(libraries, Mapping) else {}
    return facts + [[name, str(version)] for name, version in known.items() if version]


def _words(value: Any) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {item}" for name, item in value.items() if item is not None)
    return ", ".join(map(str, value)) or "none" if isinstance(value, list) else str(value)
