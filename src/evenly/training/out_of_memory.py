"""Advice for training that runs out of memory: a smaller batch, or the same batch in parts."""

import contextlib
from collections.abc import Iterator

import torch

from evenly import memory
from evenly.recipe import Recipe


@contextlib.contextmanager
def explain_out_of_memory(recipe: Recipe, device: torch.device | str) -> Iterator[None]:
    """Within the context, running out of memory raises an error that suggests settings which need less.

    >>> with explain_out_of_memory(Recipe(batch_size=128), "cpu"):
    ...     raise torch.OutOfMemoryError("CUDA out of memory.")
    Traceback (most recent call last):
    evenly.errors.SetupError: cpu ran out of memory. With batch_size=128, try --batch-size 64, or --accumulate 2, ...
    """
    with memory.explain(device, _advice(recipe, torch.device(device))):
        yield


def _advice(recipe: Recipe, device: torch.device) -> str:
    now = f"With batch_size={recipe.batch_size}"
    if recipe.accumulate > 1:
        now += f" in {recipe.accumulate} parts"
    advice = []
    if recipe.batch_size > 1:
        advice.append(f"--batch-size {max(1, recipe.batch_size // 2)}")
        parts = min(2 * recipe.accumulate, recipe.batch_size)
        if parts > recipe.accumulate:
            advice.append(f"--accumulate {parts}, which takes the same batch in {parts} parts")
    if device.type == "cuda" and recipe.precision == "fp32":
        advice.append("--set precision=bf16, which halves what is kept of each layer")
    return f"{now}, try {', or '.join(advice) or 'a smaller model, or --device cpu'}."
