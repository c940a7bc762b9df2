"""Verdicts as tables for documents: of all claims of a paper, or the numbers of a few."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly.report.verdict_words import Row, claim_words, line_words, num_holding, open_question
from evenly.report.wording import claimed_difference, pair


def markdown(lines: Sequence[Mapping[str, Any]], rows: Sequence[Row], *, paper: str | None = None) -> str:
    """A table of verdicts for a document, of one paper or of all.

    >>> line = {"key": "nguyen2024/fig2", "claim": "SAM is even.", "scale": "full", "kind": "paper",
    ...         "state": "not run", "verdict": "not run", "cost": 3.0}
    >>> print(markdown([line], []))
    | experiment | claim | scale | n | verdict |
    |---|---|---|---|---|
    | `nguyen2024/fig2` | SAM is even. | full | | · not run |
    """
    by_key: dict[str, list[Row]] = {}
    for row in rows:
        by_key.setdefault(row["key"], []).append(row)
    table = ["| experiment | claim | scale | n | verdict |", "|---|---|---|---|---|"]
    for line in lines:
        if paper is None or line["key"].startswith(f"{paper}/"):
            own = by_key.get(line["key"], ())
            number, word = number_of_seeds(line, own), verdict_summary(line, own)
            cells = [f"`{line['key']}`", line["claim"].replace("|", "\\|"), line["scale"], number, word]
            table.append("| " + " | ".join(cells).replace("|  |", "| |") + " |")
    return "\n".join(table)


def results(rows: Sequence[Row], keys: Sequence[str]) -> str:
    """A table of numbers for a document: of each experiment named, at the largest scale that was run, one claim.

    The claim is the one that decides the verdict of the row, or the one named after a colon:
    `springer2024/table1-cifar-mnist:hard`.

    >>> print(results([], ["nguyen2024/fig2"]))
    | experiment | claim | paper | ours | difference [95%] | n | verdict | all claims |
    |---|---|---|---|---|---|---|---|
    """
    columns = ["experiment", "claim", "paper", "ours", "difference [95%]", "n", "verdict", "all claims"]
    table = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for named in keys:
        key, _, wanted = named.partition(":")
        by_scale = {row["scale"]: row for row in rows if row["key"] == key}
        row = by_scale.get("full") or by_scale.get("small")
        if row is None:
            continue
        # Of several primary claims, one that decides the row.
        deciding = (each["name"] for each in row["claims"] if each["primary"] and each["verdict"] == row["verdict"])
        wanted = wanted or next(deciding)
        claim = next(each for each in row["claims"] if each["name"] == wanted)
        cells = [
            f"`{key}` ({row['scale']})",
            claim["says"].replace("|", "\\|"),
            pair(claim["paper"], claim["paper_against"]) or "—",
            pair(claim["ours"]["mean"], (claim["ours_against"] or {}).get("mean")),
            claimed_difference(claim),
            str(claim["difference"]["n"]),
            _verdict(claim, row),
            "{} of {} hold".format(*num_holding(row)),
        ]
        table.append("| " + " | ".join(cells) + " |")
    return "\n".join(table)


def verdict_summary(line: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """The verdict of a row, and how many of the paper's claims in the experiment hold.

    The claims of the atlas are not counted: singly, they are not corrected for their number.

    >>> verdict_summary({"scale": "full", "kind": "paper", "verdict": "reproduced", "state": "stale"}, [])
    '✓ reproduced (stale)'
    """
    text = line_words(line)
    for row in rows if line["kind"] != "atlas" else ():
        holding, declared = num_holding(row)
        if row["scale"] == line["scale"] and declared > 1:
            text += f" ({holding} of {declared} claims hold)"
    return text + (" (stale)" if line["state"] == "stale" else "")


def _verdict(claim: Mapping[str, Any], row: Row) -> str:
    left_open = open_question(claim)
    return claim_words(claim, row["kind"]) + (f": {left_open}" if left_open else "")


def number_of_seeds(line: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Of the row at the line's scale; nothing where there is none.

    >>> number_of_seeds({"scale": "full"}, [{"scale": "full", "seeds": [0, 1]}]), number_of_seeds({"scale": "full"}, [])
    ('2', '')
    """
    return next((str(len(row["seeds"])) for row in rows if row["scale"] == line["scale"]), "")
