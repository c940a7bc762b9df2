"""The claims of the papers as a site: tables of all verdicts, and a page for every experiment.

Everything comes from a ledger's rows and the lines of its overview, which are plain JSON.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evenly import atomic
from evenly.errors import UsageError
from evenly.files.layered import find
from evenly.report.blocks import Badge, Lead, Link, Prose, Section, Table
from evenly.report.claim_page import address_of, experiment_page, read_figure
from evenly.report.page import render
from evenly.report.verdict_tables import number_of_seeds
from evenly.report.verdict_words import KINDS, Row, counts, line_words, tally
from evenly.report.wording import duration

RULE = (
    "A claim is judged by the paired differences over seeds, their 95% t-interval, and the effect that the "
    "paper states."
    "\n\n`reproduced`: the interval excludes zero on the claimed side, and the mean is within a declared margin of the "
    "paper's effect."
    "\n\n`weaker` or `stronger than claimed`: the interval excludes zero on the claimed side, and the paper's effect; "
    "the mean is outside the margin."
    "\n\n`contradicted`: the interval lies wholly on the other side of zero, or includes zero and excludes even half "
    "of the effect. An exact computation whose difference is zero with every seed contradicts a claimed direction too."
    "\n\n`inconclusive`: everything else, with the number of seeds that would settle it at a power of 0.9. An "
    "interval on the claimed side that includes the paper's effect is among them if the mean is outside the margin."
    "\n\nThe sentence of an experiment makes one or several primary claims, and its verdict is the worst of theirs; "
    "all other claims are details. Which claims are primary was decided after most rows had been measured. A claim "
    "that was declared after a first run is marked so. A row is judged anew whenever seeds are added: until it has "
    "those that were declared, its verdict is provisional."
    "\n\nA stand-in, with other data, another network or another regime, does not judge the paper: the effect is seen "
    "there, not seen, or unclear. Our own remarks and corrections are listed apart."
    "\n\nThe atlas asks many questions at once. A cure `helps` or `harms` where that stands after Holm's correction "
    "over all cures and tasks in one kind of error; where only its own interval excludes zero, it `may help` or "
    "`may harm`."
)


def write_site(
    out: str | os.PathLike[str],
    lines: Sequence[Mapping[str, Any]],
    rows: Sequence[Row],
    *,
    ledger: str | os.PathLike[str],
    papers: Mapping[str, tuple[str, str]],
    force: bool = False,
) -> Path:
    """Write the site into the folder `out` and return the path of its first page.

    `lines` are those of the overview (every experiment, run or not), `rows` those of the ledger, whose folder holds the
    figures, and `papers` the short and the full name of each paper by its key.
    """
    out = Path(out)
    first = out / "index.html"
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file: the site needs a folder, such as --out site/")
    if first.exists() and not force:
        raise UsageError(f"{first} exists. Give another --out, or --force to replace the site.")
    by_key: dict[str, list[Row]] = {}
    for row in rows:
        if row["scale"] != "smoke":
            by_key.setdefault(row["key"], []).append(row)
    atomic.make_folder(out)
    first_lines = {line["key"]: line for line in reversed(lines)}  # of an experiment with several
    for key, line in first_lines.items():
        page = experiment_page(line, by_key.get(key, []), ledger=ledger, papers=papers, keys=[*first_lines])
        atomic.write_text(out / address_of(key), page)
    for row in rows:
        if row["scale"] != "smoke" and row["figure"]:
            name = f"{row['key'].replace('/', '-')}-{row['scale']}.svg"
            atomic.write_text(out / name, read_figure(find(ledger, name)).decode())
    atomic.write_text(first, index_page(lines, by_key, papers=papers, ledger=ledger))
    return first


def index_page(
    lines: Sequence[Mapping[str, Any]],
    rows: Mapping[str, Sequence[Row]],
    *,
    papers: Mapping[str, tuple[str, str]],
    ledger: str | os.PathLike[str] = "",
) -> str:
    """The first page: the verdict on every claim, the three kinds of rows apart, to be filtered and sorted."""
    counted = counts(lines)
    facts = [(word, str(number)) for word, number in counted.get("paper", {}).items()]
    sections = []
    for kind, title in KINDS.items():
        own = [line for line in lines if line["kind"] == kind]
        if not own:
            continue
        table = Table(
            ["experiment", "verdict", "paper", "claim", "scale", "seeds", "time"],
            [_index_row(line, rows.get(line["key"], ()), papers, ledger) for line in own],
            caption=f"{tally(counted[kind])}. The time is an estimate for two cores.",
            whole=True,
            filters=("verdict", "paper", "scale"),
        )
        sections.append(Section(kind, title, [table]))
    sections.append(Section("rule", "How verdicts are reached", [Prose(RULE)]))
    cited = [
        [name, Link(title, f"https://scholar.google.com/scholar?q={quote(title)}")] for name, title in papers.values()
    ]
    sections.append(Section("papers", "The papers", [Table(["paper", "authors and title"], cited)]))
    num_papers = len({line["key"].partition("/")[0] for line in lines if line["kind"] != "atlas"})
    num = len({line["key"] for line in lines})
    finding = f"{num} experiments, each judged" if num > 1 else "1 experiment, judged"
    finding += f" by one rule: the claims of {num_papers} "
    finding += ("paper" if num_papers == 1 else "papers") + (" and an atlas of cures." if "atlas" in counted else ".")
    return render(
        "Claims and verdicts", Lead(finding, facts=facts, command="evenly reproduce --list"), sections, site=True
    )


def _index_row(
    line: Mapping[str, Any], rows: Sequence[Row], papers: Mapping[str, tuple[str, str]], ledger: str | os.PathLike[str]
) -> list[Any]:
    key = line["key"]
    row = next((row for row in rows if row["scale"] == line["scale"]), None)
    stale = " (stale)" if line["state"] == "stale" else ""
    return [
        Link(key.partition("/")[2], address_of(key), image=_thumbnail(row, ledger) if row is not None else ""),
        Badge(line_words(line) + stale),
        papers[key.partition("/")[0]][0],
        line["claim"],
        line["scale"],
        number_of_seeds(line, rows),
        duration(line["cost"]),
    ]


def _thumbnail(row: Row, ledger: str | os.PathLike[str]) -> str:
    """The address of the row's figure in the site, which `write_site` copies; nothing where it has none."""
    return f"{row['key'].replace('/', '-')}-{row['scale']}.svg" if row["figure"] and ledger else ""
