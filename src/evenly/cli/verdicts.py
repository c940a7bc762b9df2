"""Verdicts on the terminal: a row with its claims, the list of all experiments, and costs on clusters of GPUs."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from evenly.cli.atlas_row import print_atlas_row
from evenly.cli.output import print_json, print_table, say
from evenly.progress import wrap_text


def print_clusters(rows: list[dict[str, Any]]) -> None:
    """A row for each paper and cluster: operations, time, and how busy the GPUs are."""
    if not rows:
        return
    from evenly.papers.full_cost import SUSTAINED
    from evenly.report.wording import duration

    print()
    shown = [
        {
            **row,
            "FLOP": f"{row['flop']:.2g}",
            "time": duration(60 * row["hours"]),
            "longest part": duration(60 * row["longest"]),
            "busy": f"{row['busy']:.0%}",
        }
        for row in rows
    ]
    print_table(shown, ["of", "GPUs", "parts", "FLOP", "time", "longest part", "busy"])
    say(
        f"\nFrom the FLOP of a forward and a backward pass, counted, at {SUSTAINED / 1e12:g} TFLOP/s sustained by each "
        "GPU; the toys of the papers run on the cores beside them. No part is divided."
    )


def list_verdicts(ledger: str | os.PathLike[str], *, json: bool) -> None:
    """Every experiment with its verdict in the ledger, and how often each verdict was given."""
    from evenly.papers.reproduction import overview
    from evenly.report.verdict_words import counts_in_words
    from evenly.report.wording import duration

    lines = overview(ledger)
    if json:
        print_json(lines)
        return
    shown = [{**line, "cost": duration(line["cost"]), "verdict": _verdict_of(line)} for line in lines]
    if sys.stdout.isatty():
        _print_by_kind(shown)
    else:  # one row, one line, for grep
        print_table(shown, ["key", "verdict", "scale", "cost", "claim"])
    for sentence in counts_in_words(lines):
        say(sentence)


def _verdict_of(line: Mapping[str, Any]) -> str:
    from evenly.report.verdict_words import line_words

    return line_words(line) + (" (stale)" if line["state"] == "stale" else "")


def _print_by_kind(lines: Sequence[Mapping[str, Any]]) -> None:
    """Two lines for each experiment, so that its claim can be read at any width, under a heading for each kind."""
    from rich.console import Console
    from rich.text import Text

    from evenly.report.verdict_words import KINDS

    console = Console(highlight=False)
    width = max(len(line["key"]) for line in lines)
    with console.capture() as rendered:  # as in `print_table`
        for kind, title in KINDS.items():
            own = [line for line in lines if line["kind"] == kind]
            if own:
                console.print(Text(f"{title}: experiment, verdict, scale, time", style="bold"))
            for line in own:
                console.print(Text(f"{line['key']:{width}} {line['verdict']:24} {line['scale']:5} {line['cost']}"))
                console.print(Text(wrap_text(f"  {line['claim']}", stream=sys.stdout), style="dim"))
            if own:
                console.print()
    print(rendered.get(), end="")


def print_row(row: dict[str, Any], ledger: str | os.PathLike[str]) -> None:
    """Every claim of a row beside the paper, and the verdicts; then the open questions. The atlas has its own table."""
    if row["kind"] == "atlas":
        print_atlas_row(row, ledger)
        return
    from evenly.report.verdict_words import open_question, verdict_words
    from evenly.report.wording import claimed_difference, pair

    lines = [
        {
            "claim": claim["says"] + (" (ours)" if claim["corrects"] else "") + (" (after)" if claim["after"] else ""),
            "paper": pair(claim["paper"], claim["paper_against"]),
            "ours": pair(claim["ours"]["mean"], (claim["ours_against"] or {}).get("mean")),
            "difference": claimed_difference(claim),
            "verdict": verdict_words(claim["verdict"], "remark" if claim["corrects"] else row["kind"]),
        }
        for claim in row["claims"]
    ]
    title = f"{row['key']} at {row['scale']}, n = {len(row['seeds'])}: {verdict_words(row['verdict'], row['kind'])}"
    print_table(lines, ["claim", "paper", "ours", "difference", "verdict"], title=title)
    for claim in row["claims"] if row["scale"] != "smoke" else ():  # at smoke, no number of seeds settles anything
        if left_open := open_question(claim):
            print(f"{claim['says']}: {left_open}.")
    print()
