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
from evenly.recipe import Recipe
from evenly.records import Run
from evenly.resampling import Separation, matching
from evenly.resampling.balance import balance_factors
from evenly.resampling.baselines import random_like, reweight, upweight
from evenly.training import checkpoint
from evenly.training.recorded_recipe import recorded_recipe
from evenly.training.separations import rule_of, separation_of, suspect_rows


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
    separation = separation_of(early, data, method=rule_of(wanted.method), among=wanted.among)
    if wanted.method == "random":
        separation = random_like(separation, rng=rng.generator(recipe.seed, "random upsampling"))
    hard_N = torch.zeros(len(data), dtype=torch.bool)
    hard_N[matching.positions(data, separation.index, separation.labels)] = separation.hard
    if wanted.method in ("upweight", "reweight"):
        weigh = upweight if wanted.method == "upweight" else reweight
        return Selection(early, separation, None, weigh(separation, factor=wanted.factor, dataset=data), hard_N)
    factor = balance_factors(separation, most=wanted.factor) if wanted.method == "balance" else wanted.factor
    once = None if wanted.keep_suspects else suspect_rows(early, separation)
    return Selection(early, separation, separation.positions(data, factor, once=once), None, hard_N)


def _refuse_other_data(early: Run, data: Labelled) -> None:
    kept = early.identity
    if kept is not None and kept["data"].get("splits", {}).get("train") != {"examples": len(data), **data.digests}:
        raise DataError(
            f"the early run {early.id} was trained on other data than {data.name} is now: its outputs say nothing of "
            "them. `evenly useful` trains an early run on these."
        )


def second_recipe(recipe: Recipe, early: str, method: str, *, factor: int = 2, keep_suspects: bool = True) -> Recipe:
    """The recipe of the second stage: training on the examples that `method` selects by the outputs of run `early`."""
    wanted = replace(
        recipe.resampling,
        method=method,  # type: ignore[arg-type]  # checked there
        factor=factor,
        early=early,
        keep_suspects=keep_suspects,
        # A method without clusters does not have this setting.
        among="all" if method in ("quantile", "misclassified") else recipe.resampling.among,
    )
    return replace(recipe, resampling=wanted)


def shorten(recipe: Recipe, early: Run) -> Recipe:
    """The recipe for the remaining epochs, if the second stage starts from the early run's weights.

    Only the weights come from the early run; momentum, schedule and order start afresh.
    """
    if recipe.resampling.start == "scratch":
        return recipe
    taken = int(early.summary()["epoch"])
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
