"""Plain training that continues from the end of an early run: the shared epochs are trained once.

An early run is the beginning of plain training: the same seed, settings and data, ended early. Order, augmentation and
dropout are functions of (seed, epoch, batch), so the state at its end is the state of plain training after these
epochs, bit for bit.
"""

import contextlib
from dataclasses import replace

from evenly.errors import EvenlyError
from evenly.recipe import Recipe, Until
from evenly.records import Run
from evenly.records.identity import Identity
from evenly.training.loop import END
from evenly.training.recorded_recipe import recorded_recipe


def is_beginning(early: Run, recipe: Recipe, identity: Identity) -> bool:
    """Whether `early` has kept the state after the first epochs of the run of `recipe` with this identity."""
    if early.state != "done" or not (early.path / END).is_file():
        return False
    try:
        first, kept, taken = recorded_recipe(early), early.identity, int(early.summary()["epoch"])
    except (EvenlyError, KeyError):  # a damaged early run cannot be continued
        return False
    if first.until.rule == "end" or kept is None:
        return False
    same_data = kept["data"].get("fingerprint") == identity.data["fingerprint"] and kept["given"] == identity.given
    same_recipe = replace(first, until=Until(), keep_epochs=recipe.keep_epochs, last_layer=recipe.last_layer) == recipe
    return same_data and same_recipe and begins(recipe, taken)


def begins(recipe: Recipe, taken: int) -> bool:
    """Whether the first `taken` epochs of a recipe leave no more than an early run does.

    An early run neither keeps the weights of these epochs nor records losses per example in this run's folder.

    >>> begins(Recipe(), 5), begins(Recipe(keep_epochs=(2,)), 5), begins(Recipe(record_examples=True), 5)
    (True, False, False)
    """
    return not (recipe.record_examples or any(epoch <= taken for epoch in recipe.keep_epochs))


def forget_end(early: Run) -> None:
    """Delete the state that an early run kept at its end, once no other run will continue from it."""
    with contextlib.suppress(OSError):
        (early.path / END).unlink(missing_ok=True)
