"""Defaults that depend on the model and the device: a suitable learning rate, and fast settings on a GPU.

They become part of the recipe before the run gets its ID: a recipe always states what was computed, and the same
settings give the same ID on every machine.
"""

from collections.abc import Collection
from dataclasses import replace

import torch

from evenly import device as devices
from evenly.recipe import Recipe, Schedule
from evenly.training.build_optimizer import default_lr


def with_gpu_defaults(recipe: Recipe, device: torch.device, *, given: Collection[str] = ()) -> Recipe:
    """The recipe with half precision and channels last on CUDA; settings in `given` are not changed.

    >>> with_gpu_defaults(Recipe(), torch.device("cpu")) == Recipe()
    True
    """
    if device.type != "cuda":
        return recipe
    if "precision" not in given:
        recipe = replace(recipe, precision="bf16" if devices.has_bfloat16(device) else "fp16")
    return recipe if "channels_last" in given else replace(recipe, channels_last=True)


#: SGD's learning rate by model, where 0.1 is too high. Three convolutions without normalisation sometimes collapse
#: there: four classes, 1,600 images of CIFAR-10, 8 epochs, six seeds, mean and worst test error 47.8 % and
#: 49.5 % at 0.03 with a cosine after an epoch of warm-up, 55.9 % and 72.4 % at 0.1 with steps. The transformer's is
#: that of Nguyen et al. (2024).
RATES = {"convnet": 0.03, "vit-s": 0.01}
#: Networks without normalisation layers, whose first steps should be small.
SMALL = frozenset({"mlp", "convnet", "vit-s"})


def with_model_defaults(recipe: Recipe, *, given: Collection[str] = ()) -> Recipe:
    """The recipe with the learning rate and schedule that suit its model; settings in `given` are not changed.

    Small networks warm up for an epoch and follow a cosine; residual networks keep the recipe's own defaults, which are
    those of Nguyen et al. (2024) for them. An optimizer other than SGD begins with its usual rate.

    >>> from evenly.recipe import Model
    >>> recipe = with_model_defaults(Recipe(model=Model("convnet"), epochs=8))
    >>> recipe.optimizer.lr, recipe.schedule.kind, recipe.schedule.warmup_epochs
    (0.03, 'cosine', 1.0)
    >>> with_model_defaults(Recipe(model=Model("resnet18"))) == Recipe(model=Model("resnet18"))
    True
    """
    name, optimizer = recipe.model.name, recipe.optimizer
    if not {"optimizer", "optimizer.lr"} & set(given):
        rate = RATES.get(name, optimizer.lr) if optimizer.name.lower() == "sgd" else default_lr(optimizer.name)
        recipe = replace(recipe, optimizer=replace(optimizer, lr=rate))
    # If the user sets any part of the schedule, all of it is the user's: half a default would suit no model.
    if name in SMALL and recipe.epochs > 2 and not any(path.partition(".")[0] == "schedule" for path in given):
        recipe = replace(recipe, schedule=Schedule("cosine", warmup_epochs=1.0))
    return recipe
