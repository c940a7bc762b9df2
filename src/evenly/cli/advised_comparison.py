"""The comparison that `evenly advise` proposes: its command, and what it costs."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evenly.papers.atlas.advice import Advice
    from evenly.papers.atlas.early_run import Looks
    from evenly.recipe import Recipe
    from evenly.training.signs import Sign

SEEDS = 10
FEW = 3  # seeds: with fewer, nothing can be said of any method


def advised_methods(recipe: "Recipe", advice: "Advice", signs: "Sequence[Sign]") -> list[str]:
    """Plain training, the first cure of the atlas with the methods that could explain its gain, and what signs advise.

    What a sign advises is left out if the comparison has its words already, or if it harmed the most similar tasks.
    """
    from evenly.papers.atlas.advice import METHODS
    from evenly.papers.atlas.comparison_cost import changes_something
    from evenly.training.controls import controls_of
    from evenly.training.methods import parse

    methods = ["plain"]
    if advice.first is not None:
        cure = METHODS[advice.first.cure]
        methods += [cure, *controls_of(parse(cure))]
    harmful = [_factors(METHODS[cure]) for cure in advice.surely_harmful]
    for method in dict.fromkeys(method for sign in signs for method in sign.methods):
        own = _factors(method)
        if own not in harmful and not any(own.keys() <= _factors(other).keys() for other in methods):
            methods.append(method)
    against = {word for sign in signs for word in sign.against}
    usual = ["plain", "sam", "batch"] if "useful" in against else ["plain", "useful", "random", "batch"]
    for names in (methods, usual):
        able = [name for name in names if name == "plain" or changes_something(parse(name), recipe)]
        if len(able) > 1:
            break
    return able


def advised_command(recipe: "Recipe", advice: "Advice", methods: "Sequence[str]", *, balanced: bool) -> str:
    """The command that compares them, on the split where the advised cure gained; `balanced`: whether there is one."""
    from evenly.recipe import to_mapping
    from evenly.report.experiments.command import compare_command

    command = compare_command(to_mapping(recipe), methods=methods, seeds=f"0-{SEEDS - 1}")
    gained = advice.first is not None and advice.first.split == "balanced"
    return f"{command} --split balanced" if balanced and gained else command


def estimate(recipe: "Recipe", methods: "Sequence[str]", seen: "Looks") -> dict[str, float]:
    """The runs of the comparison, and its gradients and seconds by the pace of the early run."""
    from evenly.papers.atlas.comparison_cost import training_cost
    from evenly.training.methods import parse

    summary = seen.run.summary()
    plain = recipe.epochs / seen.epochs  # in early runs
    times = SEEDS * plain * sum(training_cost(parse(method), recipe, seen.early) for method in methods)
    return {
        "runs": SEEDS * len(methods),
        "early_runs": times,
        "gradients": times * float(summary["gradients"]),
        "seconds": times * float(summary["seconds"]),
    }


def _factors(method: str) -> dict[str, str]:
    """The words of a method, with the factor of those that repeat examples."""
    from evenly.training.method_words import FACTOR, WORDS
    from evenly.training.methods import parse

    return {word: (value or "2") if WORDS[word].value == FACTOR else "" for word, value in parse(method).words}
