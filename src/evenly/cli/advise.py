"""`evenly advise`: what to try first on your data, from two short early runs and the atlas of cures."""

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.cli.advice_output import show_advice
from evenly.cli.advised_comparison import advised_command, advised_methods, estimate
from evenly.cli.output import print_json
from evenly.cli.parser import Parser, add_json, add_root
from evenly.cli.train import (
    add_recipe,
    add_run_options,
    fast_where_possible,
    leads,
    recipe_options,
    resolve_recipe,
    take_run_options,
    with_tested_rate,
)
from evenly.errors import UsageError

if TYPE_CHECKING:
    from evenly.data import Splits
    from evenly.papers.atlas.early_run import Looks
    from evenly.recipe import Recipe
    from evenly.records import Run
    from evenly.training.signs import Sign

EXAMPLES = """
  evenly advise digit-dominoes --model mlp --epochs 30
  evenly advise photos/ --model convnet --epochs 30
  evenly advise 3f2a                               as the run 3f2a was trained
"""


def fill(parser: Parser) -> None:
    """The arguments of `evenly advise`."""
    parser.calls(advise, examples=EXAMPLES)
    add_recipe(parser, data="a data set, the path of your own, or a finished run")
    parser.add_argument("--ledger", type=Path, metavar="DIR", help="where the rows of the atlas are (default: claims)")
    add_run_options(parser)
    add_root(parser)
    add_json(parser)


def advise(*, ledger: Path | None, runs: str, json: bool, **given: Any) -> None:
    """Measure an early network, find similar tasks of the atlas, and say what to try."""
    import torch

    from evenly.cli.reproduce import find_ledger
    from evenly.papers.atlas.advice import METHODS, leave_one_out, same_for_all
    from evenly.papers.atlas.advice import advise as advice_of
    from evenly.papers.atlas.comparison_cost import changes_something, relative_cost
    from evenly.papers.atlas.early_run import look
    from evenly.papers.atlas.task_list import atlas_rows
    from evenly.training.methods import parse

    folder, how = find_ledger(ledger), take_run_options(given)
    rows = atlas_rows(folder)
    recipe, data = _resolve(given, runs=runs, how=how)
    seen = look(recipe, data, runs=runs, **how)
    signs = _signs(seen, _run(given["data"], runs))
    advice = advice_of(seen.features, rows, against={word for sign in signs for word in sign.against})
    if not leads():
        return
    tested, same = (leave_one_out(rows), same_for_all(rows)) if len(rows) > 1 else ({}, {})
    methods = advised_methods(recipe, advice, signs)
    command = advised_command(recipe, advice, methods, balanced="balanced" in data)
    words = {choice.cure: parse(METHODS[choice.cure]) for choice in advice.ranking}
    costs = {
        cure: relative_cost(method, recipe, seen.early) if changes_something(method, recipe) else 1.0
        for cure, method in words.items()
    }
    found: dict[str, Any] = {
        "run": seen.run.id,
        "twin": seen.twin.id,
        "epochs": seen.epochs,
        "features": seen.features,
        "abstains": advice.abstains,
        "nearest": dict(advice.nearest),
        "ranking": [
            vars(choice) | {"cost": costs[choice.cure], "cost_at_equal_steps": choice.cost} for choice in advice.ranking
        ],
        "harmful": list(advice.harmful),
        "harmed_tasks": {cure: list(tasks) for cure, tasks in advice.harmful.items()},
        "ruled_out": list(advice.ruled_out),
        "signs": [sign._asdict() for sign in signs],
        "tested": {"tasks": len(tested), "good": sum(tested.values()), "same_cure": max(same.values(), default=0)},
        "next": command,
        "estimate": estimate(recipe, methods, seen),
    }
    if json:
        print_json(found)
    else:
        pixels = data.train.gather([0]).dtype == torch.uint8
        show_advice(found, advice, ledger=str(folder), pictures=pixels, balanced="balanced" in data)


def _resolve(given: dict[str, Any], *, runs: str, how: dict[str, Any]) -> "tuple[Recipe, Splits]":
    """The recipe and data of the named run, or those that the arguments describe."""
    from evenly.training.build import load_data

    run = _run(given["data"], runs)
    if run is None:
        recipe = fast_where_possible(resolve_recipe(**given, verb="advise", runs=runs), given, device=how["device"])
        recipe = with_tested_rate(recipe, given.get("lr"), runs=runs, how=how)
        return recipe, load_data(recipe, data_root=how["data_root"])
    from dataclasses import replace

    from evenly import consent
    from evenly.papers.atlas.early_run import FEWEST_EPOCHS
    from evenly.recipe import Resampling, Until
    from evenly.training.recorded_recipe import recorded_recipe
    from evenly.training.trained_model import data_of

    for name, option in recipe_options().items():
        if given.get(name) not in (None, []):
            word = f"{option} {given[name][0]}" if name == "changes" else option
            raise UsageError(f"{word}: run {run.id} has a recipe already. Leave it out, or give the data set instead.")
    made = recorded_recipe(run)
    if made.epochs < FEWEST_EPOCHS:  # its epochs cannot be changed here, so advice to change them would not help
        instead = ["evenly", "advise", made.data.name, "--model", made.model.name, "--epochs", str(FEWEST_EPOCHS)]
        raise UsageError(
            f"run {run.id} has {made.epochs} epoch{'s' * (made.epochs > 1)}, and advice looks at an early network. "
            f"Give its data instead: {shlex.join(instead)}"
        )
    consent.require(made.model.name, made.model.options, source=run.path)  # the folder may be a stranger's
    recipe = replace(made, resampling=Resampling(), until=Until(), keep_epochs=())
    return recipe, data_of(run, data_root=how["data_root"])


def _signs(seen: "Looks", named: "Run | None") -> "list[Sign]":
    """What to try first and why: from the named run, the twin's training and the separation of the early network."""
    from evenly.resampling.health import health
    from evenly.training.signs import signs_of_run, signs_of_separation

    of_run = signs_of_run(seen.twin)
    if named is not None and named.state == "done" and named.id != seen.twin.id:
        of_run = [*signs_of_run(named), *of_run]
    separation = seen.early.separation
    checked = health(separation, seen.early.outputs_NC)
    too_early = not seen.twin.summary().get("rule_fired", True)
    of_separation = signs_of_separation(
        separation, checked, agreement=seen.features["agreement"], too_early=too_early
    )  # fmt: skip
    return [*of_run, *of_separation]


def _run(word: str | None, runs: str) -> Any:
    """The run that a word names, if it names one and no data set."""
    from evenly.data.catalogue import CATALOGUE
    from evenly.records import Run

    if word is None or word in CATALOGUE:
        return None
    path = Path(word)
    if path.exists() and not (path / "recipe.yaml").is_file():
        return None
    try:
        return Run.open(word, runs)
    except UsageError:
        if re.fullmatch("[0-9a-f]+", word) and not path.exists():
            raise  # it looks like an ID
        return None  # loading reports what is missing
