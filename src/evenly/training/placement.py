"""Where data live: on the device if they fit, else on the host, decoded by worker processes if they are files."""

import logging
import multiprocessing
import os
import sys
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from evenly import memory
from evenly.data import Labelled
from evenly.errors import UsageError
from evenly.recipe import Recipe
from evenly.sweep.local import usable_cores
from evenly.training.distributed import World

_log = logging.getLogger(__name__)


def place(data: Labelled, device: torch.device) -> Labelled:
    """Move the data to the device if they take at most half of its memory budget; else leave them where they are."""
    if device.type == "cpu" or not isinstance(data.inputs, Tensor):
        return data
    if data.inputs.dtype == torch.float64:  # networks take float32, and some devices have nothing longer
        data = replace(data, inputs=data.inputs.float())
    assert isinstance(data.inputs, Tensor)
    if data.inputs.nbytes <= memory.budget(device) // 2:
        return data.to(device)
    size = data.inputs.nbytes / 1e9
    _log.info("%s: %.2g GB of examples stay on the host and go to %s batch by batch.", data.name, size, device)
    return data


MOST_WORKERS = 8  # more hardly ever help, since one process copies everything they decode


def default_workers(data: Labelled, device: torch.device) -> int:
    """Processes to decode the files of `data` while a GPU computes: the cores of this process but one, 8 at most.

    Zero for data in memory; zero where the CPU computes, which decodes as fast itself; and zero for scripts on macOS
    and Windows, where Python would run the script again in every new process (the command line is safe).

    >>> default_workers(Labelled(torch.zeros(1, 2), torch.zeros(1, dtype=torch.int64), ("a",)), torch.device("cuda"))
    0
    """
    if device.type == "cpu" or isinstance(data.inputs, Tensor) or not _may_start_processes():
        return 0
    if multiprocessing.parent_process() is not None:  # one of several jobs, with its share of threads
        cores = torch.get_num_threads()
    else:
        cores = usable_cores() // int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    return max(0, min(cores - 1, MOST_WORKERS))


def _may_start_processes() -> bool:
    if multiprocessing.get_start_method() == "fork":
        return True
    main = sys.modules["__main__"]
    module = getattr(main, "__spec__", None)
    name = module.name if module is not None else Path(getattr(main, "__file__", None) or "").stem
    return name.partition(".")[0] == "evenly"


def check_accumulation(recipe: Recipe, world: World) -> None:
    """Refuse, before training starts, batches in parts where that is impossible.

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
        raise UsageError(
            f"accumulate={recipe.accumulate}: a batch of {recipe.batch_size} has {recipe.batch_size} parts at most."
        )
