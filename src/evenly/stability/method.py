"""The settings of a method's optimizer and ascent that matter to linear stability."""

from typing import Any, TypedDict

from evenly.stability.gradient_map import Ascent
from evenly.stability.optimizer import LinearOptimizer
from evenly.stability.same_batch import Crossing
from evenly.stability.sampling import Sampling


class Method(TypedDict, total=False):
    """The keywords that every threshold takes; `mean_square_threshold` says what each means."""

    sampling: Sampling
    rho_over_alpha: float
    ascent: Ascent
    m: int | None
    crossing: Crossing
    momentum: float
    nesterov: bool
    dampening: float
    weight_decay: float
    decoupled: bool


_OPTIMIZER = ("momentum", "nesterov", "dampening", "weight_decay", "decoupled")


def split_method(method: Method) -> tuple[LinearOptimizer, dict[str, Any]]:
    """The optimizer's settings, and the rest, which `gradient_map` takes.

    >>> split_method({"momentum": 0.9, "sampling": "with"})[1]
    {'sampling': 'with'}
    """
    settings: dict[str, Any] = dict(method)
    optimizer = LinearOptimizer(**{name: settings.pop(name) for name in _OPTIMIZER if name in settings})
    return optimizer, settings
