"""`--lr auto`: a learning rate chosen by trying several for a short while before the actual training.

Each rate is tried by a run of its own, some forty steps on at most 5,000 training examples (or one batch, if that is
more) from the same first weights, under `RUNS/lr-tests`. Interrupted trials resume with the next command, and all
trials can be inspected (`evenly runs --runs RUNS/lr-tests`). If no rate has learned anything by then, all are tried for
twice as long.
"""

import contextlib
import logging
import math
import os
from collections.abc import Iterator, Sequence
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
from evenly.training.build import load_data
from evenly.training.build_optimizer import default_lr
from evenly.training.collapse import NEAR_CHANCE
from evenly.training.divergence import Diverged, on_unscaled
from evenly.training.train import train

FOLDER = "lr-tests"
LOOK = "Look at the data (`evenly data verify`)."
MOST_EXAMPLES = 5_000
STEPS = (10.0, 3.0, 1.0, 0.3, 0.1, 0.03)  # multiples of the optimizer's default rate, in falling order
FEWEST_STEPS = 40  # of a trial; after fewer, networks without normalisation have hardly begun to learn
WITHIN = 1.05  # a larger rate is as good if its loss is within this of the lowest


@dataclass(frozen=True)
class Trial:
    """A learning rate that was tried: its final training loss (None if not finite), and its run.

    `learned` says whether its training error fell below that of guessing.
    """

    lr: float
    loss: float | None
    run: str | None
    learned: bool = True


@dataclass(frozen=True)
class RangeTest:
    """The rates tried, for how many epochs, the rate chosen, and the file that records it.

    If no rate learned anything, the recipe's own is kept and `any_learned` is false.
    """

    trials: tuple[Trial, ...]
    epochs: int
    lr: float
    path: Path
    #: What the data show, if no rate learned anything.
    hint: str | None = None

    @property
    def any_learned(self) -> bool:
        """Whether any rate learned something."""
        return any(trial.learned for trial in self.trials)

    def sentence(self) -> str:
        """The result in a sentence."""
        length = "1 epoch" if self.epochs == 1 else f"{self.epochs} epochs"
        tried = ", ".join(f"{trial.lr:g}: {_outcome(trial)}" for trial in self.trials)
        if not self.any_learned:
            return (
                f"--lr auto: no learning rate from {self.trials[-1].lr:g} to {self.trials[0].lr:g} learned anything in "
                f"{length}; {self.lr:g} is kept, which fits the model. "
                f"{self.hint or LOOK} Or train for longer (--epochs). Training losses by learning rate: {tried}; "
                f"{self.path}."
            )
        return f"--lr auto chose {self.lr:g} (training loss after {length}, by learning rate: {tried}; {self.path})."


def range_test(
    recipe: Recipe, *, runs: str | os.PathLike[str] = "runs", splits: Splits | None = None, **running: Any
) -> RangeTest:
    """Try learning rates around the optimizer's default and choose one; `running` are further arguments of `train`.

    The choice is the largest rate whose training loss is within a twentieth of the lowest: rates that are too small
    look good in a short test and are slow in a long run. Rates that learn nothing are never chosen: those whose error
    stays at chance, and those with a higher loss than one of these. Remarks on the data are left to the training that
    follows.
    """
    data = splits if splits is not None else load_data(recipe, data_root=running.get("data_root"), remark=False)
    folder = Path(runs) / FOLDER
    order = torch.randperm(len(data.train), generator=rng.generator(0, "learning rate test"))
    most = max(MOST_EXAMPLES, recipe.batch_size)
    indices = order[:most].sort().values if len(order) > most else None
    short = replace(
        recipe,
        schedule=Schedule("constant"),
        resampling=Resampling(),
        last_layer=None,
        until=Until(),
        keep_epochs=(),
        record_examples=False,
        seed=0,
        data=replace(recipe.data, seed=recipe.seed if recipe.data.seed is None else recipe.data.seed),
    )
    steps = -(-min(len(order), most) // recipe.batch_size)
    epochs = min(-(-FEWEST_STEPS // steps), recipe.epochs)
    trials = _try_rates(replace(short, epochs=epochs), data, folder, indices=indices, **running)
    while not any(trial.learned for trial in trials) and epochs < recipe.epochs:
        epochs = min(2 * epochs, recipe.epochs)
        trials = _try_rates(replace(short, epochs=epochs), data, folder, indices=indices, **running)
    hint = on_unscaled(recipe, data.train) if not any(trial.learned for trial in trials) else None
    rate = choose(trials, hint=hint) or recipe.optimizer.lr
    path = folder / f"{'-'.join(trial.run[:4] for trial in trials if trial.run)}.json"
    tried = [{"lr": trial.lr, "loss": trial.loss, "learned": trial.learned, "run": trial.run} for trial in trials]
    record = {"chosen": rate, "epochs": epochs, "trials": tried, "model": recipe.model.name}
    write_text(path, json_text.text(record, path=str(path)))
    return RangeTest(tuple(trials), epochs, rate, path, hint)


def _try_rates(short: Recipe, data: Splits, folder: Path, **running: Any) -> list[Trial]:
    """Try every rate in its own run."""
    labels = data.train.labels if running["indices"] is None else data.train.labels[running["indices"]]
    guessing = 1 - float(labels.bincount().max()) / len(labels)
    trials = []
    with _without_remarks():
        for step in STEPS:
            rate = float(f"{default_lr(short.optimizer.name) * step:.3g}")
            try:
                run = train(
                    replace(short, optimizer=replace(short.optimizer, lr=rate)), runs=folder, splits=data, **running
                )
            except Diverged:
                trials.append(Trial(rate, None, None, learned=False))
                continue
            loss, error = float(run.summary()["train.loss"]), float(run.summary()["train.error"])
            learned = math.isfinite(loss) and error < NEAR_CHANCE * guessing
            trials.append(Trial(rate, loss if math.isfinite(loss) else None, run.id, learned))
    return discard_lucky_trials(trials)


def discard_lucky_trials(trials: Sequence[Trial]) -> list[Trial]:
    """The trials; those with a higher loss than one that learned nothing have learned nothing either.

    Near chance some errors fall below that of guessing by luck; the losses do not.

    >>> trials = [Trial(0.3, 1.41, "a"), Trial(0.1, 1.2, "b"), Trial(0.03, 1.36, "c", learned=False)]
    >>> [trial.learned for trial in discard_lucky_trials(trials)]
    [False, True, False]
    """
    nothing = min((trial.loss for trial in trials if not trial.learned and trial.loss is not None), default=math.inf)
    return [replace(trial, learned=trial.learned and (trial.loss or 0.0) < nothing) for trial in trials]


def choose(trials: list[Trial], *, hint: str | None = None) -> float | None:
    """The largest rate whose loss is within a twentieth of the lowest, of those that learned; None if none did.

    If all diverged, that is an error, with what the data show (`hint`).

    >>> choose([Trial(1.0, None, None, False), Trial(0.3, 2.3, "a"), Trial(0.1, 0.51, "b"), Trial(0.03, 0.5, "c")])
    0.1
    """
    if all(trial.loss is None for trial in trials):
        raise UsageError(
            "--lr auto: training diverged at every learning rate from "
            f"{min(trial.lr for trial in trials):g} to {max(trial.lr for trial in trials):g}. "
            f"{hint or LOOK} Or give a smaller --lr."
        )
    # Networks that have learned nothing have similar losses at any rate, even one that never learns.
    losses = {trial.lr: trial.loss for trial in trials if trial.learned and trial.loss is not None}
    lowest = min(losses.values(), default=0.0)
    return max((rate for rate, loss in losses.items() if loss <= WITHIN * lowest), default=None)


def _outcome(trial: Trial) -> str:
    if trial.loss is None:
        return "diverged"
    return f"{trial.loss:.3f}" + ("" if trial.learned else " (nothing learned)")


@contextlib.contextmanager
def _without_remarks() -> Iterator[None]:
    """Silence the warning that a run learned nothing: too small a rate is expected to."""
    logger = logging.getLogger("evenly.training.train")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
