"""Targeted augmentation: which training examples get extra augmentation.

Shapes: N examples.
"""

import torch
from torch import Tensor

from evenly.data import Labelled
from evenly.data.augment import Augmentation
from evenly.data.targeted import Targeted
from evenly.errors import UsageError
from evenly.recipe import Recipe
from evenly.resampling.baselines import random_subset
from evenly.rng import generator


def targeted_augmentation(recipe: Recipe, hard_N: Tensor | None, data: Labelled) -> Targeted | None:
    """The recipe's augmentation for some examples of `data` only, and for which; None if it has none.

    It applies to the examples that the resampling selected, to all, or to as many random ones: the last two are
    controls that tell whether it matters which examples are augmented.

    >>> from evenly.data import load
    >>> targeted_augmentation(Recipe(), None, load("parity").train) is None
    True
    """
    wanted = recipe.resampling
    if not wanted.augment:
        return None
    if hard_N is None:
        raise UsageError(
            f"resampling.augment={list(wanted.augment)} is for the examples that resampling.method chooses, and that "
            "is none. Train with `evenly useful`, or use `augment` for all examples."
        )
    target_N = hard_N
    if wanted.augment_target == "all":
        target_N = torch.ones_like(hard_N)
    elif wanted.augment_target == "random":
        target_N = random_subset(len(hard_N), int(hard_N.sum()), rng=generator(recipe.seed, "random augmentation"))
    return Targeted(Augmentation.parse(wanted.augment, data=data), target_N)
