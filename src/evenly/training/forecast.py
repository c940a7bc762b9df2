"""The cost of a comparison, estimated before anything is trained."""

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from evenly.data import Splits
from evenly.errors import EvenlyError
from evenly.recipe import Recipe, Resampling, to_mapping
from evenly.records import Run
from evenly.resampling.moment import AtEpoch
from evenly.training.build import load_data
from evenly.training.continuation import begins
from evenly.training.cost import estimate, gradients_per_example
from evenly.training.design import UNKNOWN, Design
from evenly.training.early import moment
from evenly.training.evaluate import evaluation_split
from evenly.training.identify import identify
from evenly.training.planned_run import Beginning, Trained, planned_recipe, shown_part
from evenly.training.selection import second_recipe
from evenly.training.separations import rule_of

# Typical values: of the share of hard examples, of those predicted wrongly, and of the epochs before the gain shrinks.
SHARE, WRONG, EPOCHS = 0.4, 0.2, 5


def forecast(design: Design, *, runs: str | os.PathLike[str] = "runs", **where: Any) -> dict[str, Any]:
    """The recipes of a comparison, and examples, gradients and seconds of every method, over all seeds.

    Quantities that only the early run can determine are assumed, and listed in `assumed`: 40 % hard examples (`share`),
    20 % that are predicted wrongly (`wrong`) and, with the rule `gain`, five epochs before the separation
    (`early_epochs`). If the early run of the first seed is done, its numbers are used. Plain training counts without
    the epochs that the early run has trained. Whatever the comparison would refuse is refused here too.

    >>> from evenly.recipe import Data, Until
    >>> small = Recipe(data=Data("parity", {"dim": 5}), epochs=10, batch_size=50)
    >>> cost = forecast(Design(small, ("plain", "useful", "sam"), (0,), until=Until("epoch", 2)), device="cpu")
    >>> [(line["method"], line["examples"], line["gradients"]) for line in cost["lines"]]
    [('early', 200, 200), ('plain', 800, 800), ('useful', 1400, 1400), ('sam', 1000, 2000)]
    """
    design.check()
    plain = design.plain(design.seeds[0])
    data = load_data(plain, data_root=where.get("data_root"))
    design.check_on(data, split=evaluation_split(data, design.split))
    cost = estimate(replace(plain, resampling=Resampling()), splits=data, **where)
    made: dict[str, Any] = {"recipes": {}, "share": None, "early_epochs": None, "assumed": ()}
    lines, begun, early_id = [], None, UNKNOWN
    settings: dict[str, Any] = {"factor": design.factor, "keep_suspects": design.keep_suspects}
    if design.needs_early:
        first = design.early(design.seeds[0])
        early_id = identify(first, data).id
        begun, assumed = _beginning(Run(Path(runs) / early_id), data, design)
        made |= {"early_epochs": begun.taken, "assumed": assumed}
        if _takes_clusters(design):
            made["share"] = begun.copied_share(second_recipe(plain, early_id, "useful").resampling)
        made["recipes"]["early"] = {"id": early_id, "recipe": to_mapping(first)}
        alike = (first.model, first.optimizer, first.ascent) == (plain.model, plain.optimizer, plain.ascent)
        own = cost if alike else estimate(first, splits=data, **where)
        lines.append(_line("early", first, own, begun.taken / first.epochs, len(design.seeds), first))
    for method in design.parsed_methods:
        recipe = planned_recipe(method, plain, begun, early=early_id, **settings)
        made["recipes"][method.name] = {"id": identify(recipe, data).id, "recipe": to_mapping(recipe)}
        part = shown_part(recipe, plain, begun)
        if begun is not None and method.name == "plain" and design.plain_continues and begins(recipe, begun.taken):
            part -= begun.taken / plain.epochs  # which the early run has trained
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


@dataclass(frozen=True)
class _Assumed:
    """An early run of which only the epochs are known, if anything."""

    taken: int

    def copied_share(self, resampling: Resampling) -> float:
        """Typical shares; balanced clusters show hard examples about twice."""
        if resampling.copies == "balance":
            return SHARE / (resampling.factor - 1) if resampling.factor > 1 else 0.0
        return {"quantile": 0.5, "misclassified": WRONG}.get(resampling.copies, SHARE)


def _takes_clusters(design: Design) -> bool:
    """Whether any method copies what is in the hard clusters, or as many examples."""
    cures = [design.copied(method) for method in design.parsed_methods]
    return any(cure is not None and rule_of(cure.copies) == "k-means" for cure in cures)


def _beginning(first: Run, data: Splits, design: Design) -> tuple[Beginning, tuple[str, ...]]:
    """The early run, as it is recorded or as it is assumed to be, and what is assumed of it."""
    cures = [cure for method in design.parsed_methods if (cure := design.copied(method)) is not None]
    shares = ["share"] if _takes_clusters(design) else []
    shares += ["wrong"] if any(cure.copies == "misclassified" for cure in cures) else []
    summary = first.summary()
    if "epoch" in summary:
        begun = Trained(first, data.train)
        try:
            for cure in cures:
                begun.copied_share(cure)
        except EvenlyError:  # the comparison will say so
            return _Assumed(begun.taken), tuple(shares)
        return begun, ()
    rule = moment(design.until, epochs=design.recipe.epochs)
    if isinstance(rule, AtEpoch):
        return _Assumed(rule.epoch), tuple(shares)
    return _Assumed(min(EPOCHS, design.recipe.epochs - 1)), (*shares, "early_epochs")
