"""The claims of the papers as a site: a table of all verdicts, and a page for every experiment.

Everything comes from the rows of a ledger and the lines of its overview, which are plain JSON.
"""

import base64
import html
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenly import atomic
from evenly.errors import DataError, UsageError
from evenly.report.blocks import Block, Drawing, Link, Listing, Prose, Section, Table
from evenly.report.page import render
from evenly.report.verdict_tables import number_of_seeds, worded
from evenly.report.verdict_words import Row, counts, open_question, verdict_words
from evenly.report.wording import difference, lasting, pair

RULE = (
    "A claim is judged by the paired differences over seeds, their 95 % t-interval, and the effect that the paper "
    "states. Reproduced: the interval excludes zero on the claimed side, and the mean is within a margin of the "
    "paper's effect that was set in advance. Weaker or stronger than claimed: it excludes zero on the claimed side, "
    "but the mean is outside the margin. Contradicted: it lies wholly on the other side of zero, or excludes even "
    "half of the effect. Inconclusive: everything else; the number of seeds that would settle it is given for a "
    "power of 0.9. The verdict of an experiment is that of its primary claim, the sentence of the paper; the others "
    "are details. A stand-in, with other data, another network or another regime, does not judge the paper: the "
    "effect is seen there, not seen, or unclear. Remarks and corrections of ours are counted apart."
)
KINDS = {"paper": "Claims of the papers", "stand-in": "In stand-ins", "remark": "Our remarks and corrections",
         "atlas": "Atlas of cures"}  # fmt: skip


def write_site(
    out: str | os.PathLike[str],
    lines: Sequence[Mapping[str, Any]],
    rows: Sequence[Row],
    *,
    ledger: str | os.PathLike[str],
    papers: Mapping[str, tuple[str, str]],
    force: bool = False,
) -> Path:
    """Write the site into the folder `out` and give the path of its first page.

    `lines` are those of the overview (every experiment, also what was not run), `rows` those of the ledger, whose
    folder holds the figures, and `papers` the short and the full name of each paper by its key.
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
    for line in lines:
        found = by_key.get(line["key"], [])
        atomic.write_text(out / _page(line["key"]), experiment_page(line, found, ledger=ledger, papers=papers))
    atomic.write_text(first, index_page(lines, by_key, papers=papers))
    return first


def index_page(
    lines: Sequence[Mapping[str, Any]], rows: Mapping[str, Sequence[Row]], *, papers: Mapping[str, tuple[str, str]]
) -> str:
    """The first page: what became of every claim, paper by paper."""
    counted = counts(lines)
    facts = [(word, str(number)) for word, number in counted.get("paper", {}).items()]
    sections = []
    for paper, (name, title) in papers.items():
        own = [line for line in lines if line["key"].startswith(f"{paper}/")]
        table = Table(
            ["experiment", "verdict", "claim", "scale", "n", "cost"],
            [
                [
                    Link(line["key"].partition("/")[2], _page(line["key"])),
                    worded(line, rows.get(line["key"], ())),
                    line["claim"],
                    line["scale"],
                    number_of_seeds(line, rows.get(line["key"], ())),
                    lasting(line["cost"]),
                ]
                for line in own
            ],
            whole=True,
        )
        sections.append(Section(paper, name, [Prose(title), table]))
    sections.append(Section("rule", "How verdicts come about", [Prose(RULE)]))
    told = [f"{KINDS[kind]}: " + ", ".join(f"{n} {word}" for word, n in by.items()) for kind, by in counted.items()]
    verdict = f"{len(lines)} experiments of {len(papers)} papers, each judged by rule. " + ". ".join(told) + "."
    return render("Claims and what became of them", verdict, sections, "evenly reproduce --list", facts=facts)


def experiment_page(
    line: Mapping[str, Any],
    rows: Sequence[Row],
    *,
    ledger: str | os.PathLike[str],
    papers: Mapping[str, tuple[str, str]],
) -> str:
    """The page of one experiment: at every scale that was run, the figure, each claim, and every seed."""
    key = line["key"]
    sections = []
    for row in rows:
        blocks: list[Block] = []
        if row["figure"]:
            words = " ".join(_begun(claim["says"]) + "." for claim in row["claims"])
            # By its own name: a row may come from a stranger, and names no other file.
            drawn = Path(ledger) / f"{key.replace('/', '-')}-{row['scale']}.svg"
            blocks.append(Drawing(_picture(drawn), f"{row['title']}. {words}"))
        blocks.append(_claims(row))
        if row["deviations"]:
            blocks.append(Prose("Differs from the paper: " + "; ".join(row["deviations"]) + "."))
        if not row["levels"]:
            blocks.append(Prose(f"{_unjudged(row)}: the order of numbers is judged, not their level."))
        blocks.append(_seeds(row))
        blocks.append(Listing("Where it ran", _machine(row)))
        judged = verdict_words(row["verdict"], row["kind"])
        sections.append(Section(row["scale"], f"At scale {row['scale']}: {judged}", blocks))
    errata = rows[0]["errata"] if rows else []
    if errata:
        sections.append(Section("errata", "What is wrong or left open in the paper", [Prose("\n\n".join(errata))]))
    sections.append(Section("paper", "The paper", [Prose(papers[key.partition("/")[0]][1])]))
    verdict = line["claim"] + f" {worded(line, rows)}."
    if line["state"] == "stale":
        verdict += " The row was written by another revision: the work or the claims are declared differently now."
    title = rows[0]["title"] if rows else key
    command = f"evenly reproduce {key} --scale {line['scale']}"
    return render(f"{key}: {title}", verdict, sections, command, up=Link("All claims", "index.html"))


def _claims(row: Row) -> Table:
    lines = [
        {
            "claim": claim["says"] + _kind(claim) + _note(claim),
            "verdict": _verdict(claim, row),
            "the paper": pair(claim["paper"], claim["paper_against"]),
            "ours": pair(claim["ours"]["mean"], (claim["ours_against"] or {}).get("mean")),
            "difference [95 %]": difference(claim["difference"]),
        }
        for claim in row["claims"]
    ]
    columns = [name for name in lines[0] if any(line[name] for line in lines)]
    told = f"Every claim, over {len(row['seeds'])} seeds; two numbers are what is compared, in this order."
    return Table(columns, lines, caption=told, whole=True)


def _seeds(row: Row) -> Table:
    named = {name for claim in row["claims"] for name in (claim["value"], claim["against"]) if isinstance(name, str)}
    shown = [name for name in row["quantities"] if name in named]
    seeds = [str(seed) for seed in row["seeds"]]
    listed = [s for s in seeds if any(s in row["quantities"][name] for name in shown)]
    # Draws of a numerical check are numbered on their own.
    listed = listed or sorted({s for name in shown for s in row["quantities"][name]}, key=int)
    return Table(
        ["quantity", *(f"seed {seed}" for seed in listed)],
        [[name, *(row["quantities"][name].get(seed) for seed in listed)] for name in shown],
        caption="Every seed of what was compared.",
    )


def _machine(row: Row) -> str:
    machine = row["machine"]
    lines = {
        "command": row["command"],
        "date": row["date"],
        "time": lasting(row["minutes"]),
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


def _picture(path: Path) -> str:
    if not path.is_file():
        raise DataError(f"{path} is named in the ledger and is not there. Run the row's experiment again.")
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()


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
    begun = _begun(note)
    return "" if not note else f"; {note}" if begun[0].islower() else f". {begun}"


def _begun(text: str) -> str:
    """A sentence with a capital, unless it begins with a symbol, which is another one in capitals.

    >>> _begun("the paper shows it"), _begun("a_j as printed"), _begun("σ falls")
    ('The paper shows it', 'a_j as printed', 'σ falls')
    """
    return text[:1].upper() + text[1:] if re.match(r"[a-z]{2,}\b", text) else text


def _unjudged(row: Row) -> str:
    """Why the level of its numbers is not held against the paper's."""
    if row["scale"] != "full":
        return "The size is not the paper's"
    if all(claim["paper"] is None for claim in row["claims"]):
        return "The paper gives no numbers here"
    return "The paper leaves settings open that the level of its numbers depends on"
