"""The source of a package, parsed but never imported: the names that its modules bind, and how to resolve dotted names.

Files are parsed once and only on demand, and torch is never imported.
"""

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

Definition = ast.stmt
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPED = (*FUNCTIONS, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


@dataclass(frozen=True)
class Thing:
    """The target of a dotted name: a name at the top of a module, and attributes of it.

    `name` is empty for the module itself.
    """

    module: str
    name: str
    attributes: tuple[str, ...] = ()

    @property
    def dotted(self) -> str:
        """Its whole name."""
        return ".".join(filter(None, (self.module, self.name, *self.attributes)))

    @property
    def top(self) -> "Thing":
        """The name at the top of the module, without attributes."""
        return Thing(self.module, self.name)


@dataclass
class Bound:
    """The names that statements bind: by definition or assignment, and by import, with what is imported."""

    names: set[str] = field(default_factory=set)
    imports: dict[str, str] = field(default_factory=dict)
    elsewhere: set[str] = field(default_factory=set)  # declared global or nonlocal

    @classmethod
    def by(cls, nodes: Iterable[ast.AST]) -> "Bound":
        """What these nodes bind in the scope they stand in; functions and classes inside have scopes of their own."""
        bound = cls()
        waiting = list(nodes)
        while waiting:
            bound._add(waiting.pop(), waiting)
        bound.names -= bound.elsewhere | bound.imports.keys()
        return bound

    def _add(self, node: ast.AST, waiting: list[ast.AST]) -> None:
        if isinstance(node, SCOPED):
            self.names.add(node.name)
        elif isinstance(node, COMPREHENSIONS):
            # Its own variables stay inside, but those of `:=` belong to the enclosing scope.
            self.names |= {each.target.id for each in ast.walk(node) if isinstance(each, ast.NamedExpr)}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            self.imports |= imported_names(node)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            self.elsewhere |= set(node.names)
        elif isinstance(node, ast.Name):
            if not isinstance(node.ctx, ast.Load):
                self.names.add(node.id)
        elif not isinstance(node, ast.Lambda):
            captured = getattr(node, "rest" if isinstance(node, ast.MatchMapping) else "name", None)
            if isinstance(captured, str):
                self.names.add(captured)
            waiting += ast.iter_child_nodes(node)


def imported_names(node: ast.Import | ast.ImportFrom) -> dict[str, str]:
    """The names that an import binds, and the target of each: a module, or a name in one after a colon.

    >>> imported_names(ast.parse("from a.b import c as d").body[0])
    {'d': 'a.b:c'}
    """
    if isinstance(node, ast.ImportFrom):
        return {alias.asname or alias.name: f"{node.module}:{alias.name}" for alias in node.names}
    return {
        alias.asname or alias.name.partition(".")[0]: alias.name if alias.asname else alias.name.partition(".")[0]
        for alias in node.names
    }


class Module:
    """One parsed file: what it imports, and the statements that define each of its names."""

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.imports: dict[str, str] = {}
        self.definitions: dict[str, list[Definition]] = {}
        for statement in _flat(ast.parse(text).body):
            bound = Bound.by([statement])
            self.imports |= bound.imports
            for each in bound.names:
                self.definitions.setdefault(each, []).append(statement)


class Sources:
    """The modules of the package in folder `root`, parsed on demand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: dict[str, Module | None] = {}

    @cached_property
    def package(self) -> str:
        """The name of the package."""
        return self.root.name

    def module(self, name: str) -> Module | None:
        """The module of that dotted name; None where there is none."""
        if name not in self._modules:
            parts = name.split(".")
            path = self.root.joinpath(*parts[1:])
            files = [path / "__init__.py", path.with_suffix(".py") if len(parts) > 1 else path / "__init__.py"]
            file = next((each for each in files if parts[0] == self.package and each.is_file()), None)
            self._modules[name] = None if file is None else Module(name, file.read_text(encoding="utf-8"))
        return self._modules[name]

    def find(self, name: str, *, trail: tuple[str, ...] = ()) -> Thing | None:
        """Resolve `module:name` or a dotted name of the package to its definition."""
        module, colon, rest = name.partition(":")
        if name in trail:
            return None
        attributes = rest.split(".") if colon else []
        while self.module(module) is None:
            module, dot, last = module.rpartition(".")
            if not dot:
                return None
            attributes.insert(0, last)
        return self._inside(module, attributes, (*trail, name))

    def _inside(self, name: str, attributes: list[str], trail: tuple[str, ...]) -> Thing | None:
        module = self.module(name)
        if module is None or not attributes:
            return Thing(name, "") if module else None
        first, rest = attributes[0], attributes[1:]
        if first in module.definitions:
            return Thing(name, first, tuple(rest))
        if first in module.imports:  # before a module of the same name, as in Python
            target = module.imports[first]
            return self.find(target + "".join(f".{each}" for each in rest), trail=trail)
        return self._inside(f"{name}.{first}", rest, trail)

    def definition(self, thing: Thing) -> list[Definition]:
        """The statements that define a name at the top of a module."""
        module = self.module(thing.module)
        return module.definitions.get(thing.name, []) if module else []


def _flat(statements: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
    """The statements of a module, those under `if` and `try` too."""
    for statement in statements:
        if isinstance(statement, ast.If | ast.Try):
            yield from _flat(statement.body)
            yield from _flat(statement.orelse)
            for handler in getattr(statement, "handlers", []):
                yield from _flat(handler.body)
        else:
            yield statement
