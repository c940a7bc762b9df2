"""The page of one or of several experiments, from records alone; a section without data does not appear."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

from evenly import atomic
from evenly.errors import DataError, UsageError, did_you_mean
from evenly.records import Run
from evenly.records.run import METRICS, RECIPE
from evenly.report.blocks import Block, Chapter, Lead, Link, Section, Switch
from evenly.report.experiments import measurements, provenance, sections
from evenly.report.experiments.experiment import Experiment, Member
from evenly.report.experiments.index import index_section
from evenly.report.experiments.lead import lead, progress
from evenly.report.experiments.lookup import Folder, find, holds_runs
from evenly.report.experiments.loose_runs import pair_loose_runs
from evenly.report.experiments.predictions import predictions_section
from evenly.report.experiments.run_records import (
    DAMAGE,
    EXAMPLES,
    MEASUREMENTS,
    PREDICTIONS,
    SEPARATION,
    STABILITY,
    Reader,
)
from evenly.report.page import content, render

# Each section, and the command that makes the records it is drawn from.
SECTIONS = {
    "comparison": "evenly useful {data} --seeds 0-4",
    "predictions": "evenly train {data}",
    "examples": "evenly useful {data}",
    "separation": "evenly useful {data}",
    "curves": "evenly train {data}",
    "features": "evenly measure {run} probing importance rank reliance",
    "geometry": "evenly measure {run} sharpness density",
    "groups": "evenly useful {data}, on data with named groups",
    "run": "evenly train {data}",
}
MOST_SEEDS, FEW = 3, 4  # seeds with their pictures, on a page of at most so many experiments; one seed on others
MOST_CONCLUSIONS = 3  # about runs that were trained one by one, on the first screen
_IN_A_COUNT = {"too few seeds": "with too few seeds", "no difference": "without a difference",
               "learned nothing": "that learned nothing", "may help": "that may help"}  # fmt: skip


@dataclass(frozen=True)
class Page:
    """The content of a page, before it is HTML."""

    title: str
    lead: Lead
    sections: list[Section]
    chapters: list[Chapter]
    remarks: list[str]
    state: str  # for the badge of a live page
    over: bool  # whether the page is final

    def html(self, *, live: str = "") -> str:
        """The page as text."""
        return render(self.title, self.lead, self.sections, chapters=self.chapters, live=live)

    def write(self, path: str | os.PathLike[str]) -> None:
        """The page as one file, whole or not at all."""
        atomic.write_text(path, self.html(), errors="replace")  # a folder's name may hold bytes that are no text

    def update(self) -> dict[str, Any]:
        """The update that a live page requests."""
        return content(self.lead, self.sections, chapters=self.chapters) | {"state": self.state, "over": self.over}


def page_of(
    which: Sequence[str | os.PathLike[str]], *, runs: str | os.PathLike[str] = "runs", wanted: Sequence[str] = ()
) -> Page:
    """The page of the given runs and comparisons, or of folders of runs; with `wanted`, only these sections.

    Each of `which` is the ID of a run or of a comparison, its beginning, a run's folder, or a folder of runs.
    """
    for name in wanted:
        if name not in SECTIONS:
            raise UsageError(f"there is no section {name!r}. {did_you_mean(name, SECTIONS)}")
    experiments, left = find(which, runs)
    experiments = _distinguish(experiments)
    seeds = MOST_SEEDS if len(experiments) <= FEW else 1
    chapters = [_chapter(experiment, wanted, number, seeds) for number, experiment in enumerate(experiments)]
    remarks = list(dict.fromkeys(remark for _, own in chapters for remark in own))
    state, over = _state(experiments)
    folders = [Path(word) for word in which if holds_runs(Path(word))]
    if len(chapters) == 1 and not left:
        chapter = chapters[0][0]
        alone = [_rename(section, section.id.removeprefix(f"{chapter.id}-")) for section in chapter.sections]
        return Page(chapter.title, chapter.lead, alone, [], remarks, state, over)
    places = {
        experiment.id: Link(experiment.title, f"#{chapter.id}")
        for experiment, (chapter, _) in zip(experiments, chapters, strict=True)
    }
    indices, conclusions = [], []
    for number, folder in enumerate(map(Folder, dict.fromkeys(folders)), 1):
        paired = pair_loose_runs(folder)
        index = index_section(folder, places, [each.table for each in paired])
        if number > 1 or len(folders) > 1:
            name = "index" if number == 1 else f"index-{number}"
            index = replace(index, id=name, title=f"Index of {folder.path}")
        indices.append(index)
        conclusions += [sentence for each in paired for sentence in each.conclusions]
    total = len(chapters) + left
    badges = [_IN_A_COUNT.get(chapter.lead.badge, chapter.lead.badge) for chapter, _ in chapters if chapter.lead.badge]
    counts = ", ".join(f"{badges.count(badge)} {badge}" for badge in dict.fromkeys(badges))
    kind = "runs" if all(len(experiment.members) == 1 for experiment in experiments) and not left else "experiments"
    # The badges are known of the chapters alone; the index has those of all.
    among = f". Of the latest {len(chapters)}" if left else ""
    finding = f"{total:,} {kind}{f'{among}: {counts}' if counts else ''}."
    finding += "".join(f" {sentence}" for sentence in conclusions[:MOST_CONCLUSIONS])
    finding += " The index has the other pairs." if len(conclusions) > MOST_CONCLUSIONS else ""
    finding += f" The latest {len(chapters)} are shown below the index." if left else ""
    finding += " Pictures are of one seed each; `evenly report ID` shows more." if len(chapters) > FEW else ""
    command = "evenly report " + " ".join(quote(os.fspath(word)) for word in which)
    where = ", ".join(str(folder) for folder in folders)
    title = f"Experiments in {where}" if folders else "Experiments"
    return Page(
        title, Lead(finding, command=command), indices, [chapter for chapter, _ in chapters], remarks, state, over
    )


def _distinguish(experiments: Sequence[Experiment]) -> list[Experiment]:
    """Experiments of which no two have one title: single runs are told apart by their seed, others by their ID."""
    titles = [experiment.title for experiment in experiments]
    seeded = [f"{each.title} (seed {each.members[0].seed})" if len(each.members) == 1 else "" for each in experiments]
    distinct = []
    for each, with_seed in zip(experiments, seeded, strict=True):
        with_id = f"{each.title} ({each.id[:4]})"
        title = with_seed if with_seed and seeded.count(with_seed) == 1 else with_id
        distinct.append(replace(each, title=title) if titles.count(each.title) > 1 else each)
    return distinct


def _chapter(experiment: Experiment, wanted: Sequence[str], number: int, seeds: int) -> tuple[Chapter, list[str]]:
    """An experiment with its sections and remarks."""
    reader = Reader()
    parts = [part for part in _sections(experiment, reader, seeds) if part is not None]
    warnings = provenance.warnings(experiment, reader)
    remarks = list(dict.fromkeys([*experiment.remarks, *reader.remarks, *warnings]))
    if (about_runs := provenance.run_section(experiment, remarks, reader)).blocks:
        parts.append(about_runs)
    if wanted:
        _demand(wanted, parts, experiment, reader)
        parts = [part for part in parts if part.id in wanted]
    name = f"e{number}-{''.join(sign for sign in experiment.id.lower() if sign.isascii() and sign.isalnum())}"
    own = [_rename(part, f"{name}-{part.id}") for part in parts]
    return Chapter(name, experiment.title, _lead(experiment, reader), own), remarks


def _lead(experiment: Experiment, reader: Reader) -> Lead:
    try:
        return lead(experiment)
    except DAMAGE as error:
        where = RECIPE if not experiment.record else f"comparison {experiment.id}"
        text = f"Its {where} is not as evenly writes it ({error}): what else can be read is below."
        reader.remarks.append(text)
        return Lead(text)


def _sections(experiment: Experiment, reader: Reader, num_seeds: int) -> list[Section | None]:
    """Every section but the last, each from its own records: damage to one does not affect the others."""
    shown = experiment.shown
    if shown is None:
        return []
    seeds = _separations(experiment, reader)[:num_seeds]
    names = sections.class_names(seeds[0][2]) if seeds else reader.class_names(shown.run)
    measured, stability = _measurements(experiment, reader), reader.json(shown.run, STABILITY)
    metrics = [f"{member.id}/{METRICS}" for member in experiment.members]
    measuring, standing = [f"{MEASUREMENTS}/epoch-*.json"] * bool(measured), [f"{shown.id}/{STABILITY}"]
    stored = [f"comparisons/{experiment.id}.json"]
    files = [f"{run.path.name}/{SEPARATION}" for _, run, _ in seeds]
    makers: dict[str, tuple[Callable[[], Section | None], list[str]]] = {
        "comparison": (lambda: sections.comparison_section(experiment), stored),
        "predictions": (lambda: predictions_section(experiment, names, reader), [PREDICTIONS]),
        "examples": (lambda: _examples(experiment, seeds, names, reader), [EXAMPLES]),
        "separation": (lambda: _health(seeds), files),
        "curves": (lambda: sections.curves_section(experiment), metrics),
        "features": (lambda: measurements.features_section(measured), measuring),
        "geometry": (
            lambda: measurements.geometry_section(measured, stability),
            [*measuring, *standing * bool(stability)],
        ),
        "groups": (lambda: sections.groups_section(experiment), metrics),
    }
    return [reader.section(name, make, files) for name, (make, files) in makers.items()]


def _separations(experiment: Experiment, reader: Reader) -> list[tuple[Member, Run, dict[str, Any]]]:
    """The separation of each seed: of the run that is shown, else of the first member or early run that has one."""
    order = sorted(experiment.members, key=lambda m: (m is not experiment.shown, m.method != "useful"))
    separations: dict[int, tuple[Member, Run, dict[str, Any]]] = {}
    for member in order:
        for run in (member.run, member.early):
            if run is not None and member.seed not in separations and (read := reader.json(run, SEPARATION)):
                separations[member.seed] = (member, run, read)
    return list(separations.values())


def _examples(
    experiment: Experiment, seeds: Sequence[tuple[Member, Run, Any]], names: dict[int, str], reader: Reader
) -> Section | None:
    if not seeds:  # no separation can be read, but pictures may be there
        seeds = [(member, member.run, {}) for member in experiment.members][:1]
    choices: dict[str, Sequence[Block]] = {}
    for member, run, _ in seeds:
        blocks = reader.examples(run, called=member.description, names=names, late=member.run)
        if blocks:
            choices[str(member.seed)] = blocks
    return Section("examples", "Easiest and hardest examples", _switch(choices)) if choices else None


def _health(seeds: Sequence[tuple[Member, Run, dict[str, Any]]]) -> Section | None:
    choices: dict[str, Sequence[Block]] = {}
    for member, _, read in seeds:
        if blocks := sections.separation_blocks(read, sections.class_names(read), member.description):
            choices[str(member.seed)] = blocks
    return Section("separation", "Health of the separation", _switch(choices)) if choices else None


def _switch(choices: dict[str, Sequence[Block]]) -> Sequence[Block]:
    """The blocks of the only choice, or a switch between the seeds."""
    return next(iter(choices.values())) if len(choices) == 1 else [Switch("Seed", choices)]


def _measurements(experiment: Experiment, reader: Reader) -> dict[str, list[dict[str, Any]]]:
    """The measurements of every method: of the run that is shown, else of the first seed that has some."""
    measured = {}
    for label, own in experiment.by_label.items():
        for member in sorted(own, key=lambda member: member is not experiment.shown):
            if rows := reader.measurements(member.run):
                measured[f"{label}, seed {member.seed}"] = rows
                break
    return measured


def _state(experiments: Sequence[Experiment]) -> tuple[str, bool]:
    """The badge of a live page, and whether the page is final."""
    running = [experiment for experiment in experiments if experiment.state == "running"]
    for experiment in running:
        if experiment.record:
            return progress(experiment), False
    if running and running[0].shown is not None:
        return f"running, epoch {running[0].shown.epochs}", False
    states = {experiment.state for experiment in experiments}
    return (next(iter(states)) if len(states) == 1 else "done"), "new" not in states


def _demand(wanted: Sequence[str], parts: Sequence[Section], experiment: Experiment, reader: Reader) -> None:
    have = {part.id for part in parts}
    for name in wanted:
        if name in reader.left_out:
            raise DataError(reader.left_out[name])
        if name not in have:
            shown = experiment.shown
            data = str(shown.recipe.get("data.name", "digits")) if shown is not None else "digits"
            run = quote(str(shown.run.path)) if shown is not None else experiment.id
            how = SECTIONS[name].format(run=run, data=quote(data))
            raise DataError(f"{experiment.title} has nothing for the section {name!r}. Make it: {how}")


def _rename(section: Section, name: str) -> Section:
    return replace(section, id=name)
