"""The cost of a comparison, estimated before anything is trained."""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenly.recipe import Recipe, Resampling, to_mapping
from evenly.records import Run
from evenly.resampling.moment import AtEpoch
from evenly.training.build import load_data
from evenly.training.cost import estimate, gradients_per_example
from evenly.training.design import UNKNOWN, Design
from evenly.training.early import moment
from evenly.training.evaluate import evaluation_split
from evenly.training.identify import identify
from evenly.training.methods import parse

SHARE, EPOCHS = 0.4, 5  # typical values of the hard share, and of the epochs before the gain shrinks
_COPIES = ("useful", "random", "misclassified", "balance", "quantile")


def forecast(design: Design, *, runs: str | os.PathLike[str] = "runs", **where: Any) -> dict[str, Any]:
    """The recipes of a comparison, and examples, gradients and seconds of every method, over all seeds.

    Quantities that only the early run can determine are assumed, and listed in `assumed`: 40 % hard examples and, with
    the rule `gain`, five epochs before the separation. If the runs of the first seed are done, their numbers are used.
    Whatever the comparison would refuse is refused here too.

    >>> from evenly.recipe import Data, Until
    >>> small = Recipe(data=Data("parity", {"dim": 5}), epochs=10, batch_size=50)
    >>> cost = forecast(Design(small, ("plain", "useful", "sam"), (0,), until=Until("epoch", 2)), device="cpu")
    >>> [(line["method"], line["examples"], line["gradients"]) for line in cost["lines"]]
    [('early', 200, 200), ('plain', 1000, 1000), ('useful', 1400, 1400), ('sam', 1000, 2000)]
    """
    design.check()
    plain = design.plain(design.seeds[0])
    data = load_data(plain, data_root=where.get("data_root"))
    design.check_on(data, split=evaluation_split(data, design.split))
    cost = estimate(replace(plain, resampling=Resampling()), splits=data, **where)
    made: dict[str, Any] = {"recipes": {}, "share": None, "early_epochs": None, "assumed": ()}
    lines = []
    early_id = None
    if design.needs_early:
        first = design.early(design.seeds[0])
        early_id = identify(first, data).id
        useful = parse("useful").recipe(plain, early=early_id, factor=design.factor, keep_suspects=design.keep_suspects)
        stages = Run(Path(runs) / early_id), Run(Path(runs) / identify(useful, data).id)
        made["share"], made["early_epochs"], made["assumed"] = _known_or_assumed(*stages, design, epochs=first.epochs)
        made["recipes"]["early"] = {"id": early_id, "recipe": to_mapping(first)}
        alike = (first.model, first.optimizer, first.ascent) == (plain.model, plain.optimizer, plain.ascent)
        own = cost if alike else estimate(first, splits=data, **where)
        lines.append(_line("early", first, own, made["early_epochs"] / first.epochs, len(design.seeds), first))
    for method in design.parsed_methods:
        settings: dict[str, Any] = {"factor": design.factor, "keep_suspects": design.keep_suspects}
        recipe = method.recipe(plain, early=early_id or UNKNOWN, share=made["share"], **settings)
        made["recipes"][method.name] = {"id": identify(recipe, data).id, "recipe": to_mapping(recipe)}
        part = recipe.epochs / plain.epochs
        if method.resamples and recipe.resampling.method in _COPIES:
            share = 0.5 if recipe.resampling.method == "quantile" else made["share"]
            part *= 1 + share * (recipe.resampling.factor - 1)
        lines.append(_line(method.name, recipe, cost, part, len(design.seeds), plain))
    totals = {name: sum(line[name] for line in lines) for name in ("examples", "gradients", "seconds")}
    return made | {"lines": lines, **totals, "seconds": round(totals["seconds"], 1)}


def _line(name: str, recipe: Recipe, cost: dict[str, Any], part: float, seeds: int, timed: Recipe) -> dict[str, Any]:
    """One row of the table; `cost` was measured with the recipe `timed`."""
    examples, passes = seeds * cost["examples"] * part, gradients_per_example(recipe.ascent)
    slower = passes / gradients_per_example(timed.ascent)
    return {
        "method": name,
        "runs": seeds,
        "examples": round(examples),
        "gradients": round(examples * passes),
        "seconds": round(seeds * cost["seconds"] * part * slower, 1),
    }


def _known_or_assumed(first: Run, second: Run, design: Design, *, epochs: int) -> tuple[float, int, tuple[str, ...]]:
    """The hard share and the epochs of the early run: as recorded, as the recipe sets them, or as assumed."""
    rule = moment(design.until, epochs=epochs)
    share, taken, assumed = SHARE, min(EPOCHS, epochs), ["share", "early_epochs"]
    if isinstance(rule, AtEpoch):
        taken, assumed = rule.epoch, ["share"]
    if "epoch" in (early := first.summary()):
        taken, assumed = int(early["epoch"]), ["share"]
    if "hard_share" in (done := second.summary()):
        share, assumed = float(done["hard_share"]), [name for name in assumed if name != "share"]
    return share, taken, tuple(assumed)
