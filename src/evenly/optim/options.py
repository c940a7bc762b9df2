"""The options of every rule, and the checks of their values and combinations."""

import inspect
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any, Literal, TypedDict

from torch import Tensor

from evenly.errors import UsageError, did_you_mean
from evenly.numbers import is_whole, number
from evenly.optim.rule import Rule
from evenly.optim.select import Where


class Options(TypedDict, total=False):
    """The options that every rule takes; `DisplacedGradient` documents them."""

    where: Where
    every: int
    fraction: float
    m: int | Literal["all"] | None
    weight_decay: float
    adaptive: bool
    eta: float
    adapt: str
    same_dropout: bool
    scaler: Any
    backward: Callable[[Tensor], Any] | None


#: Options that implementations of SAM that wrap an optimizer pass on to it.
OF_OPTIMIZERS = ("lr", "momentum", "nesterov", "dampening", "betas")


def refuse_unknown(kind: type, given: Iterable[str]) -> None:
    """Refuse options that a class does not take, and suggest the nearest that it does.

    >>> from evenly.optim import ASAM
    >>> refuse_unknown(ASAM, ["rho", "every", "etta"])
    Traceback (most recent call last):
    evenly.errors.UsageError: ASAM has no option 'etta'. Did you mean 'eta'?
    """
    known: set[str] = set(Options.__annotations__)
    for each in kind.__mro__:
        if (init := vars(each).get("__init__")) is None:
            continue
        parameters = inspect.signature(init).parameters.values()
        known |= {p.name for p in parameters if p.kind is not p.VAR_KEYWORD}
        # A class that passes on `Options` lists its other options itself; one that passes on **anything inherits more.
        if not any(p.kind is p.VAR_KEYWORD and "Options" not in str(p.annotation) for p in parameters):
            break
    for name in given:
        if name not in known:
            called = kind.__name__
            if name == "rho" and "sigma" in known:
                raise UsageError(f"{called} has no radius rho but a deviation sigma: {called}(model, sigma=0.01)")
            if name in OF_OPTIMIZERS:
                raise UsageError(
                    f"{called} has no option {name!r}, which belongs to your optimizer: {called}(model) computes the "
                    f"gradient, and torch.optim.SGD(model.parameters(), {name}=…) takes the step."
                )
            raise UsageError(f"{called} has no option {name!r}. {did_you_mean(name, known - {'self', 'model'})}")


def refuse_positional(kind: type, given: Sequence[Any]) -> None:
    """Refuse anything but the model without a name, such as the optimizer that other implementations wrap.

    >>> from torch.optim import SGD
    >>> from evenly.optim import SAM
    >>> refuse_positional(SAM, ["model", SGD])
    Traceback (most recent call last):
    evenly.errors.UsageError: SAM(model, SGD): SAM wraps no optimizer. SAM(model, rho=…) computes the gradient by ...
    """
    init: Any = kind.__init__  # type: ignore[misc]  # of the class, whose `__new__` takes anything
    parameters = list(inspect.signature(init).parameters.values())[1:]
    unnamed = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    if len(given) <= len(unnamed) or any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return
    called, second = kind.__name__, given[1]
    if "optim" in (second if isinstance(second, type) else type(second)).__module__:
        name = second.__name__ if isinstance(second, type) else type(second).__name__
        raise UsageError(
            f"{called}(model, {name}): {called} wraps no optimizer. {called}(model, rho=…) computes the gradient by "
            "sam.backward(closure), and your optimizer takes the step."
        )
    raise UsageError(f"{called}(model, {second!r:.40}): give options by name, such as {called}(model, rho=0.05).")


def refuse_non_numbers(rule: type[Rule], given: Mapping[str, Any]) -> None:
    """Refuse settings of a rule that are no finite numbers.

    >>> refuse_non_numbers(Rule, {"eta": "x"})
    Traceback (most recent call last):
    evenly.errors.UsageError: eta='x' is not a finite number
    """
    for setting in fields(rule):
        value = given.get(setting.name)
        if value is not None and setting.type in (int, float, float | None) and not math.isfinite(number(value)):
            raise UsageError(f"{setting.name}={value!r} is not a finite number")


def check(
    rule: Rule,
    *,
    every: int,
    fraction: float,
    m: int | str | None,
    weight_decay: float,
    adaptive: bool,
    same_dropout: bool,
) -> None:
    """Refuse options with impossible values, alone or in combination.

    >>> check(Rule(), every=0, fraction=1.0, m=None, weight_decay=0.0, adaptive=False, same_dropout=False)
    Traceback (most recent call last):
    evenly.errors.UsageError: every=0 is not a number of steps: give 1 (each step) or more
    """
    if not is_whole(every):
        raise UsageError(f"every={every!r} is not a number of steps: give 1 (each step) or more")
    if not 0 < number(fraction) <= 1:
        raise UsageError(f"fraction={fraction!r} of a batch cannot be taken: give a number in (0, 1]")
    if m not in (None, "all") and not is_whole(m):
        raise UsageError(
            f'm={m!r} is not a number of examples: give 1 or more, None for the batch of one process, or "all" for the '
            "batch of all processes"
        )
    if not 0 <= number(weight_decay) < math.inf:
        raise UsageError(f"weight_decay={weight_decay!r} in the ascent: give a finite number, 0 or more")
    if weight_decay and not rule.climbs:
        raise UsageError(f"weight_decay={weight_decay}: this rule climbs no objective; leave weight_decay out")
    if adaptive and not (rule.normalises and rule.climbs):
        raise UsageError("adaptive=True stretches the ball that a rule climbs in, and this rule has none; leave it out")
    if fraction < 1 and not rule.needs_gradient:
        raise UsageError(f"fraction={fraction}: this rule makes no pass before it moves; leave fraction out")
    if fraction < 1 and same_dropout:
        raise UsageError("same_dropout with fraction < 1: masks of different sizes cannot be the same; drop one")
