"""Trials of a model before the first step: its loss, its kind of number, and passes over a single example."""

import math

import torch
from torch import nn

from evenly.errors import UsageError
from evenly.models.observation import observing
from evenly.recipe import Recipe
from evenly.training.distributed import World
from evenly.training.evaluate import autocast
from evenly.training.objective import Objective


def check_loss(objective: Objective, model: nn.Module, shape: tuple[int, ...], recipe: Recipe, world: World) -> None:
    """Refuse a loss that does not fit the model's outputs, and weights that do not fit float32, before training."""
    other = {str(p.dtype) for p in model.parameters() if p.dtype != torch.float32}
    precision = recipe.precision if other else "fp32"
    with torch.no_grad(), observing(model, training=None), autocast(world.device, precision):
        model.eval()
        try:
            outputs = model(torch.zeros((1, *shape), device=world.device))
        except RuntimeError as error:
            if not other:
                raise
            raise UsageError(
                f"{recipe.model.name} has weights of {' and '.join(sorted(other))}, which do not take inputs of "
                "float32. Return model.float(); the setting `precision` is for half precision."
            ) from error
        objective(outputs.float(), torch.zeros(1, dtype=torch.int64, device=world.device))


def check_lone_examples(recipe: Recipe, model: nn.Module, shape: tuple[int, ...], *, num: int, world: World) -> None:
    """Refuse a recipe for `num` training examples if a pass has one example only and the model cannot take one.

    BatchNorm cannot, where an example is one value per channel.
    """
    cause = lone_example(recipe, num=num, world=world)
    if cause is None:
        return
    with torch.no_grad(), observing(model, training=None):
        model.train()
        try:
            model(torch.zeros((1, *shape), device=world.device))
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # the model may be the user's
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise UsageError(
                f"{recipe.model.name} cannot be trained on a single example ({reason}): {cause}"
            ) from error


def lone_example(recipe: Recipe, *, num: int, world: World) -> str | None:
    """Why some pass of training has one example only, and what to change; None if every pass has more.

    >>> from evenly.recipe import Ascent
    >>> lone_example(Recipe(batch_size=16), num=17, world=World())
    'the last batch of an epoch has 1 of 17. Set drop_last=true, or give another batch_size.'
    >>> lone_example(Recipe(batch_size=16, accumulate=16), num=32, world=World())
    'accumulate=16 takes 16 examples one by one. Give at most 8.'
    >>> lone_example(Recipe(batch_size=16, ascent=Ascent("sam", options={"fraction": 0.05})), num=32, world=World())
    'ascent.options.fraction=0.05 of 16 examples is one. Give more than 0.0625.'
    >>> lone_example(Recipe(batch_size=16), num=32, world=World())
    """
    size = recipe.batch_size
    short = 0 if recipe.drop_last else num % size
    batches = [
        (size, f"batch_size={size}{_processes(world)} is one. Give a larger batch_size."),
        (
            short,
            f"the last batch of an epoch has {short} of {num}{_processes(world)}. Set drop_last=true, or give another "
            "batch_size.",
        ),
    ]
    causes = (_cause(recipe, max(1, whole // world.size), text) for whole, text in batches if whole)
    return next((cause for cause in causes if cause is not None), None)


def _cause(recipe: Recipe, share: int, alone: str) -> str | None:
    """The same for a batch of which this process has a share."""
    if share == 1:
        return alone
    options = recipe.ascent.options if recipe.ascent.rule != "none" else {}
    m, fraction = options.get("m"), options.get("fraction", 1.0)
    # The rule itself refuses what is no number of examples and no part of them.
    group = min(m, share) if isinstance(m, int) and m > 0 else share
    fraction = fraction if isinstance(fraction, int | float) and 0 < fraction <= 1 else 1.0
    if group == 1:
        return "ascent.options.m=1 takes examples one by one. Give a larger m."
    first = math.ceil(fraction * group)
    if first == 1:
        return f"ascent.options.fraction={fraction:g} of {group} examples is one. Give more than {1 / group:g}."
    for size in (group, first):
        parts = min(recipe.accumulate, size)
        if size // parts == 1:
            return f"accumulate={recipe.accumulate} takes {size} examples one by one. Give at most {size // 2}."
    return None


def _processes(world: World) -> str:
    return "" if world.size == 1 else f", shared by {world.size} processes,"
