"""The lead of an experiment: a badge, a sentence, a few large numbers, and what to do next."""

import math
import re
from collections.abc import Mapping
from typing import Any

from evenly.intervals import Interval, points_with_interval
from evenly.report import palette
from evenly.report.blocks import Lead
from evenly.report.experiments.command import compare_command, shell_line, stored_command, train_command
from evenly.report.experiments.experiment import EARLY, Experiment, Member, label_of
from evenly.report.wording import capital, duration, percent


def lead(experiment: Experiment) -> Lead:
    """The lead of an experiment, no stronger than its numbers."""
    if experiment.record and (experiment.shown is not None or experiment.state in ("running", "stopped")):
        return _of_comparison(experiment)
    if experiment.shown is None:
        advice = experiment.record.get("recommendation") or {} if experiment.record else {}
        if advice.get("badge") == "failed":
            return Lead(str(advice.get("sentence")), badge="failed")
        return Lead("Nothing of it can be shown: " + " ".join(experiment.remarks or ["it has no run yet."]))
    return _of_run(experiment.shown, experiment.split)


def progress(experiment: Experiment) -> str:
    """The progress of a comparison: which run of how many, and about how long the rest takes.

    The time is that of the runs that are done, over the runs that are not.
    """
    cells = [
        (label_of(method), seed, cell)
        for method in experiment.record.get("methods", [])
        for seed, cell in method["runs"].items()
    ]
    early = experiment.record.get("early") or {}  # a run is stored here when it is done
    done = [member for member in experiment.members if member.summary]
    finished = len(done) + len(early)
    planned = experiment.record.get("num_runs")
    total = planned if isinstance(planned, int) else len(cells) + len(early)
    text = f"{finished} of {total} runs done"
    running = next((member for member in experiment.members if member.run.state == "running"), None)
    over = {member.id for member in done}
    training = [cell for cell in cells if cell[2].get("state") == "running" and cell[2].get("run") not in over]
    part = 0.0
    if running is not None:
        text = f"run {finished + 1} of {total}, {running.label}, seed {running.seed}, epoch {running.epochs}"
        part = (running.metrics[-1].get("epoch", 0) if running.metrics else 0) / (running.recipe.get("epochs") or 1)
    elif training and experiment.state == "running":
        text = f"run {finished + 1} of {total}, {training[0][0]}, seed {training[0][1]}"
    elif experiment.state == "running" and total > len(cells):
        for seed in [seed for seed in experiment.record["seeds"] if str(seed) not in early][:1]:
            text = f"run {finished + 1} of {total}, {EARLY}, seed {seed}"
    times = [member.summary["seconds"] for member in done if isinstance(member.summary.get("seconds"), int | float)]
    left = len(cells) - len(done) - part
    if times and left > 0 and experiment.state == "running":
        text += f", about {duration(sum(times) / len(times) * left / 60)} left"
    return text


def interval_of(numbers: Any) -> Interval | None:
    """An interval as a comparison stores it; None where there is none."""
    if not isinstance(numbers, Mapping) or not isinstance(numbers.get("mean"), int | float):
        return None
    low, high = (numbers.get(end) for end in ("low", "high"))
    ends = [math.nan if end is None else float(end) for end in (low, high)]
    return Interval(float(numbers["mean"]), ends[0], ends[1], int(numbers.get("n", 1)))


def _of_comparison(experiment: Experiment) -> Lead:
    record = experiment.record
    advice = record.get("recommendation") or {}
    finding = str(advice.get("sentence") or "")
    badge = str(advice.get("badge") or "")
    if experiment.state == "running":
        # Advice before the end would change from run to run.
        known = " The numbers are of the runs that are done." if any(m.get("error") for m in record["methods"]) else ""
        badge, finding = "running", f"Training: {progress(experiment)}.{known}"
    elif experiment.state == "stopped":
        badge, finding = "stopped", f"Stopped with {progress(experiment)}. {finding}".strip()
    main = main_method(record)
    difference = (main or {}).get("difference") or {}
    settle, following = difference.get("seeds_to_settle"), advice.get("next")
    words = f"about {settle:,} seeds would settle it." if isinstance(settle, int) and settle else ""
    if badge == "learned nothing" or _changes_settings(following, record.get("command")):
        words = "try this first:" if following else ""
    elif words and difference.get("n", 0) < 3:
        words = "more seeds tell a gain from chance; five are usual."
    if badge == "running":  # nothing to do before it is over
        words, following = "", None
    elif badge == "stopped":
        following = record.get("command")
        words = "this continues it:" if following else ""
    if badge == "helped" and not words and not following:
        words, following = _use(experiment, main)
    return Lead(
        finding or "No run is done yet.",
        badge=badge,
        facts=_facts(record, main),
        advice=words or ("run this:" if following else ""),
        next_command=stored_command(following),
        command=stored_command(record.get("command")) if badge != "stopped" else "",  # it is the next one
    )


def _changes_settings(following: Any, command: Any) -> bool:
    """Whether the next command has another learning rate or number of epochs than this one, and not only more seeds."""
    now, then = (set(re.findall(r" --(?:lr|epochs)[ =]\S+", str(each))) for each in (command, following))
    return bool(then - now)


def _use(experiment: Experiment, main: Mapping[str, Any] | None) -> tuple[str, str]:
    """How to use the method that helped: export its training set with the repeats, or its network."""
    done = [member for member in experiment.members if main and member.label == label_of(main) and member.summary]
    if not done or ((main or {}).get("difference") or {}).get("verdict") != "helped":
        return "look at what changed below.", ""
    what, kind = ("training set, hard examples repeated", "csv") if _hard_shares(main) else ("network", "hub")
    return f"export the {what}.", shell_line(["evenly", "export", str(done[0].run.path), "--as", kind])


def _hard_shares(method: Mapping[str, Any] | None) -> list[float]:
    shares = [cell.get("hard_share") for cell in (method or {}).get("runs", {}).values()]
    return [share for share in shares if isinstance(share, int | float) and share]


def main_method(record: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The method that a comparison is about: the recommended one, else the first that is no control and has run."""
    tried = [method for method in record["methods"] if not palette.is_control(label_of(method))]
    recommended = (record.get("recommendation") or {}).get("method")
    ranked = sorted(tried, key=lambda method: (method["name"] != recommended, not method.get("error")))
    return ranked[0] if ranked else None


def _facts(record: Mapping[str, Any], main: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    facts = []
    baseline = next((m for m in record["methods"] if m["name"] == record.get("baseline")), None)
    for method in (baseline, main) if main is not baseline else (main,):
        error = interval_of((method or {}).get("error"))
        if method is not None and error is not None:
            facts.append((f"error %, {label_of(method)}", percent(error)))
    difference = interval_of((main or {}).get("difference"))
    if difference is not None:
        facts.append(("difference, points (lower is better)", points_with_interval(difference)))
    if known := _hard_shares(main):
        facts.append(("hard examples", f"{sum(known) / len(known):.0%}"))
    cost = (main or {}).get("cost")
    if isinstance(cost, int | float):
        facts.append(("cost, in gradients", f"{cost:.2f}× plain"))
    return facts


def _of_run(member: Member, split: str) -> Lead:
    last = member.metrics[-1] if member.metrics else {}
    state = member.run.state
    error = member.summary.get(f"{split}.error")
    collapsed = member.summary.get("collapsed")
    facts = []
    if not member.summary:
        states = {"running": "is running", "failed": "failed", "stopped": "was stopped", "done": "is done"}
        words = states.get(state, "has not begun")
        at = f" after epoch {member.epochs}" if "epoch" in last else ""
        now = last.get(f"{split}.error")
        facts = [("epoch", member.epochs)] if last else []
        facts += [(f"{split} error now", f"{now * 100:.2f}%")] if isinstance(now, float) else []
        known = "it recorded no result" if state == "done" else "what is shown is what is known so far"
        finding = f"{capital(member.description)} {words}{at}: {known}."
    elif error is None or not math.isfinite(error):
        what = "no error" if error is None else f"no number as its error on {split}"
        finding = f"{capital(member.description)} is done, and recorded {what}."
    else:
        facts = [(f"error on {split}", f"{error * 100:.2f}%"), ("seed", str(member.seed))]
        finding = (
            f"{capital(member.label)} reaches {error * 100:.2f}% error on {split} with seed {member.seed}. It is a "
            "single run: a comparison with several seeds says whether anything helps."
        )
    if collapsed is not None:
        finding = f"{capital(member.description)} {collapsed}"
    # Of one epoch, no network is early: `evenly useful` would refuse the recipe.
    several = member.recipe.get("epochs") != 1
    done = bool(member.summary) and member.method != EARLY and collapsed is None and several
    return Lead(
        finding,
        badge="learned nothing" if collapsed is not None else "" if state == "done" else state,
        facts=facts,
        advice="compare it with USEFUL and its controls." if done else "",
        next_command=compare_command(member.run.recipe) if done else "",
        command=train_command(member.run.recipe) if member.method != EARLY else "",
    )
