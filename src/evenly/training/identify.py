"""Compute the identity of a run from the arguments of `train`: recipe, data, and all else that decides its result."""

import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from torch import Tensor

from evenly.data import Splits
from evenly.data.contents import digests
from evenly.data.fingerprints import fingerprint
from evenly.data.numpy_memory import as_tensor
from evenly.errors import DataError, UsageError
from evenly.recipe import Recipe, identity_settings, to_mapping
from evenly.records.identity import Identity
from evenly.training.distributed import World
from evenly.training.function_digest import function_digest

_LIBRARIES = {"site-packages", "dist-packages"}  # whose versions are in the environment's stamp


def identify(
    recipe: Recipe,
    data: Splits,
    *,
    indices: Tensor | Sequence[int] | None = None,
    weights: Tensor | Sequence[float] | None = None,
    enough: Callable[..., Any] | None = None,
) -> Identity:
    """The identity of a run of this recipe on these data.

    >>> from evenly.data import load
    >>> one, other = (identify(Recipe(), load("parity", seed=seed, dim=5)) for seed in (0, 1))
    >>> one.id == identify(Recipe(), load("parity", dim=5)).id, one.id == other.id
    (True, False)
    """
    given = {}
    for name, values in (("indices", indices), ("weights", weights)):
        if values is not None:
            tensor = as_tensor(values)
            given[name] = fingerprint([str(tensor.dtype), tensor])
    if enough is not None:
        given["rule for stopping"] = function_digest(enough)
    if recipe.model.weights is not None and os.path.isfile(recipe.model.weights):
        file = Path(recipe.model.weights)
        given["first weights"] = digests(file.parent, [file.name])[0]
    if (source := _source_of(recipe.model.name)) is not None:
        given["model code"] = digests(source.parent, [source.name])[0]
    return Identity(identity_settings(recipe), to_mapping(recipe, defaults=False), data.identity(), given)


def agree(world: World, make: Callable[[], Identity]) -> Identity:
    """The identity on which all processes of a run agree; raises in each of them where they do not.

    The leading process computes it first, so that the others find the digests of files cached.
    """
    first = make() if world.leads else None
    world.wait()
    identity = first or make()
    leading = world.broadcast(identity.record())
    (differs,) = world.any_of(leading != identity.record())
    if differs:
        raise DataError(
            "the processes of this run do not see the same data or code: give each the same files. "
            f"Process {world.rank} sees data with fingerprint {identity.data['fingerprint']}, the leading one "
            f"{leading['data']['fingerprint']}."
        )
    return identity


def _source_of(model: str) -> Path | None:
    """The file that defines `module:function`, found without running any of it; None for a library.

    >>> _source_of("torch.nn:Linear")
    """
    module, colon, _ = model.partition(":")
    if not colon or module in ("timm", "torchvision"):
        return None
    if module == "__main__":
        return _program(model)
    places: Any = [*sys.path, os.getcwd()]
    spec = None
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        spec = PathFinder.find_spec(".".join(parts[:depth]), places)
        if spec is None:
            return None
        places = spec.submodule_search_locations
    source = Path(spec.origin) if spec is not None and spec.origin is not None else None
    if source is None or not source.is_file() or _LIBRARIES & set(source.parts):
        return None
    return source


def _program(model: str) -> Path:
    """The file of the program that runs, which defines the model; a notebook or a shell has none, and is refused."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    if file is None or not os.path.isfile(file):
        raise UsageError(
            f"the code of model {model!r} is in no file, as in a notebook or an interactive shell, so that a changed "
            "network would have the run of the old one. Put it in a module of its own: networks.py, named "
            f"networks:{model.partition(':')[2]}."
        )
    return Path(file)
