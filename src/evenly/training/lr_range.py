"""`--lr auto`: a learning rate found by trying several for a short while, before the training that was asked for.

Each rate is tried by a run of its own, one epoch on at most 5,000 training examples from the same first weights, under
`RUNS/lr-tests`: what is interrupted goes on with the next command, and what was tried stays to be looked at
(`evenly runs --runs RUNS/lr-tests`).
"""

import contextlib
import logging
import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from evenly import rng
from evenly.atomic import write_text
from evenly.data import Splits
from evenly.errors import UsageError
from evenly.recipe import Recipe, Resampling, Schedule, Until
from evenly.records import json_text
from evenly.training.build import default_lr, load_data
from evenly.training.divergence import Diverged
from evenly.training.train import train

FOLDER = "lr-tests"
MOST_EXAMPLES = 5_000
STEPS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03)  # times the usual rate of the optimizer, from above
WITHIN = 1.05  # a larger rate is as good if its loss is within this of the lowest


@dataclass(frozen=True)
class Trial:
    """A learning rate that was tried: the training loss at the end (None where it was no number), and its run."""

    lr: float
    loss: float | None
    run: str | None


@dataclass(frozen=True)
class RangeTest:
    """What was tried, what was chosen, and the file that records both."""

    trials: tuple[Trial, ...]
    lr: float
    path: Path

    def sentence(self) -> str:
        """What was done, for a person."""
        tried = ", ".join(
            f"{trial.lr:g}: {'diverged' if trial.loss is None else f'{trial.loss:.3f}'}" for trial in self.trials
        )
        return f"--lr auto chose {self.lr:g} (training loss after a short run, by learning rate: {tried}; {self.path})."


def range_test(
    recipe: Recipe, *, runs: str | os.PathLike[str] = "runs", splits: Splits | None = None, **running: Any
) -> RangeTest:
    """Try learning rates around the optimizer's usual one and choose; `running` is what `train` takes besides.

    Chosen is the largest rate whose training loss is within a twentieth of the lowest: rates that are too small look
    well in a short test and are slow in a long one.
    """
    data = splits if splits is not None else load_data(recipe, data_root=running.get("data_root"))
    folder = Path(runs) / FOLDER
    order = torch.randperm(len(data.train), generator=rng.generator(0, "learning rate test"))
    indices = order[:MOST_EXAMPLES].sort().values if len(order) > MOST_EXAMPLES else None
    short = replace(
        recipe,
        epochs=1,
        schedule=Schedule("constant"),
        resampling=Resampling(),
        until=Until(),
        keep_epochs=(),
        record_examples=False,
        seed=0,
        data=replace(recipe.data, seed=recipe.seed if recipe.data.seed is None else recipe.data.seed),
    )
    trials = []
    with _without_remarks():
        for step in STEPS:
            rate = float(f"{default_lr(recipe.optimizer.name) * step:.3g}")
            once = replace(short, optimizer=replace(short.optimizer, lr=rate))
            try:
                run = train(once, runs=folder, splits=data, indices=indices, **running)
                loss = float(run.summary()["train.loss"])
                trials.append(Trial(rate, loss if math.isfinite(loss) else None, run.id))
            except Diverged:
                trials.append(Trial(rate, None, None))
    rate = choose(trials)
    path = folder / f"{'-'.join(trial.run[:4] for trial in trials if trial.run)}.json"
    tried = [{"lr": trial.lr, "loss": trial.loss, "run": trial.run} for trial in trials]
    write_text(path, json_text.text({"chosen": rate, "trials": tried, "model": recipe.model.name}, path=str(path)))
    return RangeTest(tuple(trials), rate, path)


def choose(trials: list[Trial]) -> float:
    """The largest rate whose loss is within a twentieth of the lowest.

    >>> choose([Trial(1.0, None, None), Trial(0.3, 2.3, "a"), Trial(0.1, 0.51, "b"), Trial(0.03, 0.5, "c")])
    0.1
    """
    losses = {trial.lr: trial.loss for trial in trials if trial.loss is not None}
    if not losses:
        raise UsageError(
            "--lr auto: training diverged at every learning rate from "
            f"{min(trial.lr for trial in trials):g} to {max(trial.lr for trial in trials):g}. Look at the data "
            "(`evenly data verify`), or give a smaller --lr."
        )
    lowest = min(losses.values())
    return max(rate for rate, loss in losses.items() if loss <= WITHIN * lowest)


@contextlib.contextmanager
def _without_remarks() -> Iterator[None]:
    """A rate that is too small learns nothing in a short run: that is what is tested, not news."""
    logger = logging.getLogger("evenly.training.train")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
