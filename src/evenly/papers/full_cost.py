"""The estimated cost of experiments on GPUs: the counted operations of their networks, part by part."""

import heapq
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from evenly.papers.experiment import Experiment, Part
from evenly.papers.reproduction import cost
from evenly.recipe import Ascent, Recipe, from_mapping, to_mapping
from evenly.typed.mappings import digest

#: Assumptions about a GPU: floating-point operations per second sustained in training, far below its peak; and the
#: minimal seconds per step, however small the network.
SUSTAINED, LEAST_STEP = 15e12, 2e-3
CLUSTERS = (8, 64)
HARD_SHARE = 0.4  # typical share of all examples
GAIN_EPOCHS = 5  # typical number of epochs before the gain shrinks
#: Shape, classes and training examples of published data. With domains, three of four are trained on.
DATA: Mapping[str, tuple[tuple[int, int, int], int, int]] = {
    "cifar10": ((3, 32, 32), 10, 50_000),
    "cifar100": ((3, 32, 32), 100, 50_000),
    "stl10": ((3, 96, 96), 10, 5_000),
    "cinic10": ((3, 32, 32), 10, 90_000),
    "tiny-imagenet": ((3, 64, 64), 200, 100_000),
    "waterbirds": ((3, 224, 224), 2, 4_795),
    "celeba": ((3, 224, 224), 2, 162_770),
    "cifar-mnist": ((3, 64, 32), 2, 9_000),
    "fmnist-mnist": ((3, 64, 32), 5, 27_000),
    "pacs": ((3, 224, 224), 7, 5_995),
    "vlcs": ((3, 224, 224), 5, 6_437),
    "office-home": ((3, 224, 224), 65, 9_353),
}


@dataclass(frozen=True)
class Cost:
    """The cost of one part: operations on a GPU and their hours, or hours on two cores."""

    key: str
    name: str
    flop: float
    hours: float


@dataclass(frozen=True)
class Training:
    """A run that a part trains: its recipe, the share of its examples that are shown, and a key that identifies it."""

    recipe: Recipe
    share: float
    identity: str


def costs(
    chosen: Sequence[tuple[Experiment, str]], seeds: Mapping[str, Sequence[int] | None] | None = None
) -> list[Cost]:
    """The cost of every part; equal parts of several experiments, and equal runs of several parts, once.

    `seeds` are those of each experiment, by its key; by default the declared ones.
    """
    by_part: dict[str, Cost] = {}
    known: set[str] = set()
    for experiment, scale in chosen:
        own = (seeds or {}).get(experiment.key)
        parts, minutes = experiment.parts(scale, own), cost(experiment, scale, own)
        for part in parts:
            if part.digest in by_part:
                continue
            runs = list(trainings(part))
            fresh = {run.identity: run for run in runs if run.identity not in known}
            known |= set(fresh)
            flop = sum(_flop(run) for run in fresh.values())
            hours = sum(_hours(run) for run in fresh.values()) if runs else minutes / len(parts) / 60
            by_part[part.digest] = Cost(experiment.key, part.name, flop, hours)
    return list(by_part.values())


def on_clusters(parts: Sequence[Cost], sizes: Sequence[int] = CLUSTERS) -> list[dict[str, Any]]:
    """A row for each paper and for all, on each size of cluster: hours until the last part ends, and its utilisation.

    Parts go to the first GPU that is free, the longest first (Graham, 1969: at most a third longer than the best).

    >>> row = on_clusters([Cost("a/x", "", 1e15, 3.0), Cost("a/y", "", 1e15, 2.0), Cost("a/z", "", 0.0, 1.0)], [2])[0]
    >>> row["hours"], row["longest"], row["busy"], row["flop"]
    (3.0, 3.0, 1.0, 2000000000000000.0)
    """
    papers = list(dict.fromkeys(part.key.partition("/")[0] for part in parts))
    groups = {name: [part for part in parts if part.key.startswith(f"{name}/")] for name in papers}
    if len(papers) > 1:
        groups["all"] = list(parts)
    return [_row(name, own, size) for name, own in groups.items() for size in sizes]


def _row(name: str, parts: Sequence[Cost], size: int) -> dict[str, Any]:
    free = [0.0] * size
    for hours in sorted((part.hours for part in parts), reverse=True):
        heapq.heapreplace(free, free[0] + hours)
    last, total = max(free), sum(part.hours for part in parts)
    return {
        "of": name,
        "GPUs": size,
        "parts": len(parts),
        "flop": sum(part.flop for part in parts),
        "hours": last,
        "longest": max(part.hours for part in parts),
        "busy": total / (size * last) if last else 0.0,
    }


def trainings(part: Part) -> Iterator[Training]:
    """The runs that a part trains on published images; none for toy data, which run on CPU cores."""
    for given in part.arguments.get("comparisons", [part.arguments]):
        if "recipe" not in given:
            continue
        recipe = replace(from_mapping(Recipe, given["recipe"]), seed=given["seed"])
        if recipe.data.name not in DATA:
            continue
        if "controls" in given:
            yield from _comparison(recipe, given)
        elif "rates" in given:
            for lr in given["rates"]:
                for rho in given["rhos"]:
                    ascent = Ascent("sam", rho) if rho else Ascent()
                    yield _training(replace(recipe, optimizer=replace(recipe.optimizer, lr=lr), ascent=ascent))
        elif "rho" in given:
            yield _training(recipe)
            yield _training(replace(recipe, ascent=Ascent("sam", given["rho"])))
        else:
            yield _training(recipe)


def _comparison(recipe: Recipe, given: Mapping[str, Any]) -> Iterator[Training]:
    """USEFUL and its controls. Only plain training, which continues from the early run, need not pay for it."""
    until = given.get("until") or {"rule": "gain"}
    longer = 1 + HARD_SHARE * (given.get("factor", 2) - 1)
    controls = given["controls"]
    if "original" not in controls:
        epochs = until.get("value", GAIN_EPOCHS) if until["rule"] == "epoch" else GAIN_EPOCHS
        yield _training(recipe, float(epochs) / recipe.epochs, f"early {until}")
    for method in ("useful", *controls):
        share = {"original": 1.0, "upweight": 1.0, "quantile": 1.5}.get(method, longer)
        name = "" if method == "original" else f"{method} {until} {given.get('factor', 2)}"
        yield _training(recipe, share, name)


def _training(recipe: Recipe, share: float = 1.0, name: str = "") -> Training:
    return Training(recipe, share, digest([to_mapping(recipe), name]))


def _steps(run: Training) -> float:
    return run.share * run.recipe.epochs * DATA[run.recipe.data.name][2] / run.recipe.batch_size


def _flop(run: Training) -> float:
    """The operations of a run: those of a gradient, times the examples, times the gradients of a step."""
    from evenly.training.cost import gradients_per_example

    model, classes = run.recipe.model, DATA[run.recipe.data.name][1]
    # A library's network of the same name has the same layers, and the library may not be installed.
    own = model.name.rpartition(":")[2]
    options = dict(model.options) if own == model.name else {}
    once = flop_of_gradient(own, json.dumps(options), shape_of(run.recipe), classes)
    return once * _steps(run) * run.recipe.batch_size * gradients_per_example(run.recipe.ascent)


def _hours(run: Training) -> float:
    from evenly.training.cost import gradients_per_example

    least = LEAST_STEP * _steps(run) * gradients_per_example(run.recipe.ascent)
    return max(_flop(run) / SUSTAINED, least) / 3600


@cache
def flop_of_gradient(name: str, options: str, shape: tuple[int, int, int], num_classes: int) -> float:
    """The operations of one example's forward and backward pass, counted by torch on tensors without contents.

    >>> flop_of_gradient("mlp", '{"width": 8}', (1, 2, 2), 2) > 2 * (4 * 8 + 8 * 2)
    True
    """
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    from evenly.models import build

    num = 2
    with torch.device("meta"):  # no weights are drawn
        model = build(name, input_shape=shape, num_classes=num_classes, rng=0, **json.loads(options)).to("meta")
    inputs = torch.zeros(num, *shape, device="meta")
    with FlopCounterMode(display=False) as counter:
        model(inputs).sum().backward()
    return float(counter.get_total_flops()) / num


def shape_of(recipe: Recipe) -> tuple[int, int, int]:
    """The shape of an image at the network's input.

    >>> from evenly.recipe import Data
    >>> shape_of(Recipe(data=Data("celeba", {"size": 64})))
    (3, 64, 64)
    """
    channels, height, width = DATA[recipe.data.name][0]
    if "size" in recipe.data.options:
        height = width = int(recipe.data.options["size"])
    for step in recipe.augment:
        if step.startswith("resized-crop:"):
            height = width = int(step.removeprefix("resized-crop:").partition(",")[0])
    return channels, height, width
