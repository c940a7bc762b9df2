"""The whole method beside its controls, seed by seed: early run, separation, and one run for every way to train."""

import logging
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evenly.data import Splits
from evenly.errors import UsageError, did_you_mean
from evenly.intervals import Interval, interval, paired
from evenly.recipe import Ascent, Model, Optimizer, Recipe, Resampling, Until
from evenly.records import Run
from evenly.training.build import load_data
from evenly.training.early import early_recipe
from evenly.training.evaluate import evaluation_split
from evenly.training.guards import cautions
from evenly.training.selection import second_recipe, shorten
from evenly.training.separations import separation_of
from evenly.training.train import train

_log = logging.getLogger(__name__)
CONTROLS = ("original", "random", "upweight", "quantile", "misclassified", "steps")


@dataclass(frozen=True)
class Row:
    """One run of a comparison: which way of training, which seed, what came of it and what it cost."""

    method: str
    seed: int
    run: str
    early: str | None
    error: float
    worst: float
    share: float
    cost: float


@dataclass(frozen=True)
class Line:
    """One way of training over all seeds: its error, and the difference to plain training, pair by pair."""

    method: str
    error: Interval
    difference: Interval | None
    worst: float
    share: float
    cost: float


def train_useful(
    recipe: Recipe,
    *,
    seeds: Iterable[int] = (0,),
    controls: Sequence[str] = ("original",),
    until: Until = Until("gain"),  # noqa: B008  # frozen
    factor: int = 2,
    keep_suspects: bool = True,
    early_model: Model | None = None,
    early_optimizer: Optimizer | None = None,
    early_ascent: Ascent | None = None,
    runs: str | os.PathLike[str] = "runs",
    split: str | None = None,
    splits: Splits | None = None,
    **running: Any,
) -> list[Row]:
    """Train the recipe by USEFUL and by each control, with the same seeds for all; resumable at any point.

    Parameters
    ----------
    recipe
        How a network is trained; its seed is replaced by each of `seeds`.
    controls
        What to compare with: `original` data, `random` upsampling of as many examples, `upweight`ed losses of the
        same ones, `quantile` (loss above the median) and `misclassified` in place of the clusters, and as many
        `steps` on the original data.
    until
        When to separate: where the gain in training error shrinks, after an epoch, or after a part of all epochs.
    early_model, early_optimizer, early_ascent
        What stands in for the recipe's in the first stage: a smaller proxy, another optimizer.
    split
        Where the error is taken; by default `test`, or `validation` where there is no such split.
    running
        What `train` takes beside a recipe: device, data_root, workers, pace.
    """
    check_controls(controls)
    rows = []
    for seed in seeds:
        mine = replace(recipe, seed=seed)
        first = early_recipe(mine, until, model=early_model, optimizer=early_optimizer, ascent=early_ascent)
        # Toy data are drawn by the seed; everything else is the same for all and loaded once.
        if recipe.resampling.start == "early" and first.model != mine.model:
            raise UsageError("resampling.start=early goes on with the early network: leave the early model out.")
        data = splits if splits is not None else load_data(mine, data_root=running.get("data_root"))
        split = evaluation_split(data, split)
        early = train(first, runs=runs, splits=data, **running)
        separation = separation_of(early, data.train)  # refuses, if it must, before anything long is trained
        for caution in cautions(early, separation, mine, factor=factor):
            _log.warning("seed %d: %s", seed, caution)
        if "original" in controls:
            plain = replace(mine, resampling=Resampling())
            rows.append(_row("original", train(plain, runs=runs, splits=data, **running), mine, split))
        for method in ("useful", *(control for control in controls if control not in ("original", "steps"))):
            second = second_recipe(mine, early.id, method, factor=factor, keep_suspects=keep_suspects)
            run = train(shorten(second, early), runs=runs, splits=data, **running)
            rows.append(_row(method, run, mine, split, early=early))
        if "steps" in controls:
            longest = round(mine.epochs * (1 + separation.share * (factor - 1)))
            longer = replace(mine, epochs=longest, resampling=Resampling())
            rows.append(_row("steps", train(longer, runs=runs, splits=data, **running), mine, split))
    return rows


def check_controls(controls: Iterable[str]) -> None:
    """Refuse a control that there is not.

    >>> check_controls(["orginal"])
    Traceback (most recent call last):
    evenly.errors.UsageError: there is no control 'orginal'. Did you mean 'original'?
    """
    for control in controls:
        if control not in CONTROLS:
            raise UsageError(f"there is no control {control!r}. {did_you_mean(control, CONTROLS)}")


def compared(rows: Sequence[Row]) -> list[Line]:
    """A line for every way of training, with intervals over seeds; the differences are to `original`, if it was run.

    >>> rows = [Row(m, s, "", None, e, e, 0.0, 1.0) for m, s, e in [
    ...     ("original", 0, 0.10), ("original", 1, 0.12), ("useful", 0, 0.09), ("useful", 1, 0.11)]]
    >>> line = compared(rows)[1]
    >>> line.method, round(line.difference.mean, 6)
    ('useful', -0.01)
    """
    methods = list(dict.fromkeys(row.method for row in rows))
    lines = []
    for method in methods:
        own = sorted((row for row in rows if row.method == method), key=lambda row: row.seed)
        plain = {row.seed: row.error for row in rows if row.method == "original"}
        difference = None
        if method != "original" and all(row.seed in plain for row in own):
            difference = paired([row.error for row in own], [plain[row.seed] for row in own])
        lines.append(
            Line(
                method,
                interval([row.error for row in own]),
                difference,
                sum(row.worst for row in own) / len(own),
                sum(row.share for row in own) / len(own),
                sum(row.cost for row in own) / len(own),
            )
        )
    return lines


def _row(method: str, run: Run, recipe: Recipe, split: str, *, early: Run | None = None) -> Row:
    summary = run.summary()
    by_group = [v for name, v in summary.items() if name.startswith(f"{split}.worst.") and name[-6:] != ".class"]
    worst = by_group or [summary[f"{split}.worst.class"]]
    plain = recipe.epochs * summary["training_examples"]
    seen = summary["gradients"] + (early.summary()["gradients"] if early is not None else 0)
    passes = summary["gradients"] / summary["examples_seen"]
    return Row(
        method=method,
        seed=recipe.seed,
        run=run.id,
        early=early.id if early is not None else None,
        error=summary[f"{split}.error"],
        worst=max(worst),
        share=summary.get("hard_share", 0.0),
        cost=seen / (plain * passes) if method != "original" else 1.0,
    )
