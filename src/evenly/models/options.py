"""The options of a model: read from the signature of its maker, and checked before anything is built."""

import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from evenly.errors import UsageError, did_you_mean
from evenly.typed.values import Bounds, convert

Count = Annotated[int, Bounds(least=1)]
Depth = Annotated[int, Bounds(least=1, most=10_000)]  # layers, which are made one by one
Share = Annotated[float, Bounds(least=0, below=1)]
Positive = Annotated[float, Bounds(above=0)]


def options_of(maker: Callable[..., Any]) -> dict[str, inspect.Parameter]:
    """The options of a maker: its keyword-only parameters.

    >>> from evenly.models.mlp import MLP
    >>> {name: option.default for name, option in options_of(MLP).items()}
    {'width': 512, 'depth': 3, 'dropout': 0.1}
    """
    parameters = inspect.signature(maker).parameters
    return {name: p for name, p in parameters.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}


def check_options(model: str, maker: Callable[..., Any], options: Mapping[str, Any]) -> dict[str, Any]:
    """`options` with exactly the types and ranges that the maker's annotations ask for.

    >>> from evenly.models.mlp import MLP
    >>> check_options("mlp", MLP, {"width": 1e3})
    {'width': 1000}
    >>> check_options("mlp", MLP, {"dropout": 1.5})
    Traceback (most recent call last):
    evenly.errors.UsageError: mlp: dropout: expected a number of at least 0 and below 1, not 1.5. ...
    """
    parameters = options_of(maker)
    hints = get_type_hints(maker.__init__ if inspect.isclass(maker) else maker, include_extras=True)
    values = {}
    for option, value in options.items():
        if option not in parameters:
            raise UsageError(f"{model} has no option {option!r}. {did_you_mean(option, parameters)}")
        kind, bounds = _kind(hints[option])
        try:
            values[option] = convert(kind, value, path=option, bounds=bounds, example=parameters[option].default)
        except UsageError as error:
            raise UsageError(f"{model}: {error}") from None
    return values


def _kind(hint: Any) -> tuple[Any, Bounds]:
    if get_origin(hint) is Annotated:
        kind, bounds = get_args(hint)
        return kind, bounds
    return hint, Bounds()
