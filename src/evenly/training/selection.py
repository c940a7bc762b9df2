"""The training examples that a resampling selects, and the recipe of the run that trains on them.

The second stage of USEFUL, and each of its controls, is a separate run whose recipe names the early run. If anything
stops the method, the same call finds the finished runs and continues with the rest.
"""

import os
from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor, nn

from evenly import rng
from evenly.data import Labelled
from evenly.errors import DataError, UsageError
from evenly.recipe import Recipe, Resampling
from evenly.records import Run
from evenly.resampling import Separation, matching
from evenly.resampling.balance import balance_factors
from evenly.resampling.baselines import in_places, random_places, reweight, upweight
from evenly.training import checkpoint
from evenly.training.recorded_recipe import recorded_recipe
from evenly.training.separations import rule_of, separation_of, suspect_rows

WEIGHING = ("upweight", "reweight")  # methods that multiply losses instead of showing examples more often


class Selection(NamedTuple):
    """Indices to train on, or weights of losses, and which examples are hard, from the separation of an early run."""

    early: Run
    separation: Separation
    indices: Tensor | None
    weights: Tensor | None
    hard_N: Tensor


def select(recipe: Recipe, *, runs: str | os.PathLike[str], data: Labelled) -> Selection:
    """The selection that the recipe's resampling makes from `data`, by the outputs of its early run."""
    wanted = recipe.resampling
    early = Run.open(str(wanted.early), runs)
    _refuse_other_data(early, data)
    separation, repeat_N = copies_of(wanted, early, data)
    if wanted.method == "random":
        draw = rng.generator(recipe.seed, "random upsampling")
        suspects = None if wanted.keep_suspects else suspect_rows(early, separation)  # which are not repeated either
        place_N = random_places(separation.hard, rng=draw, staying=suspects)
        separation, repeat_N = in_places(separation, place_N), repeat_N[place_N]
    hard_N = torch.zeros(len(data), dtype=torch.bool)
    hard_N[matching.positions(data, separation.index, separation.labels)] = separation.hard
    if wanted.method in WEIGHING:
        weigh = upweight if wanted.method == "upweight" else reweight
        heavier = replace(separation, hard=repeat_N > 1)
        return Selection(early, separation, None, weigh(heavier, factor=wanted.factor, dataset=data), hard_N)
    return Selection(early, separation, separation.positions(data, repeat_N), None, hard_N)


def copies_of(wanted: Resampling, early: Run, data: Labelled) -> tuple[Separation, Tensor]:
    """The separation of an early run by which a resampling chooses, and how often each row is shown, or counts.

    For a random choice they are those of the method that it controls: it draws other rows, and as many.
    """
    separation = separation_of(early, data, method=rule_of(wanted.copies), among=wanted.among)
    factor = balance_factors(separation, most=wanted.factor) if wanted.copies == "balance" else wanted.factor
    once = None if wanted.keep_suspects else suspect_rows(early, separation)
    return separation, separation.repeats(factor, once=once)


def _refuse_other_data(early: Run, data: Labelled) -> None:
    kept = early.identity
    if kept is not None and kept["data"].get("splits", {}).get("train") != {"examples": len(data), **data.digests}:
        raise DataError(
            f"the early run {early.id} was trained on other data than {data.name} is now: its outputs say nothing of "
            "them. `evenly useful` trains an early run on these."
        )


def second_recipe(
    recipe: Recipe,
    early: str,
    method: str,
    *,
    factor: int = 2,
    keep_suspects: bool = True,
    like: str | None = None,
) -> Recipe:
    """The recipe of the second stage: training on the examples that `method` selects by the outputs of run `early`.

    `like` is the method whose copies a random one makes, by default that of the recipe.
    """
    like = (like or recipe.resampling.like) if method == "random" else None
    wanted = replace(
        recipe.resampling,
        method=method,  # type: ignore[arg-type]  # checked there
        factor=factor,
        early=early,
        keep_suspects=keep_suspects,
        # A method without clusters does not have this setting.
        among="all" if {method, like} & {"quantile", "misclassified"} else recipe.resampling.among,
        like=like,  # type: ignore[arg-type]  # likewise
    )
    return replace(recipe, resampling=wanted)


def shorten(recipe: Recipe, *, taken: int) -> Recipe:
    """The recipe for the remaining epochs, if the second stage starts from the weights of an early run that took some.

    Only the weights come from the early run; momentum, schedule and order start afresh.
    """
    if recipe.resampling.start == "scratch":
        return recipe
    if taken >= recipe.epochs:
        raise UsageError(
            f"resampling.start=early: the early run took all {recipe.epochs} epochs, and none is left. "
            "Separate earlier (--at-epoch), or use resampling.start=scratch."
        )
    return replace(recipe, epochs=recipe.epochs - taken)


def load_early_weights(early: Run, recipe: Recipe, model: nn.Module) -> None:
    """Fill `model` with the early run's final weights, if the recipe says so."""
    if recipe.resampling.start == "scratch":
        return
    first = recorded_recipe(early)
    if first.model != recipe.model:
        raise UsageError(
            f"resampling.start=early continues from the weights of run {early.id}, which has another model "
            f"({first.model.name}) than this one ({recipe.model.name}). Use resampling.start=scratch."
        )
    if recipe.sharded:
        raise UsageError("resampling.start=early is not possible with sharded=true: use resampling.start=scratch.")
    model.load_state_dict(checkpoint.load_weights(early, "weights.safetensors"))
