"""The page of one experiment: its figure, its claims with their verdicts, every seed, and where it ran."""

import base64
import html
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenly.errors import DataError
from evenly.files.layered import find
from evenly.report.blocks import Block, Drawing, Lead, Link, Listing, Prose, Section, Table
from evenly.report.page import render
from evenly.report.verdict_tables import verdict_summary
from evenly.report.verdict_words import Row, claim_words, line_words, open_question, verdict_words
from evenly.report.wording import claimed_difference, duration, pair

SIZES = {"full": "At full size", "small": "At a smaller size"}


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
            drawn = find(ledger, f"{key.replace('/', '-')}-{row['scale']}.svg")
            blocks.append(Drawing(_picture(drawn), f"{row['title']}. {words}"))
        blocks.append(_claims(row))
        if row["deviations"]:
            blocks.append(Prose("Differs from the paper: " + "; ".join(row["deviations"]) + "."))
        if not row["levels"]:
            blocks.append(Prose(f"{_why_unjudged(row)}: the order of numbers is judged, not their level."))
        blocks.append(_seeds(row))
        blocks.append(Listing("Where it ran", _machine(row)))
        judged = line_words(line) if row["scale"] == line["scale"] else verdict_words(row["verdict"], row["kind"])
        at_papers = row["scale"] == "full" and row["kind"] == "paper"
        size = "At the paper's size" if at_papers else SIZES.get(row["scale"], row["scale"])
        sections.append(Section(row["scale"], f"{size}: {judged}", blocks))
    errata = rows[0]["errata"] if rows else []
    if errata:
        sections.append(Section("errata", "Remarks", [Prose("\n\n".join(errata))]))
    related = _related_keys(key, rows, keys)
    if related:
        links: list[list[Any]] = [[Link(other, address_of(other))] for other in related]
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


def address_of(key: str) -> str:
    """The address of an experiment's page in the site."""
    return html.escape(key.replace("/", "-")) + ".html"


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


def read_figure(path: Path) -> bytes:
    """The figure of a row, as it is in the ledger's folder."""
    if not path.is_file():
        raise DataError(f"{path} is named in the ledger and is not there. Run the row's experiment again.")
    return path.read_bytes()


def _picture(path: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(read_figure(path)).decode()


def _claims(row: Row) -> Table:
    lines = [
        {
            "claim": claim["says"] + _kind(claim) + _note(claim),
            "decides": "yes" if claim["primary"] and len(row["claims"]) > 1 else "",
            "verdict": _verdict(claim, row),
            "the paper": pair(claim["paper"], claim["paper_against"]),
            "ours": pair(claim["ours"]["mean"], (claim["ours_against"] or {}).get("mean")),
            "difference [95%]": claimed_difference(claim),
        }
        for claim in row["claims"]
    ]
    columns = [name for name in lines[0] if any(line[name] for line in lines)]
    text = f"Every claim, over {len(row['seeds'])} seed{'s' * (len(row['seeds']) != 1)}. " + (
        "The verdict of the experiment is the worst of those that decide. " if "decides" in columns else ""
    )
    text += "Where two numbers stand, the first is compared with the second."
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
    return {
        f"seed{'s' * (len(seeds) > 1)} {', '.join(seeds)}": f"revision {who} on {cpu}"
        for (who, cpu), seeds in by_origin.items()
    }


def _verdict(claim: Mapping[str, Any], row: Row) -> str:
    left_open = open_question(claim)
    kind = "remark" if claim["corrects"] else row["kind"]
    level = "; both numbers are of another size than the paper's" if claim["same_level"] is False else ""
    return claim_words(claim, kind) + (f": {left_open}" if left_open else "") + level


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
    if row["kind"] in ("stand-in", "atlas"):
        return "The data are not the paper's" if row["kind"] == "stand-in" else "No paper has these data"
    if all(claim["paper"] is None for claim in row["claims"]):
        return "The paper gives no numbers here"
    return "The paper leaves settings open that the level of its numbers depends on"
