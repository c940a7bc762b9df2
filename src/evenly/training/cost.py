"""What a recipe will cost, before it is run: examples, steps, and seconds from a few measured steps."""

import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from evenly import rng
from evenly.data import Splits
from evenly.recipe import Recipe
from evenly.records import Run
from evenly.training.distributed import World
from evenly.training.interruption import Interruption
from evenly.training.loop import Loop
from evenly.training.parts import assemble, load_data

STEPS, LONGEST = 8, 5.0  # a few steps, or as many as five seconds hold


def estimate(
    recipe: Recipe,
    *,
    splits: Splits | None = None,
    device: str = "auto",
    data_root: str | None = None,
    workers: int = 0,
) -> dict[str, Any]:
    """Examples, steps and gradients of the whole recipe, and its seconds on this machine, from a few real steps.

    `splits` are its data, where they are loaded already.

    >>> from evenly.recipe import Data
    >>> estimate(Recipe(data=Data("parity", {"dim": 5}), epochs=3, batch_size=50), device="cpu")["steps"]
    6
    """
    world = World.join(device)
    with rng.fork_generators([world.device]), tempfile.TemporaryDirectory() as scratch:
        data = splits if splits is not None else load_data(recipe, data_root=data_root)
        parts = assemble(recipe, world=world, splits=data, workers=workers)
        loop = Loop(parts, Run(Path(scratch)), Interruption())
        taken: list[float] = []
        for batch in islice(parts.batches.epoch(0), STEPS):
            start = time.perf_counter()
            loop.take(batch)
            world.finish()
            taken.append(time.perf_counter() - start)
            if sum(taken) > LONGEST:
                break
    steps = recipe.epochs * len(parts.batches)
    # The first steps also warm up caches and allocators: the quickest is nearest to the long run.
    return {
        "examples": recipe.epochs * parts.batches.examples,
        "steps": steps,
        "seconds": round(min(taken) * steps, 1),
        "parameters": sum(p.numel() for p in parts.model.parameters()),
    }
