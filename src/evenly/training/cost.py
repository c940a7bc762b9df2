"""The cost of training: gradients per example, and an estimate of examples, steps and seconds beforehand."""

import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from evenly import rng
from evenly.data import Splits
from evenly.optim.cost import passes_per_step
from evenly.recipe import Ascent, Recipe
from evenly.records import Run
from evenly.training.build import build_parts, load_data
from evenly.training.distributed import World
from evenly.training.interruption import Interruption
from evenly.training.loop import Loop

STEPS, LONGEST = 8, 5.0  # a few steps, or five seconds' worth


def gradients_per_example(ascent: Ascent, *, passes: int | None = None) -> float:
    """Gradients per example and step: one, plus one more for a rule that ascends first.

    `passes` is how many a displaced step was seen to make.

    >>> [gradients_per_example(Ascent(*a)) for a in (("none",), ("sam",), ("sam", 0.1, {"every": 5}), ("lsam",))]
    [1.0, 2.0, 1.2, 1.0]
    >>> gradients_per_example(Ascent("sam", 0.0)), gradients_per_example(Ascent("sam", 0.0, {}, "linear", 0.1))
    (1.0, 2.0)
    """
    largest = ascent.radius if ascent.schedule == "constant" else max(ascent.radius, ascent.rho_end)
    return 1.0 if largest == 0 else passes_per_step(ascent.rule, ascent.options, passes=passes)


def estimate(
    recipe: Recipe,
    *,
    splits: Splits | None = None,
    device: str = "auto",
    data_root: str | None = None,
    workers: int | None = None,
) -> dict[str, Any]:
    """Examples and steps of the whole recipe, its seconds on this machine, from a few real steps, and its parameters.

    `splits` are its data, if they are already loaded.

    >>> from evenly.recipe import Data
    >>> estimate(Recipe(data=Data("parity", {"dim": 5}), epochs=3, batch_size=50), device="cpu")["steps"]
    6
    """
    world = World.join(device)
    with rng.fork_generators([world.device]), tempfile.TemporaryDirectory() as scratch:
        data = splits if splits is not None else load_data(recipe, data_root=data_root)
        parts = build_parts(recipe, world=world, splits=data, workers=workers)
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
    # The first steps also warm up caches and allocators: the quickest step best predicts a long run.
    return {
        "examples": recipe.epochs * parts.batches.examples,
        "steps": steps,
        "seconds": round(min(taken) * steps, 1),
        "parameters": sum(p.numel() for p in parts.model.parameters()),
    }
