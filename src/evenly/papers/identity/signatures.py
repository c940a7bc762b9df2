"""The defaults that a call relies on: the parameters that it leaves out, read from the source of what it calls."""

import ast
from dataclasses import dataclass

from evenly.papers.identity.source import FUNCTIONS, Sources, Thing


@dataclass(frozen=True)
class Parameter:
    """A parameter of something that can be called, and the expression of its default, in the module it stands in."""

    name: str
    default: ast.expr | None
    module: str
    positional: bool = True


def parameters(sources: Sources, thing: Thing) -> list[Parameter]:
    """The parameters of a function, a class or a method; empty if the source does not say."""
    definition = next(iter(sources.definition(thing.top)), None)
    if isinstance(definition, ast.ClassDef):
        if not thing.attributes:
            return _constructor(sources, thing.module, definition)
        return _method(sources, thing.module, definition, thing.attributes[0]) if len(thing.attributes) == 1 else []
    if isinstance(definition, FUNCTIONS) and not thing.attributes:
        return _of_function(definition, thing.module)
    return []


def defaults_used(takes: list[Parameter], call: ast.Call | None) -> list[Parameter]:
    """The parameters whose defaults a call uses; all of them if the function is passed on without being called.

    >>> call = ast.parse("f(1, b=2)").body[0].value
    >>> [each.name for each in defaults_used([Parameter(x, ast.Constant(0), "m") for x in "abc"], call)]
    ['c']
    """
    left = [each for each in takes if each.default is not None]
    if call is None:
        return left
    given = {keyword.arg for keyword in call.keywords}
    if not any(isinstance(each, ast.Starred) for each in call.args):
        given |= {each.name for each in [each for each in takes if each.positional][: len(call.args)]}
    return [each for each in left if each.name not in given]


def _of_function(node: ast.FunctionDef | ast.AsyncFunctionDef, module: str, *, skip: int = 0) -> list[Parameter]:
    given = node.args
    places = [*given.posonlyargs, *given.args]
    defaults: list[ast.expr | None] = [*([None] * (len(places) - len(given.defaults))), *given.defaults]
    parameters = [Parameter(each.arg, default, module) for each, default in zip(places, defaults, strict=True)][skip:]
    keywords = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return parameters + [Parameter(each.arg, default, module, positional=False) for each, default in keywords]


def _method(sources: Sources, module: str, node: ast.ClassDef, name: str) -> list[Parameter]:
    for statement in node.body:
        if isinstance(statement, FUNCTIONS) and statement.name == name:
            static = any(isinstance(each, ast.Name) and each.id == "staticmethod" for each in statement.decorator_list)
            return _of_function(statement, module, skip=0 if static else 1)
    for base, where in _bases(sources, module, node):
        if method := _method(sources, where, base, name):
            return method
    return []


def _constructor(sources: Sources, module: str, node: ast.ClassDef) -> list[Parameter]:
    """The parameters of `__init__`, or the fields of a dataclass, those of its bases first."""
    if constructor := _method(sources, module, node, "__init__"):
        return constructor
    fields: dict[str, Parameter] = {}
    for base, where in _bases(sources, module, node):
        fields |= {each.name: each for each in _constructor(sources, where, base)}
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            name = statement.target.id
            fields[name] = Parameter(name, _field_default(statement.value), module)
    return list(fields.values())


def _field_default(value: ast.expr | None) -> ast.expr | None:
    """The default in `field(default=x)` and in `setting(x, "what it is")`, whose other arguments are not values."""
    if not isinstance(value, ast.Call) or not isinstance(value.func, ast.Name):
        return value
    if value.func.id == "setting":
        return value.args[0] if value.args else None
    if value.func.id == "field":
        return next((each.value for each in value.keywords if each.arg in ("default", "default_factory")), None)
    return value


def _bases(sources: Sources, module: str, node: ast.ClassDef) -> list[tuple[ast.ClassDef, str]]:
    bases = []
    for base in node.bases:
        if isinstance(base, ast.Name) and (thing := sources.find(f"{module}:{base.id}")):
            definition = next(iter(sources.definition(thing)), None)
            if isinstance(definition, ast.ClassDef):
                bases.append((definition, thing.module))
    return bases
