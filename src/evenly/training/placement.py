"""What fits into the memory of a device: a data set, or a batch only in parts."""

import logging

import torch
from torch import Tensor

from evenly import memory
from evenly.data import Labelled
from evenly.errors import UsageError
from evenly.recipe import Recipe
from evenly.training.distributed import World

_log = logging.getLogger(__name__)


def place(data: Labelled, device: torch.device) -> Labelled:
    """The data on the device if they take no more than half of what may be planned for there; else where they are."""
    if device.type == "cpu" or not isinstance(data.inputs, Tensor):
        return data
    if data.inputs.nbytes <= memory.budget(device) // 2:
        return data.to(device)
    size = data.inputs.nbytes / 1e9
    _log.info("%s: %.2g GB of examples stay on the host and go to %s batch by batch.", data.name, size, device)
    return data


def check_accumulation(recipe: Recipe, world: World) -> None:
    """Refuse batches in parts where they cannot be taken so, before anything is trained.

    >>> check_accumulation(Recipe(accumulate=4), World())
    >>> check_accumulation(Recipe(accumulate=4), World(size=2))
    Traceback (most recent call last):
    evenly.errors.UsageError: accumulate=4: 2 processes take each batch in parts already. Set accumulate=1, or start ...
    """
    if recipe.accumulate == 1:
        return
    if world.size > 1:
        raise UsageError(
            f"accumulate={recipe.accumulate}: {world.size} processes take each batch in parts already. Set "
            "accumulate=1, or start more processes."
        )
    if recipe.ascent.rule == "lsam":
        raise UsageError(
            f"accumulate={recipe.accumulate}: LSAM keeps the features of the whole batch. Use ascent.rule=sam, or a "
            "smaller batch_size."
        )
    if recipe.accumulate > recipe.batch_size:
        raise UsageError(f"accumulate={recipe.accumulate}: a batch of {recipe.batch_size} has no more parts than that.")
