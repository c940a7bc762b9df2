"""All sections of a run's page, in their order; those without data do not appear."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from shlex import quote
from typing import Any

from evenly import atomic
from evenly.errors import DataError, UsageError, did_you_mean
from evenly.records import Run
from evenly.records.run import METRICS, RECIPE
from evenly.report.blocks import Section
from evenly.report.page import content, pieces, render
from evenly.report.run_page import findings, sections
from evenly.report.run_page.command import command
from evenly.report.run_page.reading import DAMAGE, EXAMPLES, MEASUREMENTS, SEPARATION, STABILITY, Reader
from evenly.report.run_page.related import Comparison, Member, find
from evenly.report.run_page.sections import class_names
from evenly.report.run_page.verdict import Outcome, at_chance, facts, outcomes, sentence

# Each section, and the command that makes what it is drawn from.
SECTIONS = {
    "comparison": "evenly useful {data} --controls original,random --seeds 0-4",
    "examples": "evenly useful {data}",
    "separation": "evenly useful {data}",
    "curves": "evenly train {data}",
    "features": "evenly measure {run} probing importance rank reliance",
    "geometry": "evenly measure {run} sharpness density",
    "groups": "evenly useful {data}, on data with named groups",
    "run": "evenly train {data}",
}


@dataclass(frozen=True)
class RunPage:
    """What a page says, before it is HTML."""

    title: str
    verdict: str
    facts: list[tuple[str, str]]
    command: str
    sections: list[Section]
    remarks: list[str]
    state: str

    def html(self, *, live: str = "", charted: bool = True) -> str:
        """The page as text, with its charting or with room for it (see `page.pieces`)."""
        return render(
            self.title, self.verdict, self.sections, self.command, facts=self.facts, live=live, charted=charted
        )

    def write(self, path: str | os.PathLike[str]) -> None:
        """The page as one file, whole or not at all."""
        with atomic.replacing(path) as file:
            file.writelines(pieces(self.html(charted=False)))

    def news(self) -> dict[str, Any]:
        """The page as a live one asks for it."""
        over = self.state in ("done", "failed")
        return content(self.verdict, self.sections, facts=self.facts) | {"state": self.state, "over": over}


def run_page(
    which: Sequence[str | os.PathLike[str]],
    *,
    runs: str | os.PathLike[str] = "runs",
    wanted: Sequence[str] = (),
) -> RunPage:
    """The page of the given runs and their siblings; `wanted` names the sections that must be there, and no others are.

    Each of `which` is a run's ID, its beginning or its folder, or a folder of runs.
    """
    for name in wanted:
        if name not in SECTIONS:
            raise UsageError(f"there is no section {name!r}. {did_you_mean(name, SECTIONS)}")
    comparison = find(which, runs)
    reader = Reader()
    found = outcomes(comparison)
    made = _sections(comparison, found, reader)
    chance = at_chance(comparison, found, len(class_names(_separation(comparison, reader)[0])))
    repeated = _command(comparison, reader)
    warnings = findings.warnings(comparison, reader)
    remarks = list(dict.fromkeys([*[chance] * bool(chance), *comparison.remarks, *reader.remarks, *warnings]))
    made.append(findings.run_section(comparison, remarks, reader))
    there = [section for section in made if section is not None]
    if wanted:
        _demand(wanted, there, comparison.shown, reader)
        there = [section for section in there if section.id in wanted]
    return RunPage(
        title=_title(comparison.shown),
        verdict=f"{chance} {sentence(comparison, found)}".lstrip(),
        facts=facts(comparison, found),
        command=repeated,
        sections=there,
        remarks=remarks,
        state=comparison.shown.run.state,
    )


def _sections(comparison: Comparison, found: Sequence[Outcome], reader: Reader) -> list[Section | None]:
    """Every section but the last, each from its own records: damage to one does not touch the others."""
    shown = comparison.shown
    separation, source, whose = _separation(comparison, reader)
    names = class_names(separation)
    found_pictures = (reader.gallery(run, names, whose=whose) for run, whose in _around(comparison))
    pictures = next((made for made in found_pictures if made is not None), None)
    measured, stability = _measured(comparison, reader), reader.json(shown.run, STABILITY)
    metrics = [f"{member.id}/{METRICS}" for member in comparison.members]
    measuring, standing = [f"{MEASUREMENTS}/epoch-*.json"] * bool(measured), [f"{shown.id}/{STABILITY}"]
    makers: dict[str, tuple[Callable[[], Section | None], list[str]]] = {
        "comparison": (lambda: sections.comparison_section(comparison, found), metrics),
        "examples": (lambda: sections.examples_section(pictures), [EXAMPLES]),
        "separation": (lambda: sections.separation_section(separation, names, whose), [f"{source.id}/{SEPARATION}"]),
        "curves": (lambda: sections.curves_section(comparison), metrics),
        "features": (lambda: findings.features_section(measured), measuring),
        "geometry": (lambda: findings.geometry_section(measured, stability), [*measuring, *standing * bool(stability)]),
        "groups": (lambda: sections.groups_section(comparison), metrics),
    }
    return [reader.section(name, make, files) for name, (make, files) in makers.items()]


def _around(comparison: Comparison) -> list[tuple[Run, str]]:
    """The runs that may hold evidence, the one shown first, then the method's, each with what it is called."""
    order = sorted(comparison.members, key=lambda m: (m is not comparison.shown, m.method != "useful", m.seed))
    found = []
    for member in order:
        called = f"run {member.id} ({member.label}, seed {member.seed})"
        found.append((member.run, called))
        if member.early is not None:
            found.append((member.early, f"run {member.early.id}, the early run of {called.removeprefix('run ')}"))
    return found


def _separation(comparison: Comparison, reader: Reader) -> tuple[dict[str, Any], Run, str]:
    """The separation of the run that is shown, else of the first that has one; its run, and what that is called."""
    for run, whose in _around(comparison):
        if read := reader.json(run, SEPARATION):
            return read, run, whose
    return {}, comparison.shown.run, ""


def _command(comparison: Comparison, reader: Reader) -> str:
    """The command that repeats the page; none where the recipe is not one that a command could say."""
    try:
        return command(comparison)
    except DAMAGE as error:
        shown = comparison.shown
        reader.remarks.append(
            f"No command repeats this page: {shown.id}/{RECIPE} is not as evenly writes it ({error})."
        )
        return ""


def _measured(comparison: Comparison, reader: Reader) -> dict[str, list[dict[str, Any]]]:
    """The measurements of every way of training: of the run that is shown, else of the first seed that has some."""
    found = {}
    for label, own in comparison.by_label.items():
        order = sorted(own, key=lambda member: member is not comparison.shown)
        rows = next((rows for member in order if (rows := reader.measurements(member.run))), [])
        if rows:
            found[label] = rows
    return found


def _demand(wanted: Sequence[str], there: Sequence[Section], shown: Member, reader: Reader) -> None:
    have = {section.id for section in there}
    for name in wanted:
        if name in reader.left_out:
            raise DataError(reader.left_out[name])
        if name not in have:
            how = SECTIONS[name].format(
                run=quote(str(shown.run.path)), data=quote(str(shown.recipe.get("data.name", "digits")))
            )
            raise DataError(f"run {shown.id} has nothing for the section {name!r}. Make it: {how}")


def _title(shown: Member) -> str:
    data, model = shown.recipe.get("data.name", "?"), shown.recipe.get("model.name", "?")
    rule = shown.recipe.get("ascent.rule", "none")
    how = shown.recipe.get("optimizer.name", "sgd") if rule == "none" else rule
    name = {"useful": "USEFUL", "original": "plain training"}.get(shown.method, shown.method)
    return f"{name} on {os.path.basename(str(data).rstrip('/')) or data}: {model}, {str(how).upper()}"
