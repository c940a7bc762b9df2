"""Running out of memory, told as what to try: a smaller batch, or the same batch in parts."""

import contextlib
from collections.abc import Iterator

import torch

from evenly import memory
from evenly.errors import SetupError
from evenly.recipe import Recipe


@contextlib.contextmanager
def explain_out_of_memory(recipe: Recipe, device: torch.device | str) -> Iterator[None]:
    """Within the context, running out of memory is an error that says what would need less.

    >>> with explain_out_of_memory(Recipe(batch_size=128), "cpu"):
    ...     raise torch.OutOfMemoryError("CUDA out of memory.")
    Traceback (most recent call last):
    evenly.errors.SetupError: cpu ran out of memory with batch_size=128. Try --batch-size 64, or --set accumulate=2, ...
    """
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not memory.is_out(error):
            raise
        raise SetupError(_advice(recipe, torch.device(device))) from error


def _advice(recipe: Recipe, device: torch.device) -> str:
    now = f"{device} ran out of memory with batch_size={recipe.batch_size}"
    if recipe.accumulate > 1:
        now += f" in {recipe.accumulate} parts"
    advice = []
    if recipe.batch_size > 1:
        advice.append(f"--batch-size {max(1, recipe.batch_size // 2)}")
        parts = min(2 * recipe.accumulate, recipe.batch_size)
        if parts > recipe.accumulate:
            advice.append(f"--set accumulate={parts}, which takes the same batch in {parts} parts")
    if device.type == "cuda" and recipe.precision == "fp32":
        advice.append("--set precision=bf16, which halves what is kept of each layer")
    return f"{now}. Try {', or '.join(advice) or 'a smaller model, or --device cpu'}."
