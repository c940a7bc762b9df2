"""What a comparison comes to: in a sentence, and in its few large numbers."""

import math
from dataclasses import dataclass

from evenly.intervals import Interval, interval, paired
from evenly.report.gain import gained, percent
from evenly.report.run_page.related import EARLY, Comparison, Member, longer


@dataclass(frozen=True)
class Outcome:
    """One way of training over its seeds: errors, the paired difference to plain training, cost."""

    label: str
    errors: dict[int, float]
    error: Interval
    difference: Interval | None
    worst: float | None
    share: float | None
    cost: float | None


def outcomes(comparison: Comparison) -> list[Outcome]:
    """A line for every way of training that has a run that is done."""
    split, found = comparison.split, []
    originals = [label for label, own in comparison.by_label.items() if own[0].method == "original"]
    for label, own in comparison.by_label.items():
        errors = _errors(own, split)
        if not errors:
            continue
        # Pairs are of the same data; and with several plain recipes there, of the run's own family.
        twins = [m for m in comparison.members if m.method == "original" and m.data == own[0].data]
        if len(originals) > 1:
            twins = [m for m in twins if m.family == own[0].family]
        plain = _errors(twins, split)
        both = [seed for seed in errors if seed in plain]
        difference = None
        if own[0].method != "original" and both:
            difference = paired([errors[seed] for seed in both], [plain[seed] for seed in both])
        found.append(
            Outcome(
                label,
                errors,
                interval(list(errors.values())),
                difference,
                _mean([_worst(member, split) for member in own if member.summary]),
                _mean([member.summary.get("hard_share") for member in own if member.summary]),
                _mean([_cost(member) for member in own if member.summary]),
            )
        )
    return found


def sentence(comparison: Comparison, found: list[Outcome]) -> str:
    """What was found, in a sentence or two, no stronger than the numbers."""
    shown = comparison.shown
    if not shown.summary:
        return _underway(shown)
    by_label = {outcome.label: outcome for outcome in found}
    mine = by_label.get(shown.label)
    if mine is None:
        return f"Run {shown.id} is done, and recorded no error."
    error = f"{mine.error.mean * 100:.2f} % error on {comparison.split}"
    if mine.difference is None:
        who = {"original": "Plain training", EARLY: "The early run"}.get(shown.method, shown.label)
        return f"{who} comes to {error}{_over(mine)}; there is nothing to compare it with here."
    name = "USEFUL" if shown.method == "useful" else shown.label
    return gained(name, error, mine.difference, _against(mine, comparison) if shown.method == "useful" else None)


def at_chance(comparison: Comparison, found: list[Outcome], num_classes: int) -> str:
    """What must be known before anything else: plain training has learned nothing, so nothing can be compared.

    With C classes guessing is wrong 1 − 1/C of the time; an error near that, or whose interval holds it, is chance.
    """
    if num_classes < 2:
        return ""
    guessing = 1 - 1 / num_classes
    plain = {member.label for member in comparison.members if member.method == "original"}
    for outcome in found:
        error = outcome.error
        # The interval of very few seeds holds much: the mean must be near as well.
        holds = error.n > 1 and error.low <= guessing <= error.high and error.mean > 0.9 * guessing
        if outcome.label in plain and (holds or error.mean > 0.97 * guessing):
            return (
                f"Plain training is at chance: {error.mean * 100:.1f} % error on {comparison.split}, where guessing "
                f"among {num_classes:,} classes gives {guessing * 100:.1f} %. "
                "Train longer before comparing anything with it."
            )
    return ""


def facts(comparison: Comparison, found: list[Outcome]) -> list[tuple[str, str]]:
    """The few numbers to be seen first."""
    shown = comparison.shown
    mine = next((outcome for outcome in found if outcome.label == shown.label), None)
    rows = []
    if shown.metrics:
        if mine is None:
            rows.append(("epoch", f"{shown.metrics[-1].get('epoch', 0)} of {shown.recipe.get('epochs', '?')}"))
            error = shown.metrics[-1].get(f"{comparison.split}.error")
            rows += [(f"{comparison.split} error now", f"{error * 100:.2f} %")] if isinstance(error, float) else []
        else:
            # With several plain recipes there, the one of the run's own family is what it is compared with.
            twins = {m.label for m in comparison.members if m.method == "original" and m.family == shown.family}
            plain = next((o for o in found if o.label in twins and o is not mine), None)
            rows += [("error %, original", percent(plain.error))] if plain is not None else []
            rows.append((f"error %, {shown.label}", percent(mine.error)))
            if mine.difference is not None:
                rows.append(("difference, points", percent(mine.difference, signed=True)))
            if mine.share:
                rows.append(("hard examples", f"{mine.share:.0%}"))
            if mine.cost is not None and shown.method != "original":
                rows.append(("cost, in gradients", f"{mine.cost:.2f}×"))
    return rows


def _against(mine: Outcome, comparison: Comparison) -> dict[str, Interval]:
    """The paired differences to the controls for extra steps, over the seeds that both have."""
    found = {}
    for name, errors in _controls(comparison).items():
        if both := [seed for seed in mine.errors if seed in errors]:
            found[name] = paired([mine.errors[s] for s in both], [errors[s] for s in both])
    return found


def _controls(comparison: Comparison) -> dict[str, dict[int, float]]:
    """The errors of the controls for extra steps, seed by seed: those of the same recipe, whatever their labels say."""
    shown, found = comparison.shown, {}
    random = [m for m in comparison.members if m.method == "random" and m.family == shown.family]
    # The same factor and the same early run where there is such a control, else what there is.
    random = [m for m in random if m.variant == shown.variant] or random
    wanted = {(m.seed, longer(m)) for m in comparison.by_label[shown.label]}
    steps = [m for m in comparison.members if m.method == "steps" and (m.seed, m.family) in wanted]
    for name, own in (("random", random), ("steps", steps)):
        if errors := _errors(own, comparison.split):
            found[name] = errors
    return found


def _underway(shown: Member) -> str:
    last = shown.metrics[-1] if shown.metrics else {}
    state = {"running": "is running", "failed": "failed", "stopped": "was stopped"}.get(
        shown.run.state, "has not begun"
    )
    at = f" after epoch {last['epoch']} of {shown.recipe.get('epochs', '?')}" if "epoch" in last else ""
    return f"Run {shown.id} ({shown.label}, seed {shown.seed}) {state}{at}: what is shown is what is known so far."


def _over(mine: Outcome) -> str:
    return f" over {mine.error.n} seeds" if mine.error.n > 1 else ""


def _errors(members: list[Member], split: str) -> dict[int, float]:
    known = {member.seed: member.summary.get(f"{split}.error") for member in members}
    return {seed: value for seed, value in sorted(known.items()) if value is not None and math.isfinite(value)}


def _worst(member: Member, split: str) -> float | None:
    """The error of the worst group where there are groups, else of the worst class."""
    ends = {name: value for name, value in member.summary.items() if name.startswith(f"{split}.worst.")}
    groups = [value for name, value in ends.items() if not name.endswith(".class")]
    return max(groups, default=ends.get(f"{split}.worst.class"))


def _cost(member: Member) -> float | None:
    """Gradients of single examples, those of the early run too, in units of plain training by the same recipe."""
    own = member.summary
    if member.method == "original":
        return 1.0
    if (
        not all(own.get(name) for name in ("gradients", "examples_seen", "training_examples"))
        or not member.plain_epochs
    ):
        return None
    first = member.early_summary
    if member.chosen_by != "none" and first.get("gradients") is None:
        return None
    early = first.get("gradients") or 0
    passes = own["gradients"] / own["examples_seen"]
    return float((own["gradients"] + early) / (member.plain_epochs * own["training_examples"] * passes))


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
