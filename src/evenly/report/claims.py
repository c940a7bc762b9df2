"""The claims of the papers as a site: tables of all verdicts, and a page for every experiment.

Everything comes from a ledger's rows and the lines of its overview, which are plain JSON.
"""

import base64
import html
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from evenly import atomic
from evenly.errors import DataError, UsageError
from evenly.report.blocks import Badge, Block, Drawing, Lead, Link, Listing, Prose, Section, Table
from evenly.report.page import render
from evenly.report.verdict_tables import number_of_seeds, verdict_summary
from evenly.report.verdict_words import KINDS, Row, counts, open_question, tally, verdict_words
from evenly.report.wording import claimed_difference, duration, pair

RULE = (
    "A claim is judged by the paired differences over seeds, their 95% t-interval, and the effect that the "
    "paper states."
    "\n\n`reproduced`: the interval excludes zero on the claimed side, and the mean is within a margin of the paper's "
    "effect that was set in advance."
    "\n\n`weaker` or `stronger than claimed`: the interval excludes zero on the claimed side, but the mean is outside "
    "the margin."
    "\n\n`contradicted`: the interval lies wholly on the other side of zero, or excludes even half of the effect."
    "\n\n`inconclusive`: everything else, with the number of seeds that would settle it at a power of 0.9."
    "\n\nThe verdict of an experiment is that of its primary claim, the sentence of the paper; the others are details. "
    "A stand-in, with other data, another network or another regime, does not judge the paper: the effect is seen "
    "there, not seen, or unclear. Our own remarks and corrections are listed apart."
)
SIZES = {"full": "At the paper's size", "small": "At a smaller size"}


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
    out.mkdir(parents=True, exist_ok=True)
    first_lines = {line["key"]: line for line in reversed(lines)}  # of an experiment with several
    for key, line in first_lines.items():
        page = experiment_page(line, by_key.get(key, []), ledger=ledger, papers=papers, keys=[*first_lines])
        atomic.write_text(out / _page(key), page)
    for row in rows:
        if row["scale"] != "smoke" and row["figure"]:
            name = f"{row['key'].replace('/', '-')}-{row['scale']}.svg"
            atomic.write_text(out / name, _figure(Path(ledger) / name).decode())
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
    finding += f" by one rule that was set in advance: the claims of {num_papers} "
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
        Link(key.partition("/")[2], _page(key), image=_thumbnail(row, ledger) if row is not None else ""),
        Badge(verdict_words(line["verdict"], line["kind"]) + stale),
        papers[key.partition("/")[0]][0],
        line["claim"],
        line["scale"],
        number_of_seeds(line, rows),
        duration(line["cost"]),
    ]


def experiment_page(
    line: Mapping[str, Any],
    rows: Sequence[Row],
    *,
    ledger: str | os.PathLike[str],
    papers: Mapping[str, tuple[str, str]],
    keys: Sequence[str] = (),
) -> str:
    """The page of one experiment: at every scale that was run, the figure, each claim, and every seed.

    `keys` are those of all experiments: the others that a text names become links.
    """
    key = line["key"]
    sections = []
    for row in rows:
        blocks: list[Block] = []
        if row["figure"]:
            words = " ".join(_capitalise(claim["says"]) + "." for claim in row["claims"])
            # By the row's key: a row may come from a stranger, and must not name another file.
            drawn = Path(ledger) / f"{key.replace('/', '-')}-{row['scale']}.svg"
            blocks.append(Drawing(_picture(drawn), f"{row['title']}. {words}"))
        blocks.append(_claims(row))
        if row["deviations"]:
            blocks.append(Prose("Differs from the paper: " + "; ".join(row["deviations"]) + "."))
        if not row["levels"]:
            blocks.append(Prose(f"{_why_unjudged(row)}: the order of numbers is judged, not their level."))
        blocks.append(_seeds(row))
        blocks.append(Listing("Where it ran", _machine(row)))
        judged = verdict_words(row["verdict"], row["kind"])
        sections.append(Section(row["scale"], f"{SIZES.get(row['scale'], row['scale'])}: {judged}", blocks))
    errata = rows[0]["errata"] if rows else []
    if errata:
        sections.append(Section("errata", "What is wrong or left open in the paper", [Prose("\n\n".join(errata))]))
    related = _related_keys(key, rows, keys)
    if related:
        links: list[list[Any]] = [[Link(other, _page(other))] for other in related]
        sections.append(Section("related", "Related experiments", [Table(["experiment"], links)]))
    name, full_title = papers[key.partition("/")[0]]
    cited = [[Link(name, "index.html#papers"), full_title]]
    sections.append(Section("paper", "The paper", [Table(["paper", "authors and title"], cited)]))
    finding = line["claim"]
    if line["state"] == "stale":
        finding += " The row was written by another revision: the work or the claims are declared differently now."
    title = rows[0]["title"] if rows and rows[0]["title"] != key else ""
    lead = Lead(
        finding,
        badge=verdict_summary(line, rows),
        advice="run it again, or with more seeds." if rows else "run it:",
        next_command=f"evenly reproduce {key} --scale {line['scale']}",
    )
    return render(f"{title} · {name}" if title else key, lead, sections, up=Link("All claims", "index.html"), site=True)


def _related_keys(key: str, rows: Sequence[Row], keys: Sequence[str]) -> list[str]:
    """The other experiments of the same paper that the texts of the rows name."""
    paper = key.partition("/")[0]
    texts = [
        text
        for row in rows
        for text in (*row["deviations"], *row["errata"], *(claim["note"] or "" for claim in row["claims"]))
    ]
    words = set(re.findall(r"[\w.-]+/[\w.-]*\w", " ".join(texts)))
    return sorted({other for other in keys if other != key and (other in words or f"{paper}/{other}" in words)})


def _thumbnail(row: Row, ledger: str | os.PathLike[str]) -> str:
    """The address of the row's figure in the site, which `write_site` copies; nothing where it has none."""
    return f"{row['key'].replace('/', '-')}-{row['scale']}.svg" if row["figure"] and ledger else ""


def _claims(row: Row) -> Table:
    lines = [
        {
            "claim": claim["says"] + _kind(claim) + _note(claim),
            "verdict": _verdict(claim, row),
            "the paper": pair(claim["paper"], claim["paper_against"]),
            "ours": pair(claim["ours"]["mean"], (claim["ours_against"] or {}).get("mean")),
            "difference [95%]": claimed_difference(claim),
        }
        for claim in row["claims"]
    ]
    columns = [name for name in lines[0] if any(line[name] for line in lines)]
    text = (
        f"Every claim, over {len(row['seeds'])} seeds. Where two numbers stand, the first is compared with the second."
    )
    return Table(columns, lines, caption=text, whole=True)


def _seeds(row: Row) -> Table:
    named = {name for claim in row["claims"] for name in (claim["value"], claim["against"]) if isinstance(name, str)}
    shown = [name for name in row["quantities"] if name in named]
    seeds = [str(seed) for seed in row["seeds"]]
    listed = [s for s in seeds if any(s in row["quantities"][name] for name in shown)]
    # Draws of a numerical check have their own numbers.
    listed = listed or sorted({s for name in shown for s in row["quantities"][name]}, key=int)
    return Table(
        ["quantity", *(f"seed {seed}" for seed in listed)],
        [[name, *(row["quantities"][name].get(seed) for seed in listed)] for name in shown],
        caption="The quantities compared, seed by seed.",
    )


def _machine(row: Row) -> str:
    machine = row["machine"]
    lines = {
        "command": row["command"],
        "date": row["date"],
        "time": duration(row["minutes"]),
        "evenly": row["version"],
        "machine": f"{machine['cpu']}, {machine['usable_cpus']} cores, {machine['python']}",
        **_origins(row),
        "torch": machine["libraries"].get("torch"),
        "recipes": ", ".join(sorted(set(row["parts"].values()))),
    }
    return "\n".join(f"{name}: {value}" for name, value in lines.items())


def _origins(row: Row) -> dict[str, str]:
    """Which revision measured which seeds, on which processor."""
    by_origin: dict[tuple[str, str], list[str]] = {}
    for seed, origin in row["origins"].items():
        by_origin.setdefault((origin["revision"], origin["cpu"]), []).append(seed)
    return {f"seeds {', '.join(seeds)}": f"revision {who} on {cpu}" for (who, cpu), seeds in by_origin.items()}


def _figure(path: Path) -> bytes:
    if not path.is_file():
        raise DataError(f"{path} is named in the ledger and is not there. Run the row's experiment again.")
    return path.read_bytes()


def _picture(path: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(_figure(path)).decode()


def _page(key: str) -> str:
    return html.escape(key.replace("/", "-")) + ".html"


def _verdict(claim: Mapping[str, Any], row: Row) -> str:
    left_open = open_question(claim)
    kind = "remark" if claim["corrects"] else row["kind"]
    level = "; both numbers are of another size than the paper's" if claim["same_level"] is False else ""
    return verdict_words(claim["verdict"], kind) + (f": {left_open}" if left_open else "") + level


def _kind(claim: Mapping[str, Any]) -> str:
    return (" (our statement)" if claim["corrects"] else "") + (
        " (declared after a first run)" if claim["after"] else ""
    )


def _note(claim: Mapping[str, Any]) -> str:
    note = claim["note"]
    begun = _capitalise(note)
    return "" if not note else f"; {note}" if begun[0].islower() else f". {begun}"


def _capitalise(text: str) -> str:
    """A sentence with a capital letter, unless it begins with a symbol.

    >>> _capitalise("the paper shows it"), _capitalise("a_j as printed"), _capitalise("σ falls")
    ('The paper shows it', 'a_j as printed', 'σ falls')
    """
    return text[:1].upper() + text[1:] if re.match(r"[a-z]{2,}\b", text) else text


def _why_unjudged(row: Row) -> str:
    """Why the level of its numbers is not compared with the paper's."""
    if row["scale"] != "full":
        return "The size is not the paper's"
    if all(claim["paper"] is None for claim in row["claims"]):
        return "The paper gives no numbers here"
    return "The paper leaves settings open that the level of its numbers depends on"
