"""What methods cost in `evenly compare` on the data of an early network: at equal epochs, in which copies cost more."""

from evenly.errors import UsageError
from evenly.papers.atlas.early import Early
from evenly.recipe import Recipe
from evenly.resampling.balance import balance_factors
from evenly.training.cost import gradients_per_example
from evenly.training.design import UNKNOWN
from evenly.training.methods import Method


def relative_cost(method: Method, recipe: Recipe, early: Early) -> float:
    """Gradients of a method over those of plain training, its early run included, as the table of a comparison says."""
    return training_cost(method, recipe, early) + (early.epoch / recipe.epochs if method.resamples else 0.0)


def training_cost(method: Method, recipe: Recipe, early: Early) -> float:
    """The same without the early run, which all methods of a comparison share and plain training continues.

    The examples that are copied are those that the early network has in its hard clusters, or predicts wrongly.
    """
    left = 1 - early.epoch / recipe.epochs if method.has("continue") or recipe.resampling.start == "early" else 1.0
    right = method.has("right") or recipe.resampling.among == "right"
    share = float(early.chosen("right" if right else "hard").double().mean())
    made = method.recipe(recipe, early=UNKNOWN, share=share * left)
    part = made.epochs / recipe.epochs * gradients_per_example(made.ascent) / gradients_per_example(recipe.ascent)
    return part * left * _shown(made, early, share) if method.resamples else part


def changes_something(method: Method, recipe: Recipe) -> bool:
    """Whether a method differs from plain training by this recipe, and can be compared with it."""
    try:
        method.recipe(recipe, early=UNKNOWN)
    except UsageError:
        return False
    return True


def _shown(made: Recipe, early: Early, share: float) -> float:
    """How often an example is shown in an epoch, on average."""
    chosen = made.resampling
    if chosen.method in ("upweight", "reweight"):
        return 1.0
    if chosen.method == "balance":
        return float(balance_factors(early.separation, most=chosen.factor).double().mean())
    if chosen.method == "misclassified":
        share = float(early.wrong_N.double().mean())
    elif chosen.method == "quantile":
        share = 0.5
    return 1 + share * (chosen.factor - 1)
