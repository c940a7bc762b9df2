"""What a comparison comes to in a sentence, its few large numbers, and the command that repeats it."""

import math
import shlex
from dataclasses import dataclass
from typing import Any

from evenly import recipe as recipes
from evenly.errors import UsageError
from evenly.intervals import Interval, interval, paired
from evenly.recipe import Recipe
from evenly.records.run import flat
from evenly.report.run_page.related import Comparison, Member
from evenly.typed import yaml_text


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
    plain = next((_errors(own, split) for label, own in comparison.by_label.items() if own[0].method == "original"), {})
    originals = [label for label, own in comparison.by_label.items() if own[0].method == "original"]
    for label, own in comparison.by_label.items():
        errors = _errors(own, split)
        if not errors:
            continue
        # Pairs are of one recipe: with several plain recipes there, those of the run's own family are taken.
        if len(originals) > 1:
            twins = [m for m in comparison.members if m.method == "original" and m.family == own[0].family]
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
        who = "Plain training" if shown.method == "original" else shown.label
        return f"{who} comes to {error}{_over(mine)}; there is nothing to compare it with here."
    name = "USEFUL" if shown.method == "useful" else shown.label
    gain = mine.difference
    word = "lower" if gain.mean < 0 else "higher"
    told = f"{name} comes to {error}, {abs(gain.mean) * 100:.2f} points {word} than plain training"
    if round(gain.mean, 4) == 0:
        told = f"{name} comes to {error}, the same as plain training"
    if gain.n < 2:
        return f"{told}, with one seed: that says nothing yet."
    ends = f"95 % interval {_signed(gain.low)} to {_signed(gain.high)} points, {gain.n} paired seeds"
    if not gain.excludes_zero:
        return f"{told} ({ends}): the interval includes zero, so this may be chance."
    told += f" ({ends})"
    if shown.method != "useful" or gain.mean > 0:
        return f"{told}."
    return f"{told}{_beyond_controls(mine, by_label)}"


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
            plain = next((o for o in found if o.label.startswith("original") and o is not mine), None)
            rows += [("error %, original", percent(plain.error))] if plain is not None else []
            rows.append((f"error %, {shown.label}", percent(mine.error)))
            if mine.difference is not None:
                rows.append(("difference, points", percent(mine.difference, signed=True)))
            if mine.share:
                rows.append(("hard examples", f"{mine.share:.0%}"))
            if mine.cost is not None and shown.method != "original":
                rows.append(("cost, in gradients", f"{mine.cost:.2f}×"))
    return rows


def command(comparison: Comparison) -> str:
    """The command that repeats the comparison, or the run where it stands alone."""
    shown = comparison.shown
    members = [member for member in comparison.members if member.family == shown.family or member.method == "steps"]
    order = ("original", "random", "upweight", "quantile", "misclassified", "steps")
    methods = sorted({member.method for member in members}, key=lambda m: order.index(m) if m in order else -1)
    base = dict(shown.run.recipe) | {"resampling": {}, "until": {}, "seed": 0}
    if "useful" not in methods or shown.is_early:
        return " ".join(["evenly train", *_described(dict(shown.run.recipe))])
    first = next(member for member in members if member.method == "useful")
    words = ["evenly useful", *_described(base)]
    controls = [method for method in methods if method != "useful"]
    words += ["--controls", ",".join(controls)] if controls else ["--controls ''"]
    words += ["--seeds", ",".join(str(seed) for seed in sorted({m.seed for m in members}))]
    if first.early is not None:
        words += _first_stage(flat(first.early.recipe), first.recipe)
    factor = first.recipe.get("resampling.factor", 2)
    words += ["--factor", str(factor)] if factor != 2 else []
    words += ["--drop-suspect"] if first.recipe.get("resampling.keep_suspects") is False else []
    return " ".join(words)


def percent(found: Interval, *, signed: bool = False) -> str:
    """An interval in per cent, as mean ± half its width.

    >>> percent(interval([0.01, 0.03])), percent(interval([0.01]), signed=True)
    ('2.00 ± 12.71', '+1.00')
    """
    text = _signed(found.mean) if signed else f"{found.mean * 100:.2f}"
    return text if found.n < 2 else f"{text} ± {(found.high - found.low) / 2 * 100:.2f}"


def _signed(value: float) -> str:
    """A difference in points, with a minus that is as wide as a plus."""
    return f"{value * 100:+.2f}".replace("-", "−")


def _beyond_controls(mine: Outcome, by_label: dict[str, Outcome]) -> str:
    """Whether the gain is more than what as many examples of any kind give."""
    controls = [by_label[name] for name in ("random", "steps") if name in by_label]
    if not controls:
        return ". Whether it is more than the extra steps is not known: no `random` or `steps` control was run."
    for control in controls:
        both = [seed for seed in mine.errors if seed in control.errors]
        apart = paired([mine.errors[s] for s in both], [control.errors[s] for s in both]) if both else None
        if apart is None or not apart.excludes_zero or apart.mean > 0:
            return f", but not clearly lower than its control `{control.label}`: it may be the extra steps."
    return ", and lower than as many examples of any kind."


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
    if not {"gradients", "examples_seen", "training_examples"} <= set(own):
        return None
    if member.chosen_by != "none" and (member.early is None or "gradients" not in member.early.summary()):
        return None
    early = member.early.summary()["gradients"] if member.early is not None else 0
    passes = own["gradients"] / max(own["examples_seen"], 1)
    return float((own["gradients"] + early) / (member.plain_epochs * own["training_examples"] * passes))


def _described(mapping: dict[str, Any]) -> list[str]:
    """A recipe as the words of a command: what differs from the defaults, the usual settings by name."""
    try:
        known = flat(recipes.to_mapping(recipes.from_mapping(Recipe, mapping), defaults=False))
    except UsageError:  # a recipe of another version: every setting as it stands
        known = flat(mapping)
    words = [shlex.quote(str(mapping.get("data", {}).get("name", "digits")))]
    named = {"model.name": "--model", "optimizer.lr": "--lr", "epochs": "--epochs", "batch_size": "--batch-size"}
    named |= {"seed": "--seed"}
    rest = []
    for path, value in known.items():
        text = yaml_text.render({"v": value}).removeprefix("v:").strip() if not isinstance(value, str) else value
        if path in named:
            words += [named[path], shlex.quote(text)]
        elif path != "data.name":
            rest += ["--set", shlex.quote(f"{path}={text}")]
    return [*words, *rest]


def _first_stage(early: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """When the examples were separated, and what stood in for the network or the optimizer until then."""
    moments = {"epoch": "--at-epoch", "fraction": "--at-fraction"}
    rule = str(early.get("until.rule"))
    words = [moments[rule], f"{early.get('until.value', 0):g}"] if rule in moments else []
    if early.get("model.name") != second.get("model.name"):
        words += ["--early-model", shlex.quote(str(early.get("model.name")))]
    if any(early.get(name) != second.get(name) for name in ("ascent.rule", "optimizer.name")):
        ascent = early.get("ascent.rule", "none")
        words += ["--early-optimizer", str(early.get("optimizer.name") if ascent == "none" else ascent)]
    if early.get("optimizer.lr") != second.get("optimizer.lr"):
        words += ["--early-lr", f"{early.get('optimizer.lr'):g}"]
    return words


def _mean(values: list[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return math.fsum(known) / len(known) if known else None
