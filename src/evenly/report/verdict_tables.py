"""Verdicts as tables for documents: of all claims of a paper, or the numbers of a few."""

from collections.abc import Mapping, Sequence
from typing import Any

from evenly.report.wording import difference, pair

Row = Mapping[str, Any]
MARK = {"reproduced": "✓", "same direction only": "~", "not reproduced": "✗", "not run": "·"}


def markdown(lines: Sequence[Mapping[str, Any]], rows: Sequence[Row], *, paper: str | None = None) -> str:
    """A table of verdicts for a document, of one paper or of all.

    >>> line = {"key": "nguyen2024/fig2", "claim": "SAM is even.", "scale": "full", "state": "not run",
    ...         "verdict": "not run", "cost": 3.0}
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
            number, word = number_of_seeds(line, own), worded(line, own)
            cells = [f"`{line['key']}`", line["claim"].replace("|", "\\|"), line["scale"], number, word]
            table.append("| " + " | ".join(cells).replace("|  |", "| |") + " |")
    return "\n".join(table)


def results(rows: Sequence[Row], keys: Sequence[str]) -> str:
    """A table of numbers for a document: of each experiment named, at the largest scale that was run, one claim.

    The claim is the first, or the one that stands after a colon: `springer2024/table1-cifar-mnist:hard`.

    >>> print(results([], ["nguyen2024/fig2"]))
    | experiment | claim | paper | ours | difference [95 %] | n | verdict | all claims |
    |---|---|---|---|---|---|---|---|
    """
    columns = ["experiment", "claim", "paper", "ours", "difference [95 %]", "n", "verdict", "all claims"]
    table = ["| " + " | ".join(columns) + " |", "|" + "---|" * len(columns)]
    for named in keys:
        key, _, wanted = named.partition(":")
        found = {row["scale"]: row for row in rows if row["key"] == key}
        row = found.get("full") or found.get("small")
        if row is None:
            continue
        claim = next(claim for claim in row["claims"] if not wanted or claim["name"] == wanted)
        cells = [
            f"`{key}` ({row['scale']})",
            claim["says"].replace("|", "\\|"),
            pair(claim["paper"], claim["paper_against"]) or "—",
            pair(claim["ours"]["mean"], (claim["ours_against"] or {}).get("mean")),
            difference(claim["difference"]),
            str(claim["difference"]["n"]),
            f"{MARK[claim['verdict']]} {claim['verdict']}",
            _held(row),
        ]
        table.append("| " + " | ".join(cells) + " |")
    return "\n".join(table)


def worded(line: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """The verdict, and where it is not the best how many of the paper's claims in the experiment are reproduced.

    >>> worded({"scale": "full", "verdict": "reproduced", "state": "stale"}, [])
    '✓ reproduced (stale)'
    """
    told = f"{MARK[line['verdict']]} {line['verdict']}"
    own = [
        claim["verdict"]
        for row in rows
        if row["scale"] == line["scale"]
        for claim in row["claims"]
        if not claim["corrects"]
    ]
    if len(own) > 1 and line["verdict"] != "reproduced":
        told += f" ({own.count('reproduced')} of {len(own)} claims are)"
    return told + (" (stale)" if line["state"] == "stale" else "")


def _held(row: Row) -> str:
    own = [claim["verdict"] for claim in row["claims"] if not claim["corrects"]]
    return f"{MARK[row['verdict']]} {own.count('reproduced')} of {len(own)}"


def number_of_seeds(line: Mapping[str, Any], rows: Sequence[Row]) -> str:
    """Of the row at the line's scale; nothing where there is none.

    >>> number_of_seeds({"scale": "full"}, [{"scale": "full", "seeds": [0, 1]}]), number_of_seeds({"scale": "full"}, [])
    ('2', '')
    """
    return next((str(len(row["seeds"])) for row in rows if row["scale"] == line["scale"]), "")
