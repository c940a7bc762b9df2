"""Checks of the arguments of `train` and `compare`, made before anything is loaded."""

from collections import Counter
from collections.abc import Iterable
from numbers import Integral, Real
from typing import Any

from torch import Tensor

from evenly.data.numpy_memory import as_tensor
from evenly.errors import UsageError
from evenly.recipe import Recipe

CHANGES = frozenset({"world", "device"})


def require_recipe(recipe: Any) -> Recipe:
    """The same recipe; a `UsageError` for anything else, such as the name of data.

    >>> require_recipe("digits")
    Traceback (most recent call last):
    evenly.errors.UsageError: recipe = 'digits' is a str, not evenly.recipe.Recipe. Give ...
    """
    if isinstance(recipe, Recipe):
        return recipe
    raise UsageError(
        f"recipe = {recipe!r:.60} is a {type(recipe).__name__}, not evenly.recipe.Recipe. Give "
        'Recipe(data=Data("digits")), or that of a file: evenly.recipe.load("recipe.yaml").'
    )


def check_settings(*, enough: Any, pace: Any, workers: Any) -> None:
    """Raise for a rule that cannot be called, a pace that is no time, and workers that are no number.

    >>> check_settings(enough=lambda history: False, pace=60.0, workers=None)
    >>> check_settings(enough=5, pace=60.0, workers=None)
    Traceback (most recent call last):
    evenly.errors.UsageError: enough = 5 cannot be called: give a function of the metrics so far, such as ...
    """
    if enough is not None and not callable(enough):
        raise UsageError(
            f"enough = {enough!r:.60} cannot be called: give a function of the metrics so far, such as "
            "lambda history: len(history) == 5."
        )
    if not isinstance(pace, Real) or not float(pace) >= 0:
        raise UsageError(f"pace = {pace!r:.60} is the seconds between checkpoints: give 0 or more, such as 60.")
    if workers is not None and (isinstance(workers, bool) or not isinstance(workers, Integral) or workers < 0):
        raise UsageError(f"--workers {workers!r:.60}: give 0 or more processes.")


def allowed_changes(allow: str | Iterable[str]) -> frozenset[str]:
    """What may have changed since a run was stopped, as a set of words.

    >>> sorted(allowed_changes("world")), sorted(allowed_changes(["device", "world"]))
    (['world'], ['device', 'world'])
    """
    for change in (allowed := frozenset([allow] if isinstance(allow, str) else allow)):
        if change == "data":
            raise UsageError("allow: changed data are another run, and the old one stays as it is. Leave `data` out.")
        if change not in CHANGES:
            raise UsageError(f"allow: {change!r} cannot be allowed to change; {', '.join(sorted(CHANGES))} can.")
    return allowed


def numbers(name: str, values: Any) -> Tensor | None:
    """`indices` or `weights` as a tensor; None for none.

    >>> numbers("indices", [3, 1])
    tensor([3, 1])
    >>> numbers("weights", "all")
    Traceback (most recent call last):
    evenly.errors.UsageError: weights = 'all' are not numbers: give a list, an array or a tensor of them.
    """
    if values is None:
        return None
    try:
        given = as_tensor(values)
    except (TypeError, ValueError, RuntimeError):
        raise UsageError(
            f"{name} = {values!r:.60} are not numbers: give a list, an array or a tensor of them."
        ) from None
    if not given.numel():
        raise UsageError(f"{name} are empty: there is nothing to train on. Leave them out to train on all examples.")
    return given


def check_seeds(seeds: Any) -> None:
    """Raise unless these are several seeds, each given once.

    >>> check_seeds(3)
    Traceback (most recent call last):
    evenly.errors.UsageError: seeds = 3 is a number of seeds: give the seeds themselves, such as range(3).
    """
    if isinstance(seeds, int):
        raise UsageError(f"seeds = {seeds} is a number of seeds: give the seeds themselves, such as range({seeds}).")
    if twice := [seed for seed, times in Counter(seeds).items() if times > 1]:
        raise UsageError(f"seed {twice[0]} is given twice: a run of the same seed is the same run. Give each once.")
