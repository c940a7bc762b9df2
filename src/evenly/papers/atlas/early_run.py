"""Early networks on the user's data, measured like those of the atlas."""

import os
from dataclasses import dataclass, replace
from typing import Any

from evenly.data import Splits
from evenly.errors import DataError, UsageError
from evenly.papers.atlas.early import LATEST, Early
from evenly.recipe import Recipe, Until
from evenly.records import Run
from evenly.training.early import early_recipe, load_outputs
from evenly.training.evaluate import outputs
from evenly.training.train import train
from evenly.training.trained_model import load_trained, weights_at

TWIN = 1000  # added to the seed
MOST = 15  # epochs, as for the atlas's own networks
FEWEST = 20  # with fewer examples in a class, its clusters say nothing
FEWEST_EPOCHS = 4  # in a shorter training, no network is early


@dataclass(frozen=True)
class Looks:
    """An early network and the features that advice is based on, and the runs of the network and of its twin."""

    features: dict[str, float]
    early: Early
    epochs: int
    run: Run
    twin: Run


def look(recipe: Recipe, data: Splits, *, runs: str | os.PathLike[str] = "runs", **running: Any) -> Looks:
    """Train a network for its first epochs, and another one on the same data until its gain shrinks.

    The first keeps its weights after every epoch, for half of all epochs and at most 15, to compute the outputs of
    each. `running` are further arguments of `evenly.training.train.train`.
    """
    refuse(recipe, data)
    epochs = min(MOST, max(2, round(LATEST * recipe.epochs)))
    first = early_recipe(recipe, Until("epoch", epochs), keep_epochs=range(1, epochs + 1))
    run = train(first, runs=runs, splits=data, **running)
    trained = load_trained(run, splits=data)
    outputs_TNC = []
    for epoch in range(1, epochs + 1):
        trained.model.load_state_dict(weights_at(run, epoch, last=epochs))
        outputs_TNC.append(outputs(trained.model, trained.splits.train))
    other = early_recipe(replace(recipe, seed=recipe.seed + TWIN), Until("gain"))
    twin = train(other, runs=runs, splits=data, **running)
    early = Early(data.train, outputs_TNC, seed=recipe.seed)
    beside = Early(data.train, [load_outputs(twin)["logits"]], seed=recipe.seed)
    return Looks(early.features(beside), early, epochs, run, twin)


def refuse(recipe: Recipe, data: Splits) -> None:
    """Raise, before anything is trained, if no cure of the atlas could be judged."""
    counts = data.train.labels.bincount(minlength=data.num_classes).tolist()
    small = [f"{name} ({count})" for name, count in zip(data.train.classes, counts, strict=True) if count < FEWEST]
    if len(small) == data.num_classes:
        raise DataError(
            f"every class of {data.name} has fewer than {FEWEST} training examples: {', '.join(small[:3])}. Clusters "
            "of so few say nothing: give more examples."
        )
    if recipe.epochs < FEWEST_EPOCHS:
        raise UsageError(
            f"epochs={recipe.epochs}: advice looks at an early network. Give --epochs {FEWEST_EPOCHS} or more."
        )
