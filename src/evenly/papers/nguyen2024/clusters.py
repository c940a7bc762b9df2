"""Section 4 on the data of definition 3.1: do the clusters find the examples without the easy patch?

Shapes: S seeds, N examples, C outputs.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from evenly import rng
from evenly.data.catalogue import load
from evenly.data.labelled import Splits
from evenly.papers.experiment import Context, Found
from evenly.papers.nguyen2024.dynamics import alignment, errors, network, stacked
from evenly.resampling import Separation, separate
from evenly.resampling.baselines import random_like
from evenly.resampling.moment import GainShrinks
from evenly.training.ensemble import Ensemble

METHODS = ("original", "useful", "random")


def upsampled(
    context: Context,
    *,
    seeds: Sequence[int],
    name: str,
    beta_hard: float,
    num: int = 10_000,
    iterations: int = 800,
    every: int = 25,
    lr: float = 0.1,
) -> Found:
    """Train by GD until the gain in training error shrinks, separate, and train again on each multiset.

    `NAME.precision` and `.recall` (percent) say how well the hard examples are those without the easy patch,
    `NAME.moment` after how many iterations; `NAME.METHOD.hard`, `.easy` and `.error` are at the end of training.
    """
    data = [load("patches", seed=s, num_train=num, num_test=num, beta_hard=beta_hard) for s in seeds]
    separations, moments = _separated(data, seeds, iterations=iterations, every=every, lr=lr)
    values: dict[str, dict[int, float]] = {f"{name}.moment": dict(zip(seeds, moments, strict=True))}
    for seed, each, found in zip(seeds, data, separations, strict=True):
        absent_N = each.train.attributes["easy_present"] == 0
        both = float((found.hard & absent_N).sum())
        values.setdefault(f"{name}.recall", {})[seed] = 100 * both / max(1, int(absent_N.sum()))
        values.setdefault(f"{name}.precision", {})[seed] = 100 * both / max(1, int(found.hard.sum()))
        values.setdefault(f"{name}.share", {})[seed] = 100 * found.share
    weights = {
        "original": [torch.ones(num) for _ in seeds],
        "useful": [1.0 + each.hard.float() for each in separations],
        "random": [
            1.0 + random_like(each, rng=rng.generator(seed, "random upsampling")).hard.float()
            for seed, each in zip(seeds, separations, strict=True)
        ],
    }
    ensemble = Ensemble(
        [network(seed, bias=True) for _ in METHODS for seed in seeds],
        [each.train for _ in METHODS for each in data],
        lr=lr,
        weights=torch.stack([each for method in METHODS for each in weights[method]]),
    )
    ensemble.run(iterations)
    weight_KJD = ensemble.parameters()["filters.weight"]
    x_KN, y_KN = stacked([each["test"] for _ in METHODS for each in data])
    wrong_K = errors(ensemble.outputs(x_KN), y_KN)
    planted = [each.train.planted for _ in METHODS for each in data]
    easy_K, hard_K = (alignment(weight_KJD, torch.stack([each[v] for each in planted])) for v in ("easy", "hard"))
    for number, method in enumerate(METHODS):
        own = slice(number * len(seeds), (number + 1) * len(seeds))
        for what, numbers_K in (("easy", easy_K), ("hard", hard_K), ("error", wrong_K)):
            values[f"{name}.{method}.{what}"] = dict(zip(seeds, numbers_K[own].tolist(), strict=True))
    return Found(values)


def _separated(
    data: Sequence[Splits], seeds: Sequence[int], *, iterations: int, every: int, lr: float
) -> tuple[list[Separation], list[float]]:
    """The separation of each data set by a network of its own, at its own moment."""
    trains = [each.train for each in data]
    early = Ensemble([network(seed, bias=True, first="early") for seed in seeds], trains, lr=lr)
    x_SN, y_SN = stacked(trains)
    history: list[list[float]] = [[] for _ in seeds]
    outputs: dict[int, tuple[Tensor, int]] = {}
    rule = GainShrinks()
    while True:
        out_SNC = early.outputs(x_SN)
        for place, error in enumerate((errors(out_SNC, y_SN) / 100).tolist()):
            history[place].append(error)
            if place not in outputs and (rule(history[place]) or early.step >= iterations):
                outputs[place] = (out_SNC[place].clone(), early.step)
        if len(outputs) == len(seeds):
            break
        early.run(every)
    kept = [outputs[place] for place in range(len(seeds))]
    found = [
        separate(out_NC, train.labels, index=train.index, classes=train.classes, rng=rng.generator(seed, "separate"))
        for (out_NC, _), train, seed in zip(kept, trains, seeds, strict=True)
    ]
    return found, [float(step) for _, step in kept]
