"""All sections of a run's page, in their order; those without data do not appear."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evenly.errors import DataError, UsageError, did_you_mean
from evenly.report.blocks import Section
from evenly.report.page import content, render
from evenly.report.run_page import findings, sections
from evenly.report.run_page.reading import SEPARATION, STABILITY, Reader
from evenly.report.run_page.related import Comparison, Member, find
from evenly.report.run_page.verdict import command, facts, outcomes, sentence

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

    def html(self, *, live: str = "") -> str:
        """The page as one file."""
        return render(self.title, self.verdict, self.sections, self.command, facts=self.facts, live=live)

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
    separation, examples = _evidence(comparison, reader)
    names = {row["label"]: str(row["name"]) for row in separation.get("classes") or []}
    measured = _measured(comparison, reader)
    stability = reader.json(comparison.shown.run, STABILITY)
    remarks = [*comparison.remarks, *reader.remarks, *findings.warnings(comparison)]
    made = [
        sections.comparison_section(comparison, found),
        sections.examples_section(examples, names),
        sections.separation_section(separation, names),
        sections.curves_section(comparison),
        findings.features_section(measured),
        findings.geometry_section(measured, stability),
        sections.groups_section(comparison),
        findings.run_section(comparison, remarks),
    ]
    there = [section for section in made if section is not None]
    if wanted:
        _demand(wanted, there, comparison.shown)
        there = [section for section in there if section.id in wanted]
    return RunPage(
        title=_title(comparison.shown),
        verdict=sentence(comparison, found),
        facts=facts(comparison, found),
        command=command(comparison),
        sections=there,
        remarks=remarks,
        state=comparison.shown.run.state,
    )


def _evidence(comparison: Comparison, reader: Reader) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """The separation and the examples of the run that is shown, or of the first sibling that has them."""
    shown = comparison.shown
    order = [shown, *sorted(comparison.members, key=lambda m: (m.method != "useful", m.seed))]
    runs = [run for member in order for run in (member.run, member.early) if run is not None]
    separation = next((found for run in runs if (found := reader.json(run, SEPARATION))), {})
    examples = next((found for run in runs if (found := reader.examples(run))), {})
    return separation, examples


def _measured(comparison: Comparison, reader: Reader) -> dict[str, list[dict[str, Any]]]:
    """The measurements of every way of training: of the run that is shown, else of the first seed that has some."""
    found = {}
    for label, own in comparison.by_label.items():
        order = sorted(own, key=lambda member: member is not comparison.shown)
        rows = next((rows for member in order if (rows := reader.measurements(member.run))), [])
        if rows:
            found[label] = rows
    return found


def _demand(wanted: Sequence[str], there: Sequence[Section], shown: Member) -> None:
    have = {section.id for section in there}
    for name in wanted:
        if name not in have:
            how = SECTIONS[name].format(run=shown.run.path, data=shown.recipe.get("data.name", "digits"))
            raise DataError(f"run {shown.id} has nothing for the section {name!r}. Make it: {how}")


def _title(shown: Member) -> str:
    data, model = shown.recipe.get("data.name", "?"), shown.recipe.get("model.name", "?")
    rule = shown.recipe.get("ascent.rule", "none")
    how = shown.recipe.get("optimizer.name", "sgd") if rule == "none" else rule
    name = {"useful": "USEFUL", "original": "plain training"}.get(shown.method, shown.method)
    return f"{name} on {os.path.basename(str(data).rstrip('/')) or data}: {model}, {str(how).upper()}"
