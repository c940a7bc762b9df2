"""`evenly advise`: what to try first on your data, from a short early run and the atlas of cures."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root
from evenly.cli.train import (
    add_recipe,
    add_run_options,
    fast_where_possible,
    leads,
    resolve_recipe,
    take_run_options,
    with_tested_rate,
)
from evenly.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenly.data import Splits
    from evenly.files.layered import Layered
    from evenly.papers.atlas.advice import Advice, Choice
    from evenly.papers.atlas.early_run import Looks
    from evenly.recipe import Recipe
    from evenly.records import Run
    from evenly.training.signs import Sign

EXAMPLES = """
  evenly advise digit-dominoes --model mlp --epochs 30
  evenly advise photos/ --model convnet --epochs 30
  evenly advise 3f2a                               as the run 3f2a was trained
"""
FIRST = 5  # cures of the ranking that are shown


def fill(parser: Parser) -> None:
    """The arguments of `evenly advise`."""
    parser.calls(advise, examples=EXAMPLES)
    add_recipe(parser)
    parser.add_argument("--ledger", type=Path, metavar="DIR", help="where the rows of the atlas are (default: claims)")
    add_run_options(parser)
    add_root(parser)
    add_json(parser)


def advise(*, ledger: Path | None, runs: str, json: bool, **given: Any) -> None:
    """Measure an early network, find similar tasks of the atlas, and say what to try."""
    from evenly.cli.reproduce import find_ledger
    from evenly.papers.atlas.advice import advise as advice_of
    from evenly.papers.atlas.advice import leave_one_out
    from evenly.papers.atlas.early_run import look
    from evenly.papers.atlas.task_list import atlas_rows

    folder, how = find_ledger(ledger), take_run_options(given)
    rows = atlas_rows(folder)
    recipe, data = _resolve(given, runs=runs, how=how)
    seen = look(recipe, data, runs=runs, **how)
    signs = _signs(seen, _run(given["data"], runs))
    advice, tested = advice_of(seen.features, rows), leave_one_out(rows) if len(rows) > 1 else {}
    if not leads():
        return
    command = _command(recipe, advice, signs, balanced="balanced" in data)
    if json:
        facts = {"run": seen.run.id, "twin": seen.twin.id, "epochs": seen.epochs, "features": seen.features}
        ranking = [vars(choice) for choice in advice.ranking]
        print_json(
            {
                **facts,
                "abstains": advice.abstains,
                "nearest": dict(advice.nearest),
                "ranking": ranking,
                "harmful": list(advice.harmful),
                "signs": [sign._asdict() for sign in signs],
                "tested": {"tasks": len(tested), "good": sum(tested.values())},
                "next": command,
            }
        )
        return
    _show(seen.features, seen.epochs, advice, tested, folder, command, signs)


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
    from evenly.recipe import Resampling, Until
    from evenly.training.recorded_recipe import recorded_recipe
    from evenly.training.trained_model import data_of

    named = [name for name in ("config", "model", "optimizer", "epochs", "lr", "rho", "seed") if given.get(name)]
    if named or given["changes"]:
        word = f"--{named[0]}" if named else f"--set {given['changes'][0]}"
        raise UsageError(f"{word}: run {run.id} has a recipe already. Leave it out, or give the data set instead.")
    made = recorded_recipe(run)
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
    return [*of_run, *signs_of_separation(separation, checked, agreement=seen.features["agreement"])]


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


def _command(recipe: "Recipe", advice: "Advice", signs: "Sequence[Sign]", *, balanced: bool) -> str:
    """The comparison that would decide: what is advised, and the methods that could explain its gain.

    The advice of the atlas is by the error on balanced data: where there are such, the comparison takes it there too.
    """
    from evenly.papers.atlas.advice import METHODS
    from evenly.recipe import to_mapping
    from evenly.report.experiments.command import compare_command
    from evenly.training.controls import controls_of
    from evenly.training.methods import parse

    if advice.abstains:
        advised = dict.fromkeys(method for sign in signs for method in sign.methods)
        methods = ["plain", *(advised or ("useful", "random", "batch"))]
    else:
        chosen = [METHODS[choice.cure] for choice in advice.ranking if choice.cure != "plain"][:2]
        methods = (
            list(dict.fromkeys(["plain", *chosen, *controls_of(parse(chosen[0]))])) if chosen else ["plain", "useful"]
        )
    command = compare_command(to_mapping(recipe), methods=methods, seeds="0-9")
    return f"{command} --split balanced" if balanced and not advice.abstains else command


def _show(
    features: dict[str, float],
    epochs: int,
    advice: "Advice",
    tested: dict[str, bool],
    ledger: "Path | Layered",
    command: str,
    signs: "Sequence[Sign]",
) -> None:
    from evenly.papers.atlas.cures import CURES

    for sentence in sentences(features, epochs):
        say(sentence)
    say("")
    for number, sign in enumerate(signs, 1):
        say(f"{number}. {sign.seen} {sign.advice}")
    if advice.abstains:
        nearest = next(iter(advice.nearest.items()), None)
        say(
            f"\nNo advice from the atlas: {ledger} holds none of its tasks. `evenly reproduce atlas --scale small` "
            "measures them."
            if nearest is None
            else f"\nNo advice from the atlas: none of its tasks is like this. The nearest, {nearest[0]}, is "
            f"{nearest[1]:.1f} standard deviations away."
        )
        say(f"To find out: {command}")
        return
    near = ", ".join(f"{key.partition('/')[2]} ({distance:.1f})" for key, distance in advice.nearest.items())
    say(f"\nThe most similar tasks of the atlas, and how far they are in standard deviations: {near}.\n")
    rows = [
        {
            "try": number,
            "cure": CURES[choice.cure].label,
            "balanced": (f"{choice.balanced:+.1f}" + _range(choice, advice)).replace("-", "−"),
            "test": f"{choice.test:+.2f}".replace("-", "−"),
            "cost": f"{choice.cost:.2f}×",
        }
        for number, choice in enumerate(advice.ranking[:FIRST], 1)
    ]
    print_table(rows, ["try", "cure", "balanced", "test", "cost"])
    say(
        "\nPoints of error minus plain training on those tasks: on data where the easy feature says nothing"
        f"{' (best to worst task)' * (len(advice.nearest) > 1)}, and on the ordinary test set; cost in gradients. "
        "All cures took as many steps there as plain training; "
        "`evenly compare` takes as many epochs, in which copies cost more."
    )
    if advice.harmful:
        harmful = "; ".join(CURES[cure].label for cure in advice.harmful)
        say(f"Not: {harmful}. They harmed the ordinary test error there.")
    if tested:
        say(
            f"Confidence: on atlas tasks that were held out, the first choice was as good as the best cure in "
            f"{sum(tested.values())} of {len(tested)}. They have small networks, two classes and a planted minority. "
            "Only a comparison shows whether your data are like them."
        )
    say(f"To find out: {command}")


def _range(choice: "Choice", advice: "Advice") -> str:
    return f" ({choice.best:+.1f} to {choice.worst:+.1f})" if len(advice.nearest) > 1 else ""


def sentences(features: dict[str, float], epochs: int) -> list[str]:
    """The features of the early network, in words.

    >>> facts = dict(epoch=4, error=0.1, hard_share=0.2, hard_error=0.4, hard_error_later=0.1, distinctness=0.2,
    ...              disagreement=0.01, agreement=0.8)
    >>> sentences(facts, 15)[0]
    'The gain in training error shrinks after epoch 4, at an error of 10.0%.'
    >>> sentences(facts, 4)[0]
    'In the first 4 epochs the gain in training error did not shrink before the last, at an error of 10.0%.'
    """
    distinct, epoch, error = features["distinctness"] > 0, round(features["epoch"]), f"{features['error']:.1%}"
    # The features do not say whether the gain shrank in the last of these epochs or in none of them.
    came = epoch < epochs
    return [
        f"The gain in training error shrinks after epoch {epoch}, at an error of {error}."
        if came
        else f"In the first {epochs} epochs the gain in training error did not shrink before the last, at an error of "
        f"{error}.",
        f"{features['hard_share']:.0%} of the examples are in the hard clusters, which are "
        f"{'more' if distinct else 'no more'} distinct than halves of one cloud ({features['distinctness']:+.2f}); "
        f"{features['hard_error']:.0%} of them are predicted wrongly then"
        + (f", and {features['hard_error_later']:.0%} after epoch {epochs}." if came else "."),
        f"Another network finds the same hard examples with an agreement of {features['agreement']:.2f} (1: the same, "
        f"0: chance). {features['disagreement']:.1%} of the labels contradict the surest predictions: wrong labels, "
        "examples whose easy feature indicates another class, or a network that has learned too little yet.",
    ]
