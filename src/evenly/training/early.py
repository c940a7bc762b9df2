"""The early run of USEFUL: its recipe, when it ends, and the outputs it leaves.

An early run is the beginning of plain training, bit for bit: the same seed, order and schedule. It saves the outputs on
the training set, from which a separation is made (Nguyen et al., 2024).
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from evenly.data import Labelled
from evenly.errors import DataError, UsageError
from evenly.recipe import Ascent, Model, Optimizer, Recipe, Resampling, Until
from evenly.records import Run
from evenly.resampling.moment import MAX_ACCURACY, AtEpoch, GainShrinks, SeparationRule, at_fraction
from evenly.training import checkpoint

OUTPUTS = "outputs.safetensors"


def early_recipe(
    recipe: Recipe,
    until: Until,
    *,
    model: Model | None = None,
    optimizer: Optimizer | None = None,
    ascent: Ascent | None = None,
    keep_epochs: Sequence[int] = (),
) -> Recipe:
    """The recipe of the early run: the same training, ended early.

    Its epochs are the first epochs of plain training by the recipe, bit for bit. A smaller `model` or another optimizer
    may be used as a proxy. `keep_epochs` applies to the early run, to compare the separations of several epochs.

    >>> first = early_recipe(Recipe(seed=1), Until("fraction", 0.1))
    >>> first.seed, first.until.rule, first.epochs
    (1, 'fraction', 200)
    """
    if until.rule == "end":
        raise UsageError("until.rule=end: the early run ends early. Give gain, epoch or fraction.")
    if recipe.epochs < 2:
        raise UsageError(f"epochs={recipe.epochs}: USEFUL separates early in training. Train for 2 epochs or more.")
    moment(until, epochs=recipe.epochs)  # refuse an epoch that does not exist before anything is trained
    return replace(
        recipe,
        model=model or recipe.model,
        optimizer=optimizer or recipe.optimizer,
        ascent=ascent or recipe.ascent,
        until=until,
        resampling=Resampling(),
        keep_epochs=tuple(keep_epochs),
    )


def moment(until: Until, *, epochs: int) -> SeparationRule | None:
    """The rule that ends training early; None for training to the end.

    >>> moment(Until("fraction", 0.05), epochs=200)
    AtEpoch(epoch=10)
    """
    if until.rule == "end":
        return None
    if until.rule == "gain":
        return GainShrinks()
    if until.rule == "fraction":
        return at_fraction(until.value, epochs=epochs)
    if until.value != int(until.value) or until.value > epochs:
        raise UsageError(f"cannot separate after epoch {until.value:g}: give a whole epoch from 1 to {epochs}.")
    return AtEpoch(int(until.value))


def stopping_rule(recipe: Recipe, *, num_classes: int) -> Callable[[Sequence[dict[str, Any]]], bool] | None:
    """Whether training is over, given the metrics so far; None for a recipe that trains to its last epoch.

    With the rule `gain`, training also ends once the network fits nearly everything: later it could not be separated.
    """
    rule = moment(recipe.until, epochs=recipe.epochs)
    if rule is None:
        return None

    def is_over(history: Sequence[dict[str, Any]]) -> bool:
        errors = errors_from_chance(history, num_classes=num_classes)
        return rule(errors) or (recipe.until.rule == "gain" and fits_nearly_all(history[-1]["train.error"]))

    return is_over


def errors_from_chance(history: Sequence[dict[str, Any]], *, num_classes: int) -> list[float]:
    """The error of guessing, then the training error after every epoch: the curve that decides the moment.

    >>> errors_from_chance([{"train.error": 0.5}], num_classes=10)
    [0.9, 0.5]
    """
    return [1 - 1 / num_classes, *(row["train.error"] for row in history)]


def rule_fired(recipe: Recipe, history: Sequence[dict[str, Any]], *, num_classes: int) -> bool:
    """Whether an early run ended by its rule or because it fitted everything, rather than by reaching its last epoch.

    >>> rows = [{"train.error": error} for error in (0.6, 0.5, 0.4)]
    >>> rule_fired(Recipe(epochs=3, until=Until("gain")), rows, num_classes=10)
    False
    """
    rule = moment(recipe.until, epochs=recipe.epochs)
    if rule is None or not history:
        return False
    return rule(errors_from_chance(history, num_classes=num_classes)) or fits_nearly_all(history[-1]["train.error"])


def fits_nearly_all(error: float) -> bool:
    """Whether a network with this training error fits so much that a separation would be noise.

    >>> fits_nearly_all(0.005), fits_nearly_all(0.02)
    (True, False)
    """
    return error < 1 - MAX_ACCURACY


def save_outputs(run: Run, outputs_NC: Tensor, data: Labelled, *, epoch: int) -> None:
    """Save the outputs on the training set after `epoch` in the run's folder."""
    kept = {"logits": outputs_NC, "labels": data.labels.cpu(), "index": data.index.cpu()}
    checkpoint.save_weights(run, OUTPUTS, kept | {"epoch": torch.tensor(epoch)})


def load_outputs(early: Run) -> dict[str, Tensor]:
    """Read what `save_outputs` wrote: logits, labels, index and epoch."""
    path = early.path / OUTPUTS
    if not path.is_file():
        raise UsageError(f"run {early.id} has left no outputs: it is {early.state}. `evenly useful` makes such runs.")
    kept = checkpoint.load_weights(early, OUTPUTS)
    if missing := {"logits", "labels", "index", "epoch"} - kept.keys():
        raise DataError(f"{path} lacks {', '.join(sorted(missing))}. Remove {early.path} and train the run again.")
    return kept


def outputs_epoch(run: Run) -> int:
    """The epoch whose outputs a run has kept."""
    return int(load_outputs(run)["epoch"])
