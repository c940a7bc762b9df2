"""What training costs: gradients per example, and examples, steps and seconds before anything is trained."""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from evenly import rng
from evenly.data import Splits
from evenly.optim.cost import passes_per_step
from evenly.recipe import Ascent, Model, Optimizer, Recipe, Until, to_mapping
from evenly.records import Run
from evenly.resampling.moment import AtEpoch
from evenly.training.build import build_parts, load_data
from evenly.training.distributed import World
from evenly.training.early import early_recipe, moment
from evenly.training.evaluate import evaluation_split
from evenly.training.identify import identify
from evenly.training.interruption import Interruption
from evenly.training.loop import Loop
from evenly.training.methods import parse_all
from evenly.training.selection import second_recipe

SHARE, EPOCHS = 0.4, 5  # the hard part of all examples, and the epochs before the gain shrinks, as they often are
STEPS, LONGEST = 8, 5.0  # a few steps, or as many as five seconds hold


def gradients_per_example(ascent: Ascent) -> float:
    """Gradients of an example in a step: one, and one more where a rule looks first.

    >>> [gradients_per_example(Ascent(*a)) for a in (("none",), ("sam",), ("sam", 0.1, {"every": 5}), ("lsam",))]
    [1.0, 2.0, 1.2, 1.0]
    >>> gradients_per_example(Ascent("sam", 0.0))  # a plain step
    1.0
    """
    return 1.0 if ascent.radius == 0 else passes_per_step(ascent.rule, ascent.options)


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
    with rng.forked([world.device]), tempfile.TemporaryDirectory() as scratch:
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
    # The first steps also warm up caches and allocators: the quickest is nearest to the long run.
    return {
        "examples": recipe.epochs * parts.batches.examples,
        "steps": steps,
        "seconds": round(min(taken) * steps, 1),
        "parameters": sum(p.numel() for p in parts.model.parameters()),
    }


def forecast(
    recipe: Recipe,
    *,
    seeds: Sequence[int] = (0,),
    controls: Sequence[str] = ("original",),
    until: Until = Until("gain"),  # noqa: B008  # frozen
    factor: int = 2,
    keep_suspects: bool = True,
    early_model: Model | None = None,
    early_optimizer: Optimizer | None = None,
    early_ascent: Ascent | None = None,
    runs: str | os.PathLike[str] = "runs",
    split: str | None = None,
    **where: Any,
) -> dict[str, Any]:
    """The recipes of both stages, and examples and seconds of every way of training, over all seeds.

    What only the early run can tell is assumed, and said so in `assumed`: 40 % hard examples and, by gain, five epochs
    before the separation. Where the stages of the first seed are done already, their own numbers are taken. A
    `split` that the method would refuse is refused here too.

    >>> from evenly.recipe import Data
    >>> small = Recipe(data=Data("parity", {"dim": 5}), epochs=10, batch_size=50)
    >>> found = forecast(small, until=Until("epoch", 2), device="cpu")
    >>> [(line["method"], line["examples"]) for line in found["lines"]]
    [('early', 200), ('original', 1000), ('useful', 1400)]
    """
    parse_all(controls)
    mine = replace(recipe, seed=next(iter(seeds)))
    first = early_recipe(mine, until, model=early_model, optimizer=early_optimizer, ascent=early_ascent)
    data = load_data(mine, data_root=where.get("data_root"))
    first_id = identify(first, data).id
    second = second_recipe(mine, first_id, "useful", factor=factor, keep_suspects=keep_suspects)
    second_id = identify(second, data).id
    evaluation_split(data, split)
    plain = estimate(mine, splits=data, **where)
    alike = (first.model, first.optimizer, first.ascent) == (mine.model, mine.optimizer, mine.ascent)
    early = plain if alike else estimate(first, splits=data, **where)
    share, epochs, assumed = _known_or_assumed(
        Run(os.path.join(runs, first_id)), Run(os.path.join(runs, second_id)), until, epochs=first.epochs
    )
    repeated = 1 + share * (factor - 1)
    parts = {"original": 1.0, "upweight": 1.0, "useful": repeated, "random": repeated, "steps": repeated}
    parts |= {"quantile": 1 + 0.5 * (factor - 1), "misclassified": repeated}
    costs = {"early": (early, epochs / recipe.epochs)}
    for method in dict.fromkeys([*(["original"] if "original" in controls else []), "useful", *controls]):
        costs[method] = (plain, parts[method])
    num = len(list(seeds))
    lines = [
        {
            "method": method,
            "runs": num,
            "examples": round(num * cost["examples"] * part),
            "seconds": round(num * cost["seconds"] * part, 1),
        }
        for method, (cost, part) in costs.items()
    ]
    return {
        "early": {"id": first_id, "recipe": to_mapping(first)},
        "second": {"id": second_id, "recipe": to_mapping(second)},
        "share": share,
        "early_epochs": epochs,
        "assumed": assumed,
        "lines": lines,
        "examples": sum(line["examples"] for line in lines),
        "seconds": round(sum(line["seconds"] for line in lines), 1),
    }


def _known_or_assumed(first: Run, second: Run, until: Until, *, epochs: int) -> tuple[float, int, tuple[str, ...]]:
    """Share and epochs as recorded, if these stages are done; else as the moment says, else as they usually are."""
    rule = moment(until, epochs=epochs)
    share, epochs, assumed = SHARE, min(EPOCHS, epochs), ["share", "early_epochs"]
    if isinstance(rule, AtEpoch):
        epochs, assumed = rule.epoch, ["share"]
    for run, name in ((first, "epoch"), (second, "hard_share")):
        done = run.summary()
        if name == "epoch" and name in done:
            epochs, assumed = int(done[name]), ["share"]
        elif name in done:
            share, assumed = float(done[name]), [word for word in assumed if word != "share"]
    return share, epochs, tuple(assumed)
