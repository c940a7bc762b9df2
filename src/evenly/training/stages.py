"""USEFUL in two stages: train early, separate, train again from scratch on what the separation says.

Each stage is a run of its own, named by its recipe, and the second recipe names the first: whatever stops the
method, the same call finds what is done and goes on with the rest (Nguyen et al., 2024).
"""

import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from evenly import rng
from evenly.data import Labelled
from evenly.errors import DataError, UsageError
from evenly.recipe import Ascent, Model, Optimizer, Recipe, Resampling, Until, recorded
from evenly.records import Run
from evenly.resampling import Separation, matching, separate
from evenly.resampling.balance import balance_factors
from evenly.resampling.baselines import random_like, reweight, upweight
from evenly.resampling.moment import MAX_ACCURACY, AtEpoch, GainShrinks, SeparationRule, at_fraction
from evenly.resampling.remarks import Fitted
from evenly.resampling.separation import SeparationWarning
from evenly.resampling.suspects import suspects
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
    """The first stage of `recipe`: the same training, ended early.

    Its epochs are those that plain training by the recipe begins with, to the last bit. A smaller `model` may stand in
    as a proxy, or another optimizer. `keep_epochs` are this stage's own, to compare the separations of several epochs.

    >>> first = early_recipe(Recipe(seed=1), Until("fraction", 0.1))
    >>> first.seed, first.until.rule, first.epochs
    (1, 'fraction', 200)
    """
    if until.rule == "end":
        raise UsageError("until.rule=end: the first stage ends early. Give gain, epoch or fraction.")
    if recipe.epochs < 2:
        raise UsageError(f"epochs={recipe.epochs}: USEFUL separates early in training and is not for a single epoch.")
    moment(until, epochs=recipe.epochs)  # what cannot be meant is said before anything is trained
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
    """The rule by which training ends early; None for training to the end.

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


def errors_so_far(history: Sequence[dict[str, Any]], *, num_classes: int) -> list[float]:
    """Chance, then the training error after every epoch: what a moment is decided by.

    >>> errors_so_far([{"train.error": 0.5}], num_classes=10)
    [0.9, 0.5]
    """
    return [1 - 1 / num_classes, *(row["train.error"] for row in history)]


def keep_outputs(run: Run, outputs_NC: Tensor, data: Labelled, *, epoch: int) -> None:
    """Leave the outputs on the training set after `epoch` in the run's folder: what a separation is made from."""
    kept = {"logits": outputs_NC, "labels": data.labels.cpu(), "index": data.index.cpu()}
    checkpoint.save_weights(run, OUTPUTS, kept | {"epoch": torch.tensor(epoch)})


def kept_epoch(run: Run) -> int:
    """The epoch whose outputs a run has kept."""
    return int(kept_outputs(run)["epoch"])


def fitted(error: float) -> bool:
    """Whether a network with this training error fits so much that a separation would be noise.

    >>> fitted(0.005), fitted(0.02)
    (True, False)
    """
    return error < 1 - MAX_ACCURACY


def kept_outputs(early: Run) -> dict[str, Tensor]:
    """What `keep_outputs` left: logits, labels, index and epoch."""
    path = early.path / OUTPUTS
    if not path.is_file():
        raise UsageError(f"run {early.id} has left no outputs: it is {early.state}. `evenly useful` makes such runs.")
    kept = checkpoint.load_weights(early, OUTPUTS)
    if missing := {"logits", "labels", "index", "epoch"} - kept.keys():
        raise DataError(f"{path} lacks {', '.join(sorted(missing))}. Remove {early.path} and train the run again.")
    return kept


def separation_of(early: Run, data: Labelled, *, method: str = "k-means", among: str = "all") -> Separation:
    """The separation that the outputs of an early run give, for the data they were taken on."""
    kept = kept_outputs(early)
    try:
        with warnings.catch_warnings():
            # The remarks stand in the separation: whoever shows it to a person shows them.
            warnings.simplefilter("ignore", SeparationWarning)
            return separate(
                kept["logits"],
                kept["labels"],
                index=kept["index"],
                classes=data.classes,
                method=method,  # type: ignore[arg-type]  # separate refuses what it does not know
                among=among,  # type: ignore[arg-type]  # likewise
                rng=rng.generator(0, "separate", early.id),
                max_accuracy=MAX_ACCURACY,
            )
    except Fitted as error:
        raise _too_late(early, int(kept["epoch"])) from error


def _too_late(early: Run, epoch: int) -> DataError:
    """What to do where the outputs after `epoch` fit everything and fall into no clusters."""
    before = [row for row in early.metrics() if not fitted(row["train.error"]) and row["epoch"] < epoch]
    remedy = (
        f"separate after epoch {before[-1]['epoch']} ({1 - before[-1]['train.error']:.1%}): "
        f"--at-epoch {before[-1]['epoch']}"
        if before
        else "learn more slowly at first (--lr, --early-model), or accept that nothing here is hard"
    )
    return DataError(
        f"after epoch {epoch} the network of run {early.id} fits nearly all of the training set, and its outputs do "
        f"not fall into clusters: the split would be noise. Instead, {remedy}."
    )


class Chosen(NamedTuple):
    """What a resampling means for the training set: indices to train on, or weights of losses; which are hard."""

    early: Run
    separation: Separation
    indices: Tensor | None
    weights: Tensor | None
    hard_N: Tensor


def chosen(recipe: Recipe, *, runs: str | os.PathLike[str], data: Labelled) -> Chosen:
    """What the recipe's resampling means for `data`, by the outputs that its early run has left."""
    wanted = recipe.resampling
    early = Run.open(str(wanted.early), runs)
    _refuse_other_data(early, data)
    rules = {"quantile": "quantile", "misclassified": "misclassified"}
    separation = separation_of(early, data, method=rules.get(wanted.method, "k-means"), among=wanted.among)
    if wanted.method == "random":
        separation = random_like(separation, rng=rng.generator(recipe.seed, "random upsampling"))
    hard_N = torch.zeros(len(data), dtype=torch.bool)
    hard_N[matching.positions(data, separation.index, separation.labels)] = separation.hard
    if wanted.method == "upweight":
        return Chosen(early, separation, None, upweight(separation, factor=wanted.factor, dataset=data), hard_N)
    if wanted.method == "reweight":
        return Chosen(early, separation, None, reweight(separation, factor=wanted.factor, dataset=data), hard_N)
    factor = balance_factors(separation, most=wanted.factor) if wanted.method == "balance" else wanted.factor
    once = None if wanted.keep_suspects else suspected(early, separation)
    return Chosen(early, separation, separation.positions(data, factor, once=once), None, hard_N)


def _refuse_other_data(early: Run, data: Labelled) -> None:
    kept = early.identity
    if kept is not None and kept["data"].get("splits", {}).get("train") != {"examples": len(data), **data.digests}:
        raise DataError(
            f"the early run {early.id} was trained on other data than {data.name} is now: its outputs say nothing of "
            "them. `evenly useful` trains an early run on these."
        )


def suspected(early: Run, separation: Separation) -> Tensor:
    """The rows of a separation that look mislabelled."""
    return suspects(kept_outputs(early)["logits"], separation.labels).rows


def second_recipe(recipe: Recipe, early: str, method: str, *, factor: int = 2, keep_suspects: bool = True) -> Recipe:
    """The second stage: `recipe` from scratch, on the examples that `method` chooses by the outputs of run `early`."""
    wanted = replace(
        recipe.resampling,
        method=method,  # type: ignore[arg-type]  # checked there
        factor=factor,
        early=early,
        keep_suspects=keep_suspects,
        # What a rule without clusters cannot take is no part of its run.
        among="all" if method in ("quantile", "misclassified") else recipe.resampling.among,
    )
    return replace(recipe, resampling=wanted)


def remaining(recipe: Recipe, early: Run) -> Recipe:
    """The second stage as long as what the early run leaves of the recipe's epochs, if it goes on where that ended.

    Weights are those of the early run; momentum, schedule and order begin anew.
    """
    if recipe.resampling.start == "scratch":
        return recipe
    taken = int(early.summary()["epoch"])
    if taken >= recipe.epochs:
        raise UsageError(
            f"resampling.start=early: the early run took all {recipe.epochs} epochs, and none is left to go on with. "
            "Separate earlier (--at-epoch), or use resampling.start=scratch."
        )
    return replace(recipe, epochs=recipe.epochs - taken)


def go_on_from(early: Run, recipe: Recipe, model: nn.Module) -> None:
    """Fill `model` with the weights that the early run ended with, if the recipe says so."""
    if recipe.resampling.start == "scratch":
        return
    first = recorded(early.recipe)
    if first.model != recipe.model:
        raise UsageError(
            f"resampling.start=early goes on with the weights of run {early.id}, which has another model "
            f"({first.model.name}) than this one ({recipe.model.name}). Use resampling.start=scratch."
        )
    if recipe.sharded:
        raise UsageError("resampling.start=early is not possible with sharded=true: use resampling.start=scratch.")
    model.load_state_dict(checkpoint.load_weights(early, "weights.safetensors"))
