"""Which parameters are displaced: all, or those chosen by module, by the type of module, by name or by a function."""

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, cast

from torch import Tensor, nn

from evenly.errors import UsageError, did_you_mean

Named = list[tuple[str, Tensor]]
Where = str | type[nn.Module] | nn.Module | Callable[[str, Tensor], bool] | Iterable[Any] | None

#: The layers that SAM-ON displaces and nothing else (Müller et al., 2023): `SAM(model, where=NORMALISATION)`.
NORMALISATION: tuple[type[nn.Module], ...] = (
    nn.modules.batchnorm._BatchNorm,
    nn.modules.instancenorm._InstanceNorm,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.RMSNorm,
)


class Place(str):
    """The name of a parameter that was given without one: its place."""

    __slots__ = ()


def named_parameters(model: nn.Module | Iterable[Any]) -> Named:
    """Name and tensor of every parameter, each once; parameters given without a model are named by their place.

    Optimizer-style groups (dicts with "params") and (name, parameter) pairs are taken too.

    >>> [name for name, _ in named_parameters(nn.Linear(2, 1))]
    ['weight', 'bias']
    >>> w = nn.Parameter(nn.Linear(2, 1).weight.data)
    >>> [name for name, _ in named_parameters([{"params": [w]}, w])]
    ['0']
    """
    if isinstance(model, nn.Module):
        # torch.compile puts a name of its own before those of the model.
        named_by_model = model.named_parameters()
        pairs: Iterable[tuple[str, Any]] = ((name.replace("_orig_mod.", ""), p) for name, p in named_by_model)
    elif isinstance(model, Tensor):
        raise UsageError("got one tensor where a model or an iterable of parameters was expected: pass [tensor]")
    else:
        pairs = _unpack(model)
    seen: set[int] = set()
    named: Named = []
    for name, parameter in pairs:
        if not isinstance(parameter, Tensor):
            raise UsageError(
                f"got {type(parameter).__name__} among the parameters: pass a model, or model.parameters()"
            )
        if id(parameter) not in seen:
            seen.add(id(parameter))
            named.append((name, parameter))
    if not any(parameter.requires_grad for _, parameter in named):
        raise UsageError(
            f"none of the {len(named)} parameters needs a gradient: call model.requires_grad_(True), "
            "and pass model.parameters() afresh (a generator is empty after its first use)"
        )
    return named


def as_reusable(model: nn.Module | Tensor | Iterable[Any]) -> Any:
    """The model, or the parameters as a list that can be iterated twice, and so can those of every group in it.

    Generators in groups are replaced by lists in place, as by torch's optimizers: a group may be passed to both.

    >>> as_reusable(None)
    Traceback (most recent call last):
    evenly.errors.UsageError: got NoneType where a model or its parameters were expected: pass the model...
    """
    if isinstance(model, nn.Module | Tensor):
        return model
    if not isinstance(model, Iterable):
        raise UsageError(
            f"got {type(model).__name__} where a model or its parameters were expected: pass the model, or "
            "model.parameters()"
        )
    items = list(model)
    for item in items:
        if isinstance(item, dict):
            inside = item.get("params")
            if not isinstance(inside, Iterable):
                raise UsageError(
                    f"a parameter group with {', '.join(map(repr, item)) or 'nothing'} has no parameters: give "
                    '{"params": model.parameters(), ...}'
                )
            if not isinstance(inside, Tensor):
                item["params"] = list(inside)
    return items


def select(model: nn.Module | Iterable[Any], named: Named, where: Where) -> Named:
    """The parameters that `where` chooses: None for all, a module, a type of module, a name pattern, or a function.

    A name pattern is a shell pattern over parameter names (`layer4.*`, `*.weight`); several choices in a list or
    tuple are united.

    >>> net = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2), nn.Linear(2, 1))
    >>> [name for name, _ in select(net, named_parameters(net), NORMALISATION)]
    ['1.weight', '1.bias']
    >>> [name for name, _ in select(net, named_parameters(net), ["2.*", "*.bias"])]
    ['0.bias', '1.bias', '2.weight', '2.bias']
    """
    if where is None:
        return named
    several = isinstance(where, Iterable) and not isinstance(where, str | nn.Module | type)
    choices: list[Any] = list(cast(Iterable[Any], where)) if several else [where]
    chosen: set[int] = set()
    known = {id(p) for _, p in named}
    for choice in choices:
        matches = {id(p) for p in _matches(model, named, choice)} & known
        # A pattern that matches nothing is a typo; a type that does not occur is one of several that might.
        if not matches and (isinstance(choice, str) or len(choices) == 1):
            names = [name for name, _ in named]
            hint = did_you_mean(choice, names) if isinstance(choice, str) else f"Parameters: {', '.join(names)}."
            shown = type(choice).__name__ if isinstance(choice, nn.Module) else repr(choice)
            raise UsageError(f"where={shown} selects no parameters of the model. {hint}")
        chosen |= matches
    if not chosen:
        raise UsageError(f"where={where!r} selects no parameters of the model")
    return [(name, p) for name, p in named if id(p) in chosen]


def _matches(model: nn.Module | Iterable[Any], named: Named, choice: Any) -> Iterator[Tensor]:
    if isinstance(choice, str):
        yield from (p for name, p in named if fnmatchcase(name, choice))
    elif isinstance(choice, nn.Module):
        yield from choice.parameters()
    elif isinstance(choice, type):
        if not isinstance(model, nn.Module):
            raise UsageError(f"where={choice.__name__} chooses by the type of module: pass the model, not parameters")
        for module in model.modules():
            if isinstance(module, choice):
                yield from module.parameters(recurse=False)
    elif callable(choice):
        yield from (p for name, p in named if choice(name, p))
    else:
        raise UsageError(
            f"where={choice!r} is a {type(choice).__name__}: pass a name pattern, a module, a type of module, "
            "a function of (name, parameter), or a list of these"
        )


def _unpack(parameters: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    place = 0
    for item in parameters:
        for each in _members(item) if isinstance(item, dict) else [item]:
            if isinstance(each, tuple) and len(each) == 2 and isinstance(each[0], str):
                yield each
            else:
                yield Place(place), each
            place += 1


def group_radii(model: nn.Module | Iterable[Any]) -> list[tuple[dict[str, Any], list[Tensor]]]:
    """The parameter groups with a radius of their own, and their parameters.

    >>> w = nn.Parameter(nn.Linear(1, 1).weight.data)
    >>> [group["rho"] for group, _ in group_radii([{"params": [w], "rho": 0.1}])]
    [0.1]
    """
    if isinstance(model, nn.Module | Tensor):
        return []
    members = [
        (item, [p[1] if isinstance(p, tuple) else p for p in _members(item)])
        for item in model
        if isinstance(item, dict)
    ]
    groups = [(item, inside) for item, inside in members if item.get("rho") is not None]
    ids = [id(p) for _, inside in members for p in {id(p): p for p in inside}.values()]
    if groups and len(set(ids)) < len(ids):
        raise UsageError(
            "a parameter is in two parameter groups, so that its radius is not known: put tied parameters into one "
            "group only, as for torch's optimizers"
        )
    return groups


def refuse_new_parameters(model: nn.Module | None, params: list[Tensor], called: str) -> None:
    """Refuse a model that has got other parameters since `called` was built from `params`: they would not be displaced.

    >>> net = nn.Sequential(nn.Linear(2, 1))
    >>> params = list(net.parameters())
    >>> net[0] = nn.Linear(2, 1, bias=False)
    >>> refuse_new_parameters(net, params, "SAM")
    Traceback (most recent call last):
    evenly.errors.UsageError: 1 parameters of the model were added or replaced after SAM was built (0.weight) and ...
    """
    known = set(map(id, params))
    now = model.named_parameters() if model is not None else ()
    new = [name for name, p in now if p.requires_grad and id(p) not in known]
    if new:
        raise UsageError(
            f"{len(new)} parameters of the model were added or replaced after {called} was built "
            f"({', '.join(new[:3])}{', …' * (len(new) > 3)}) and would not be displaced: build it after all that "
            "replaces parameters (new heads, adapters, parametrisations, fully_shard, load_state_dict(assign=True))"
        )


def _members(group: dict[str, Any]) -> list[Any]:
    inside = group.get("params", [])
    return [inside] if isinstance(inside, Tensor) else list(inside)
