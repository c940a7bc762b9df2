"""What methods cost in `evenly compare` on the data of an early network: at equal epochs, in which copies cost more."""

from evenly.errors import UsageError
from evenly.papers.atlas.early import Early
from evenly.recipe import Recipe, Resampling
from evenly.resampling.balance import balance_factors
from evenly.training.cost import gradients_per_example
from evenly.training.design import UNKNOWN
from evenly.training.methods import Method
from evenly.training.planned_run import planned_recipe, shown_part


def relative_cost(method: Method, recipe: Recipe, early: Early) -> float:
    """Gradients of a method over those of plain training, its early run included, as the table of a comparison says."""
    return training_cost(method, recipe, early) + (early.epoch / recipe.epochs if method.resamples else 0.0)


def training_cost(method: Method, recipe: Recipe, early: Early) -> float:
    """The same without the early run, which all methods of a comparison share and plain training continues.

    The examples that are copied are those that the early network has in its hard clusters, or predicts wrongly.
    """
    beginning = _Looked(early)
    made = planned_recipe(method, recipe, beginning, early=UNKNOWN)
    slower = gradients_per_example(made.ascent) / gradients_per_example(recipe.ascent)
    return slower * shown_part(made, recipe, beginning)


def changes_something(method: Method, recipe: Recipe) -> bool:
    """Whether a method differs from plain training by this recipe, and can be compared with it."""
    try:
        method.recipe(recipe, early=UNKNOWN)
    except UsageError:
        return False
    return True


class _Looked:
    """What an early network says of the run that a comparison begins with (`evenly.training.planned_run`)."""

    def __init__(self, early: Early) -> None:
        self._early, self.taken = early, early.epoch

    def copied_share(self, resampling: Resampling) -> float:
        """The share of the examples that are copied; of balanced clusters, what shows as many on average."""
        early, most = self._early, resampling.factor
        if resampling.copies == "balance":
            often = float(balance_factors(early.separation, most=most).double().mean())
            return (often - 1) / (most - 1) if most > 1 else 0.0
        if resampling.copies == "quantile":
            return 0.5
        which = "wrong" if resampling.copies == "misclassified" else "right" if resampling.among == "right" else "hard"
        return float(early.chosen(which).double().mean())
