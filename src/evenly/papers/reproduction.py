"""Reproduce an experiment: run it, judge it, draw it, and write its row to the ledger."""

import os
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from evenly.errors import UsageError
from evenly.papers import ledger as book
from evenly.papers.atlas.cells import cells
from evenly.papers.catalogue import CATALOGUE
from evenly.papers.experiment import Context, Experiment, Part
from evenly.papers.measurement import check, measure, plan_parts
from evenly.papers.part_store import discard, is_stored
from evenly.papers.recording import current_row, record, writing
from evenly.papers.verdict import is_worse
from evenly.report.wording import duration
from evenly.sweep.launch import HERE, JobsFailed, launch
from evenly.sweep.where import Where

LONG = 600.0  # longer experiments need confirmation


def reproduce(
    experiment: Experiment,
    scale: str,
    *,
    seeds: Sequence[int] | None = None,
    ledger: str | os.PathLike[str] | None = None,
    runs: str | os.PathLike[str] = "runs",
    data_root: str | None = None,
    where: Where = HERE,
    fresh: bool = False,
    replacing: bool = False,
) -> book.Row:
    """Run an experiment at one scale and return its row; with `ledger`, write it there with its figure.

    Other seeds of the row in the ledger are kept, unless the row is replaced. `fresh` runs all parts again.
    """
    if ledger is not None and not replacing:
        book.read(ledger, experiment.key, scale)  # a damaged row is reported before hours of work, not after
    measured, minutes = measure(
        experiment, scale, seeds=seeds, runs=runs, data_root=data_root, where=where, fresh=fresh
    )
    seeds = tuple(seeds or experiment.scales[scale].seeds)
    if ledger is None:
        return book.row(experiment, scale, measured, seeds=seeds, minutes=minutes)
    return record(
        experiment,
        scale,
        measured,
        seeds=seeds,
        minutes=minutes,
        ledger=ledger,
        context=Context(Path(runs), data_root),
        replacing=replacing,
    )


def measure_together(
    chosen: Sequence[tuple[Experiment, str]],
    *,
    where: Where,
    ledger: str | os.PathLike[str],
    seeds: Sequence[int] | None = None,
    more: int | None = None,
    runs: str | os.PathLike[str] = "runs",
    data_root: str | None = None,
    fresh: bool = False,
) -> tuple[list[tuple[Experiment, str]], JobsFailed | None]:
    """Run the parts of several experiments as one plan; return the complete experiments, and the failures.

    One after the other, experiments of a few parts would leave most of a cluster idle.
    """
    context = Context(Path(runs), data_root)
    parts: dict[str, list[Part]] = {}
    for experiment, scale in chosen:
        wanted = seeds if more is None else seeds_to_add(experiment, scale, more, ledger=ledger)
        parts[experiment.key] = check(experiment, scale, seeds=wanted, data_root=data_root)
    if fresh:
        for own in parts.values():
            for part in own:
                discard(context, part)
    failed = None
    try:
        launch(plan_parts(context, parts), where, runs=context.runs, what=f"{len(chosen)} experiments")
    except JobsFailed as error:
        failed = error
    whole = [(each, scale) for each, scale in chosen if all(is_stored(context, part) for part in parts[each.key])]
    return whole, failed


def grow(
    experiment: Experiment,
    scale: str,
    more: int,
    *,
    ledger: str | os.PathLike[str],
    runs: str | os.PathLike[str] = "runs",
    data_root: str | None = None,
    where: Where = HERE,
) -> book.Row:
    """Add `more` seeds to the row that the ledger has: the declared ones first, then those that follow.

    Existing seeds may have been measured on other machines and are not measured again. A row with another identity is
    refused, since its numbers mean something else.
    """
    seeds = seeds_to_add(experiment, scale, more, ledger=ledger)
    return reproduce(experiment, scale, seeds=seeds, ledger=ledger, runs=runs, data_root=data_root, where=where)


def seeds_to_add(experiment: Experiment, scale: str, more: int, *, ledger: str | os.PathLike[str]) -> tuple[int, ...]:
    """The seeds that `more` adds to the row in the ledger, which must measure what this version does."""
    if more < 1:
        raise UsageError(f"--more {more}: give 1 or more seeds.")
    row = book.read(ledger, experiment.key, scale)
    if row is not None and book.stale(row, experiment):
        raise UsageError(
            f"the row of {experiment.key} at {scale} in {ledger} measures something other than what this "
            "version measures: its seeds cannot be joined with new ones. Begin a new row: "
            f"evenly reproduce {experiment.key} --scale {scale}"
        )
    return next_seeds(row["seeds"] if row is not None else (), experiment.scales[scale].seeds, more)


def next_seeds(known: Sequence[int], declared: Sequence[int], more: int) -> tuple[int, ...]:
    """The seeds that come next: the declared ones that are missing, then the whole numbers from there on.

    >>> next_seeds((0, 1), (0, 1, 2), 3)
    (2, 3, 4)
    """
    candidates = [*declared, *range(max((*known, *declared), default=-1) + 1 + more)]
    return tuple(list(dict.fromkeys(seed for seed in candidates if seed not in known))[:more])


def judge_all(ledger: str | os.PathLike[str], *, dry_run: bool = False) -> list[str]:
    """Judge every row by the current claims, and return the keys of those whose verdict changed.

    Each row is read, judged and written under the lock of the ledger: another process may add seeds to it meanwhile.
    With `dry_run` nothing is written.
    """
    changed = []
    for key, scale in [(row["key"], row["scale"]) for row in book.rows(ledger)]:
        experiment = CATALOGUE.get(key)
        if experiment is None:
            continue
        with nullcontext() if dry_run else writing(ledger):
            row = current_row(ledger, experiment, scale)
            if row is None:
                continue
            judged = book.judge_again(row, experiment)
            if judged != row and not dry_run:
                book.write(ledger, judged)
        if judged["verdict"] != row["verdict"]:
            changed.append(f"{key} at {scale}: {row['verdict']} → {judged['verdict']}")
    return changed


def overview(ledger: str | os.PathLike[str]) -> list[dict[str, Any]]:
    """A line for every experiment and scale in the ledger, and one for each experiment that is missing from it.

    An experiment with nothing but a stand-in is missing: a stand-in does not judge the paper.

    The line of a task of the atlas also has its verdict after the correction over all its rows, as `corrected`.

    States: `done`, `stale` (its work or its claims are declared differently now), `not run`.

    >>> line = overview("nowhere")[0]
    >>> sorted(line), line["state"]
    (['claim', 'cost', 'key', 'kind', 'scale', 'state', 'verdict'], 'not run')
    """
    lines, fresh_atlas_rows = [], []
    for experiment in CATALOGUE.values():
        known = {scale: book.read(ledger, experiment.key, scale) for scale in ("full", "small")}
        rows = [row for row in known.values() if row is not None]
        for row in rows:
            state = "stale" if book.stale(row, experiment) else "done"
            lines.append(_line(experiment, row["scale"], state, row["verdict"], row["minutes"]))
            if experiment.atlas and state == "done":
                fresh_atlas_rows.append(row)
        missing = _judging_scale(experiment)
        if not any(row["kind"] == experiment.kind(missing) for row in rows):
            lines.append(_line(experiment, missing, "not run", "not run", 0.0))
    words = {
        cell.task: cell.verdict
        for cell in cells(fresh_atlas_rows)
        if f"{cell.cure} {cell.error}" == CATALOGUE[cell.task].primary
    }
    return [
        {**line, "corrected": words[line["key"]]} if line["state"] == "done" and line["key"] in words else line
        for line in lines
    ]


def _judging_scale(experiment: Experiment) -> str:
    """The scale at which an experiment is run by default, or the full one if that is but a stand-in for it."""
    usual = book.resolve_scale("auto", experiment)
    return "full" if experiment.kind(usual) == "stand-in" and "full" in experiment.scales else usual


def regressions(rows: Sequence[book.Row], ledger: str | os.PathLike[str]) -> list[str]:
    """A sentence for each experiment, and each single claim, whose verdict is worse than in the ledger.

    At the smoke scale two seeds decide nothing: only a claim that held and now has the other sign is worse.
    """
    worse = []
    for row in rows:
        before = book.read(ledger, row["key"], row["scale"])
        if before is None:
            continue
        place = f"{row['key']} at {row['scale']}"
        was = {"": before["verdict"]} | {claim["name"]: claim["verdict"] for claim in before["claims"]}
        now = {"": row["verdict"]} | {claim["name"]: claim["verdict"] for claim in row["claims"]}
        for name, verdict in was.items():
            where = f"{place}, {name}" if name else place
            if name not in now:
                worse.append(f"{where}: {verdict} → not declared any more")
            elif is_worse(now[name], verdict) and (row["scale"] != "smoke" or _is_reversed(now[name], verdict)):
                worse.append(f"{where}: {verdict} → {now[name]}")
    return worse


def _is_reversed(now: str, before: str) -> bool:
    return (before, now) == ("reproduced", "contradicted")


def cost(experiment: Experiment, scale: str, seeds: Sequence[int] | None = None) -> float:
    """The minutes on two cores, for the declared seeds or others."""
    size = experiment.scales[scale]
    return size.minutes * len(seeds or size.seeds) / len(size.seeds)


def check_cost(experiment: Experiment, scale: str, *, yes: bool, seeds: Sequence[int] | None = None) -> None:
    """Refuse an experiment of more than ten hours unless it is confirmed."""
    minutes = cost(experiment, scale, seeds)
    if minutes > LONG and not yes:
        smaller = " or take --scale small" if scale == "full" and "small" in experiment.scales else ""
        raise UsageError(
            f"{experiment.key} at {scale} takes about {duration(minutes)} on two cores. Add --yes to begin{smaller}."
        )


def _line(experiment: Experiment, scale: str, state: str, verdict: str, minutes: float) -> dict[str, Any]:
    # The declared cost, not the time on a machine that may have been busy.
    if scale in experiment.scales:
        minutes = experiment.scales[scale].minutes
    return {
        "key": experiment.key,
        "claim": experiment.claim,
        "scale": scale,
        "kind": experiment.kind(scale) if scale in experiment.scales else "paper",
        "state": state,
        "verdict": verdict,
        "cost": round(minutes, 2),
    }
