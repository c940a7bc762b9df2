"""A method as it will be trained: its recipe and the examples it shows, the same for training, dry runs and advice.

Both may depend on the early run: on its epochs, where training goes on from them, and on what its outputs choose.
"""

from dataclasses import dataclass
from typing import Protocol

from evenly.data import Labelled
from evenly.recipe import Recipe, Resampling
from evenly.records import Run
from evenly.training.methods import Method
from evenly.training.selection import WEIGHING, copies_of, shorten


class Beginning(Protocol):
    """What is known of an early run, or assumed."""

    @property
    def taken(self) -> int:
        """The epochs that it takes."""

    def copied_share(self, resampling: Resampling) -> float:
        """The share h of the examples for which 1 + h (k − 1) examples are shown for each one, with the factor k."""


@dataclass(frozen=True)
class Trained:
    """An early run that is done, and the training set that it separates."""

    run: Run
    data: Labelled

    @property
    def taken(self) -> int:
        """The epochs that it took."""
        return int(self.run.summary()["epoch"])

    def copied_share(self, resampling: Resampling) -> float:
        """The share of the examples that are copied; of balanced clusters, what shows as many on average."""
        _, repeat_N = copies_of(resampling, self.run, self.data)
        most = len(repeat_N) * (resampling.factor - 1)
        return int(repeat_N.sum() - len(repeat_N)) / most if most else 0.0


def planned_recipe(
    method: Method,
    base: Recipe,
    beginning: Beginning | None,
    *,
    early: str | None = None,
    factor: int = 2,
    keep_suspects: bool = True,
) -> Recipe:
    """The recipe of a method, given that of plain training and its early run, whose ID is `early`.

    >>> from evenly.training.methods import parse
    >>> class Known:
    ...     taken = 2
    ...     copied_share = lambda self, resampling: 0.4
    >>> [planned_recipe(parse(name), Recipe(epochs=10), Known()).epochs for name in ("useful+continue", "steps:8")]
    [8, 38]
    """
    share = None
    if method.has("steps") and beginning is not None:
        cure = method.copied(base, early=early, factor=factor, keep_suspects=keep_suspects)
        share = beginning.copied_share(cure) if cure is not None else 0.0
        if cure is not None and cure.start == "early":  # which makes its copies in the remaining epochs
            share *= 1 - beginning.taken / base.epochs
    wanted = method.recipe(base, early=early, share=share, factor=factor, keep_suspects=keep_suspects)
    if beginning is None or wanted.resampling.start == "scratch":
        return wanted
    return shorten(wanted, taken=beginning.taken)


def shown_part(recipe: Recipe, base: Recipe, beginning: Beginning | None) -> float:
    """The examples that a planned recipe shows in all, over those of plain training."""
    part, made = recipe.epochs / base.epochs, recipe.resampling
    if made.method == "none" or made.method in WEIGHING or beginning is None:
        return part
    return part * (1 + beginning.copied_share(made) * (made.factor - 1))
