"""`train_useful`: USEFUL and its controls, seed by seed, as rows of plain numbers."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from evenly.data import Splits
from evenly.recipe import Ascent, Model, Optimizer, Recipe, Until
from evenly.training.comparison import Design, compare
from evenly.training.controls import controls_of
from evenly.training.method_words import WORDS
from evenly.training.methods import parse, parse_all


@dataclass(frozen=True)
class Row:
    """One run of a comparison: its method and seed, its errors, the hard share, and its cost in gradients."""

    method: str
    seed: int
    run: str
    early: str | None
    error: float
    worst: float
    share: float
    cost: float


def train_useful(
    recipe: Recipe,
    *,
    seeds: Iterable[int] = (0,),
    controls: Sequence[str] = ("original",),
    until: Until = Until("gain"),  # noqa: B008  # frozen
    factor: int = 2,
    keep_suspects: bool = True,
    early_model: Model | None = None,
    early_optimizer: Optimizer | None = None,
    early_ascent: Ascent | None = None,
    runs: str | os.PathLike[str] = "runs",
    split: str | None = None,
    splits: Splits | None = None,
    **running: Any,
) -> list[Row]:
    """Train the recipe by USEFUL and by each control, with the same seeds for all; resumable at any point.

    Parameters
    ----------
    recipe
        How a network is trained; its seed is replaced by each of `seeds`.
    controls
        Methods to compare with (`evenly.training.methods`): `plain` (or `original`) training, `random` upsampling of as
        many examples, as many `steps`, and so on. Rows carry these names.
    until
        When to separate: where the gain in training error shrinks, after an epoch, or after a part of all epochs.
    early_model, early_optimizer, early_ascent
        Replacements for the recipe's in the first stage: a smaller proxy, another optimizer.
    split
        Where the error is taken; by default `test`, or `validation` where there is no such split.
    running
        Further arguments of `train`: device, data_root, workers, pace.
    """
    names = {parse(control).name: control for control in controls}
    design = Design(
        recipe,
        methods=useful_methods(controls),
        seeds=tuple(seeds),
        until=until,
        factor=factor,
        keep_suspects=keep_suspects,
        early_model=early_model,
        early_optimizer=early_optimizer,
        early_ascent=early_ascent,
        split=split,
    )
    comparison = compare(design, runs=runs, splits=splits, refuse=True, stop_at_failure=True, **running)
    rows = []
    for seed in map(str, design.seeds):
        for method in comparison["methods"]:
            run = method["runs"][seed]
            early = comparison["early"][seed]["run"] if parse(method["name"]).resamples else None
            rows.append(
                Row(
                    method=names.get(method["name"], method["name"]),
                    seed=int(seed),
                    run=run["run"],
                    early=early,
                    error=run["error"],
                    worst=run["worst"],
                    share=run["hard_share"] or 0.0,
                    cost=run["cost"],
                )
            )
    return rows


def useful_methods(controls: Iterable[str], *, augments: bool = False) -> tuple[str, ...]:
    """USEFUL and its controls in the order of a table: plain training first, then the method.

    The control `auto` stands for plain training and everything that could explain the gain of USEFUL, and of targeted
    augmentation where the recipe has it.

    >>> useful_methods(["random", "original"]), useful_methods(["auto"])
    (('plain', 'useful', 'random'), ('plain', 'useful', 'random', 'steps', 'batch'))
    """
    names = list(controls)
    if "auto" in names:
        # Without values of their own, they take the factor and the augmentation of the comparison.
        rivals = (*controls_of(parse("useful")), *(WORDS["noise"].controls if augments else ()))
        names = ["plain", *rivals, *(name for name in names if name != "auto")]
    methods = [method.name for method in parse_all(dict.fromkeys(parse(name).name for name in names))]
    last = ["steps"] if "steps" in methods and "auto" not in controls else []
    first = ["plain"] if "plain" in methods else []
    others = [name for name in methods if name not in (*first, *last, "useful")]
    return (*first, "useful", *others, *last)
