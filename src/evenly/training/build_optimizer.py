"""The optimizer and the SAM rule of a recipe, made for a model; settings that they do not take are refused."""

import inspect
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import torch
from torch import nn

from evenly.errors import UsageError, did_you_mean
from evenly.optim.cost import rule_class
from evenly.recipe import Optimizer, Recipe
from evenly.rules import RULES
from evenly.training.distributed import World

# LBFGS evaluates the loss many times a step and SparseAdam needs sparse gradients; the loop supports neither.
_OTHER_LOOPS = {"Optimizer", "LBFGS", "SparseAdam"}


def optimizer_class(name: str) -> type[torch.optim.Optimizer]:
    """The optimizer of `torch.optim` with this name, in any case."""
    known = {
        other.lower(): kind
        for other, kind in vars(torch.optim).items()
        if inspect.isclass(kind) and issubclass(kind, torch.optim.Optimizer) and other not in _OTHER_LOOPS
    }
    if name.lower() not in known:
        raise UsageError(f"there is no optimizer {name!r}. {did_you_mean(name.lower(), [*known, *RULES])}")
    return known[name.lower()]


def default_lr(name: str) -> float:
    """The default learning rate of an optimizer: torch's, but the recipe's for SGD.

    >>> default_lr("sgd"), default_lr("adamw")
    (0.1, 0.001)
    """
    if name.lower() == "sgd":
        return Optimizer().lr
    return float(inspect.signature(optimizer_class(name)).parameters["lr"].default)


def build_optimizer(recipe: Recipe, model: nn.Module) -> torch.optim.Optimizer:
    """The optimizer of any `torch.optim` name, with the settings it takes.

    >>> build_optimizer(Recipe(), nn.Linear(2, 2)).defaults["momentum"]
    0.9
    """
    chosen = recipe.optimizer
    kind = optimizer_class(chosen.name)
    takes = inspect.signature(kind).parameters
    if "weight_decay" not in takes and chosen.weight_decay:
        raise UsageError(f"optimizer.weight_decay={chosen.weight_decay:g}: {chosen.name} has none. Set it to 0.")
    if "nesterov" not in takes and chosen.nesterov:
        raise UsageError(f"optimizer.nesterov=true: {chosen.name} has no such momentum. Set it to false.")
    if "momentum" not in takes and chosen.momentum not in (0.0, Optimizer().momentum):
        raise UsageError(f"optimizer.momentum={chosen.momentum:g}: {chosen.name} has no such setting. Leave it out.")
    named = ("lr", "weight_decay", "momentum", "nesterov")
    given: dict[str, Any] = {name: getattr(chosen, name) for name in named if name in takes}
    for option in chosen.options:
        if option not in takes:
            raise UsageError(f"optimizer.options: {chosen.name} has no {option!r}. {did_you_mean(option, takes)}")
    options = _tuples(chosen.options)
    if "fused" in takes and not options.keys() & _WAYS and _can_fuse(model):
        options["fused"] = True
    try:
        return kind(_groups(model, chosen.decay, chosen.weight_decay), **given, **options)
    except (TypeError, ValueError) as error:
        raise UsageError(f"optimizer: {chosen.name} refuses its settings: {error}.") from error


#: Torch's implementations of an update, which exclude one another.
_WAYS = {"fused", "foreach", "differentiable"}


def _can_fuse(model: nn.Module) -> bool:
    """Whether torch can update all parameters in one pass over memory, twice as fast as operator by operator.

    >>> _can_fuse(nn.Linear(2, 2)), _can_fuse(nn.EmbeddingBag(9, 2, sparse=True))
    (True, False)
    """
    plain = all(type(p) is nn.Parameter and p.is_floating_point() for p in model.parameters())
    devices = {p.device.type for p in model.parameters()}
    return plain and devices <= {"cpu", "cuda"} and not any(getattr(m, "sparse", False) for m in model.modules())


def build_ascent(recipe: Recipe, model: nn.Module, world: World, *, scaler: Any = None) -> Any:
    """The SAM rule of the recipe, or None for ordinary training.

    Seed, momentum and weight decay come from the recipe. The whole batch shares one displacement, over any number of
    processes, unless the options say otherwise.
    """
    chosen = recipe.ascent
    if chosen.rule == "none":
        return None
    kind = rule_class(chosen.rule)
    takes = inspect.signature(kind).parameters
    adam = "betas" in inspect.signature(optimizer_class(recipe.optimizer.name)).parameters
    betas = recipe.optimizer.options.get("betas", (0.9, 0.999))
    shared = {
        "seed": recipe.seed,
        "momentum": betas[0] if adam else recipe.optimizer.momentum,
        "weight_decay": 0.0 if adam else recipe.optimizer.weight_decay,
    }
    own = {field.name for field in fields(kind.rule_type)}
    given: dict[str, Any] = {name: value for name, value in shared.items() if name in own}
    given["rho" if "rho" in takes else "sigma"] = chosen.radius
    if world.size > 1:
        given["m"] = "all"
    if scaler is not None:
        given["scaler"] = scaler
    try:
        return kind(model, **(given | _tuples(chosen.options)))
    except TypeError as error:
        raise UsageError(f"ascent.options: {chosen.rule} refuses {dict(chosen.options)}: {error}.") from error


def _groups(model: nn.Module, decay: str, weight_decay: float) -> Any:
    """All parameters in one group; or biases and normalisation in a second one without weight decay."""
    params = [p for p in model.parameters() if p.requires_grad]
    if decay == "all" or not weight_decay:
        return params
    return [
        {"params": [p for p in params if p.ndim > 1]},
        {"params": [p for p in params if p.ndim <= 1], "weight_decay": 0.0},
    ]


def _tuples(options: Mapping[str, Any]) -> dict[str, Any]:
    """Turn the lists of recipes into the tuples that torch expects (`betas`)."""
    return {name: tuple(value) if isinstance(value, list) else value for name, value in options.items()}
