"""`evenly advise`: what to try first on your data, from a short early run and the atlas of cures."""

import shlex
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.cli.output import print_json, print_table, say
from evenly.cli.parser import Parser, add_json, add_root
from evenly.cli.train import (
    add_recipe,
    add_running,
    fast_where_possible,
    leads,
    resolve_recipe,
    running,
    with_tested_rate,
)
from evenly.errors import DataError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from evenly.data import Splits
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
    add_running(parser)
    add_root(parser)
    add_json(parser)


def advise(*, ledger: Path | None, runs: str, json: bool, **given: Any) -> None:
    """Measure an early network, find similar tasks of the atlas, and say what to try."""
    from evenly.cli.reproduce import find_ledger
    from evenly.papers.atlas.advice import advise as advice_of
    from evenly.papers.atlas.advice import leave_one_out
    from evenly.papers.atlas.declared import atlas_rows
    from evenly.papers.atlas.early_run import look

    folder, how = find_ledger(ledger), running(given)
    rows = atlas_rows(folder)
    recipe, data = _resolve(given, runs=runs, how=how)
    seen = look(recipe, data, runs=runs, **how)
    signs = _signs(seen, data, _run(given["data"], runs))
    advice, tested = advice_of(seen.features, rows), leave_one_out(rows) if len(rows) > 1 else {}
    if not leads():
        return
    named = _run(given["data"], runs)
    command = _command(given if named is None else given | _settings(named), advice)
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
        recipe = fast_where_possible(resolve_recipe(**given, verb="advise"), given, device=how["device"])
        recipe = with_tested_rate(recipe, given.get("lr"), runs=runs, how=how)
        return recipe, load_data(recipe, data_root=how["data_root"])
    from dataclasses import replace

    from evenly.recipe import Resampling, Until, from_record
    from evenly.training.trained_model import data_of

    named = [name for name in ("config", "model", "optimizer", "epochs", "lr", "rho", "seed") if given.get(name)]
    if named or given["changes"]:
        word = f"--{named[0]}" if named else f"--set {given['changes'][0]}"
        raise UsageError(f"{word}: run {run.id} has a recipe already. Leave it out, or give the data set instead.")
    recipe = replace(from_record(run.recipe), resampling=Resampling(), until=Until(), keep_epochs=())
    return recipe, data_of(run, data_root=how["data_root"])


def _signs(seen: "Looks", data: "Splits", named: "Run | None") -> "list[Sign]":
    """What to try first and why: from the named or the early run, and from the separation of its twin."""
    from evenly.resampling import separate
    from evenly.resampling.health import health
    from evenly.resampling.separation import SeparationWarning
    from evenly.training.early import load_outputs
    from evenly.training.signs import signs_of_run, signs_of_separation

    of_run = signs_of_run(seen.twin)
    if named is not None and named.state == "done" and named.id != seen.twin.id:
        of_run = [*signs_of_run(named), *of_run]
    outputs, agreement = load_outputs(seen.twin), seen.features["agreement"]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SeparationWarning)
            separation = separate(outputs["logits"], outputs["labels"], classes=data.classes, max_accuracy=1.0)
        return [*of_run, *signs_of_separation(separation, health(separation, outputs["logits"]), agreement=agreement)]
    except DataError:  # all outputs of a class are equal: the network learned nothing, or everything
        return of_run


def _settings(run: "Run") -> dict[str, Any]:
    """The command-line words that repeat a run's training: its data, model, epochs and learning rate."""
    recipe = run.recipe
    options = [f"{name}={value}" for name, value in (recipe["data"].get("options") or {}).items()]
    return {
        "data": recipe["data"]["name"],
        "model": recipe["model"]["name"],
        "epochs": recipe["epochs"],
        "lr": recipe["optimizer"]["lr"],
        "changes": options,
    }


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
        return None  # other verbs report a missing data set in the same way


def _command(given: dict[str, Any], found: "Advice") -> str:
    """The comparison that would decide: the first choice, and the methods that could explain its gain."""
    from evenly.papers.atlas.advice import METHODS
    from evenly.training.methods import parse

    if found.abstains:
        methods = ["plain", "useful", "random", "batch"]
    else:
        chosen = [METHODS[choice.cure] for choice in found.ranking if choice.cure != "plain"][:2]
        methods = list(dict.fromkeys(["plain", *chosen, *parse(chosen[0]).controls])) if chosen else ["plain", "useful"]
    words = [f"--{name.replace('_', '-')} {given[name]}" for name in ("model", "epochs", "lr") if given.get(name)]
    words += ["--skip-broken"] if given.get("skip_broken") else []
    changes = [f"--set {shlex.quote(change)}" for change in given["changes"]]
    data = shlex.quote(str(given["data"]))
    return " ".join(["evenly compare", data, *words, *changes, f"--methods {','.join(methods)}", "--seeds 0-9"])


def _show(
    features: dict[str, float],
    epochs: int,
    found: "Advice",
    tested: dict[str, bool],
    ledger: Path,
    command: str,
    signs: "Sequence[Sign]",
) -> None:
    from evenly.papers.atlas.cures import CURES

    for sentence in sentences(features, epochs):
        say(sentence)
    say("")
    for number, sign in enumerate(signs, 1):
        say(f"{number}. {sign.seen} {sign.advice}")
    if found.abstains:
        nearest = next(iter(found.nearest.items()), None)
        say(
            f"\nNo advice: {ledger} holds no task of the atlas. `evenly reproduce atlas --scale small` measures them."
            if nearest is None
            else f"\nNo advice: nothing in the atlas is like this. The nearest task, {nearest[0]}, is {nearest[1]:.1f} "
            "standard deviations away."
        )
        say(f"To find out: {command}")
        return
    near = ", ".join(f"{key.partition('/')[2]} ({distance:.1f})" for key, distance in found.nearest.items())
    say(f"\nThe most similar tasks of the atlas, and how far they are in standard deviations: {near}.\n")
    rows = [
        {
            "try": number,
            "cure": CURES[choice.cure].label,
            "balanced": (f"{choice.balanced:+.1f}" + _range(choice, found)).replace("-", "−"),
            "test": f"{choice.test:+.2f}".replace("-", "−"),
            "cost": f"{choice.cost:.2f}×",
        }
        for number, choice in enumerate(found.ranking[:FIRST], 1)
    ]
    print_table(rows, ["try", "cure", "balanced", "test", "cost"])
    say(
        "\nPoints of error minus plain training on those tasks: on data where the easy feature says nothing"
        f"{' (best to worst task)' * (len(found.nearest) > 1)}, and on the ordinary test set; cost in gradients."
    )
    if found.harmful:
        say(
            f"Not: {'; '.join(CURES[cure].label for cure in found.harmful)}. They harmed the ordinary test error there."
        )
    if tested:
        say(
            f"Confidence: on atlas tasks that were held out, the first choice was as good as the best cure in "
            f"{sum(tested.values())} of {len(tested)}. They have small networks, two classes and a planted minority. "
            "Only a comparison shows whether your data are like them."
        )
    say(f"To find out: {command}")


def _range(choice: "Choice", found: "Advice") -> str:
    return f" ({choice.best:+.1f} to {choice.worst:+.1f})" if len(found.nearest) > 1 else ""


def sentences(features: dict[str, float], epochs: int) -> list[str]:
    """The features of the early network, in words.

    >>> facts = dict(epoch=4, error=0.1, hard_share=0.2, hard_error=0.4, hard_error_later=0.1, distinctness=0.2,
    ...              disagreement=0.01, agreement=0.8)
    >>> sentences(facts, 15)[0]
    'The gain in training error shrinks after epoch 4, at an error of 10.0%.'
    """
    distinct = features["distinctness"] > 0
    return [
        f"The gain in training error shrinks after epoch {features['epoch']:.0f}, at an error of "
        f"{features['error']:.1%}.",
        f"{features['hard_share']:.0%} of the examples are in the hard clusters, which are "
        f"{'more' if distinct else 'no more'} distinct than halves of one cloud ({features['distinctness']:+.2f}); "
        f"{features['hard_error']:.0%} of them are predicted wrongly then, and {features['hard_error_later']:.0%} "
        f"after epoch {epochs}.",
        f"Another network finds the same hard examples with an agreement of {features['agreement']:.2f} (1: the same, "
        f"0: chance). {features['disagreement']:.1%} of the labels contradict the surest predictions: wrong labels, or "
        "examples whose easy feature indicates another class.",
    ]
