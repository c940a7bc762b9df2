"""What a run is given where nobody said otherwise: on a GPU, the settings that make it fast.

They become part of the recipe before the run is named: a recipe always says what was computed, and the same settings
have the same name on every machine.
"""

from collections.abc import Collection
from dataclasses import replace

import torch

from evenly import device as devices
from evenly.recipe import Recipe


def with_gpu_defaults(recipe: Recipe, device: torch.device, *, given: Collection[str] = ()) -> Recipe:
    """The recipe with half precision and channels last on CUDA; settings that are `given` stay as they are.

    >>> with_gpu_defaults(Recipe(), torch.device("cpu")) == Recipe()
    True
    """
    if device.type != "cuda":
        return recipe
    if "precision" not in given:
        recipe = replace(recipe, precision="bf16" if devices.has_bfloat16(device) else "fp16")
    return recipe if "channels_last" in given else replace(recipe, channels_last=True)
