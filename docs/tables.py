"""Fill the tables of README and documentation from the code and the ledger: `make tables`.

A table of results stands between `<!-- ledger: NAME -->` and `<!-- end of ledger -->`; NAME is a paper, for all its
verdicts, or keys of experiments, separated by commas, for their numbers. A list of what evenly has stands between
`<!-- list: NAME -->` and `<!-- end of list -->`; NAME is a key of `LISTS`, or `cures:` and cures of the atlas with
commas between them. A number in a sentence is bound to the atlas by a comment behind it, as
`evenly.papers.atlas.sentences` says.
"""

import inspect
import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from evenly.data.catalogue import CATALOGUE as DATA_SETS
from evenly.diagnostics.measure import function_of
from evenly.measurements import MEASUREMENTS
from evenly.models.catalogue import CATALOGUE as MODELS
from evenly.optim.cost import passes_per_step, rule_class
from evenly.papers import ledger as book
from evenly.papers.atlas.advice import accuracy_in_words
from evenly.papers.atlas.markdown import elsewhere, evidence
from evenly.papers.atlas.markdown import markdown as atlas_table
from evenly.papers.atlas.sentences import BOUND, complaints
from evenly.papers.atlas.sentences import filled as with_numbers
from evenly.papers.atlas.task_list import atlas_rows
from evenly.papers.atlas.tasks import ERRORS
from evenly.papers.catalogue import PAPERS
from evenly.papers.reproduction import overview
from evenly.recipe import Recipe
from evenly.report.verdict_tables import markdown, results
from evenly.report.verdict_words import counts_in_words
from evenly.rules import RULES
from evenly.typed import settings as settings_of

PROJECT = Path(__file__).parents[1]
PAGES = [PROJECT / "README.md", *sorted((PROJECT / "docs").rglob("*.md"))]
LEDGER = re.compile(r"(<!-- ledger: ([^>\n]+) -->\n).*?(<!-- end of ledger -->)", re.DOTALL)
LIST = re.compile(r"(<!-- list: (\S+) -->\n).*?(<!-- end of list -->)", re.DOTALL)


def rules() -> str:
    """A row for each rule: names, what it is, passes per step, default radius."""
    return _table(
        ("Python", "recipe, command line", "what it is", "passes", "ρ"),
        (
            (
                f"`{rule.kind}`",
                f"`{name}`",
                _sentence(rule_class(name)),
                f"{passes_per_step(name, {}):g}",
                f"{rule.rho:g}",
            )
            for name, rule in RULES.items()
        ),
    )


def data_sets() -> str:
    """A row for each data set: its name, what it is, and how to get it."""
    return _table(
        ("name", "kind", "what it is", "download"),
        (
            (f"`{e.name}`", e.kind, e.summary, f"`evenly data get {' '.join(e.needs)}`" if e.needs else "none")
            for e in DATA_SETS.values()
        ),
    )


def models() -> str:
    """A row for each model: its name, what it is, and its number of parameters."""
    return _table(
        ("name", "what it is", "parameters"), ((f"`{e.name}`", e.summary, e.parameters) for e in MODELS.values())
    )


def measurements() -> str:
    """A row for each measurement: its name, whether it is made by default, what it returns, its source."""
    return _table(
        ("name", "", "what it returns", "source"),
        (
            (f"`{name}`", "✓" if entry.quick else "", _sentence(function_of(name)), entry.source)
            for name, entry in MEASUREMENTS.items()
        ),
    )


def settings() -> str:
    """A row for each setting of a recipe: its path, its default as YAML, its values and its meaning."""
    return _table(
        ("setting", "default", "values", "what it is"),
        ((f"`{row.path}`", f"`{_yaml(row.default)}`", row.expects, row.doc.rstrip(".")) for row in settings_of(Recipe)),
    )


def verdicts() -> str:
    """How often each verdict was given: the papers, stand-ins, our remarks and the atlas apart."""
    return "\n".join(f"- {sentence}" for sentence in counts_in_words(overview(PROJECT / "claims")))


def atlas(error: str) -> str:
    """A row for each cure of the atlas, a column for each of its tasks that was measured."""
    return atlas_table(atlas_rows(PROJECT / "claims"), error)


LISTS: Mapping[str, Callable[[], str]] = {
    "rules": rules, "data-sets": data_sets, "models": models, "measurements": measurements,
    "settings": settings, "verdicts": verdicts,
    **{f"atlas-{error}": partial(atlas, error) for error in ERRORS},
    "atlas-elsewhere": lambda: elsewhere(atlas_rows(PROJECT / "claims")),
    "atlas-advice": lambda: accuracy_in_words(atlas_rows(PROJECT / "claims")),
}  # fmt: skip


def filled(text: str, ledger: Path = PROJECT / "claims") -> str:
    """The text with every table as the code and the ledger have it."""
    if LEDGER.search(text):
        lines, rows = overview(ledger), book.rows(ledger)

        def result(place: re.Match[str]) -> str:
            name = place[2]
            body = markdown(lines, rows, paper=name) if name in PAPERS else results(rows, name.split(","))
            return f"{place[1]}{body}\n{place[3]}"

        text = LEDGER.sub(result, text)
    if BOUND.search(text):
        text = with_numbers(text, atlas_rows(ledger))
    return LIST.sub(lambda place: f"{place[1]}{_listed(place[2])}\n{place[3]}", text)


def _listed(name: str) -> str:
    kind, _, cures = name.partition(":")
    return evidence(atlas_rows(PROJECT / "claims"), cures.split(",")) if kind == "cures" else LISTS[name]()


def _table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    titles = list(titles)
    lines = [titles, ["---"] * len(titles), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def _yaml(value: Any) -> str:
    """A default as a recipe writes it."""
    if isinstance(value, str):
        return value
    return json.dumps(dict(value) if isinstance(value, Mapping) else value)


def _sentence(documented: Any) -> str:
    """The first paragraph of a docstring, as a cell."""
    first = (inspect.getdoc(documented) or "").split("\n\n")[0]
    return first.replace("\n", " ").rstrip(".").replace("|", "\\|")


if __name__ == "__main__":
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if filled(text) != text:
            page.write_text(filled(text), encoding="utf-8")
            print(page.relative_to(PROJECT))
        for complaint in complaints(page.read_text(encoding="utf-8"), atlas_rows(PROJECT / "claims")):
            print(f"{page.relative_to(PROJECT)}, {complaint}", file=sys.stderr)
