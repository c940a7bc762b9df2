"""A syntax tree without the parts that affect no value: names of local variables, docstrings, annotations, layout.

The form is nested lists of plain values, made field by field rather than by `ast.dump`, whose text differs between
versions of Python. Local variables are numbered in the order of occurrence; the caller resolves names from outside of
the tree.
"""

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evenly.papers.identity.source import Bound

# Fields that do not affect the computation: the use of a name follows from its position.
SILENT = {"ctx", "annotation", "returns", "type_comment", "type_params", "type_ignores", "kind"}
CAPTURES = {"ExceptHandler": "name", "MatchAs": "name", "MatchStar": "name", "MatchMapping": "rest"}
Reference = Callable[[str, ast.Call | None], Any]  # a dotted name from outside of the tree, and the call it stands in


@dataclass
class Scope:
    """The names that a function, class or comprehension binds, and the numbers of those met so far."""

    bound: Bound
    is_class: bool = False
    numbers: dict[str, int] = field(default_factory=dict)


class NormalForm:
    """The normal form of trees of one module: `reference` says what a name that no scope binds stands for.

    >>> texts = ("def f(x): y = x; return y", "def g(x):\\n z = x\\n return z", "def g(x): return x")
    >>> one, same, other = (NormalForm(lambda name, call: name).function(ast.parse(text).body[0]) for text in texts)
    >>> one == same, one == other
    (True, False)
    """

    def __init__(self, reference: Reference, *, text: Callable[[str], Any] = lambda value: None) -> None:
        self.reference = reference
        self.text = text  # the target of a piece of text, None if it is just text
        self.scopes: list[Scope] = []
        self.methods: list[ast.Call] = []  # method calls on objects known only at run time
        self._met = 0

    def of(self, node: Any) -> Any:
        """The normal form of a node, of a list of nodes, or of a plain value."""
        if isinstance(node, list):
            return [self.of(each) for each in node if not self._idle(each)]
        if not isinstance(node, ast.AST):
            return node
        special = getattr(self, f"_{type(node).__name__.lower()}", None)
        return special(node) if special else self._any(node)

    def function(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, *, defaults: bool = True) -> Any:
        """A function without its name; without `defaults`, those of its parameters are left to who calls it."""
        given = node.args
        outer = [self.of(getattr(node, "decorator_list", []))]
        if defaults:
            outer += [self.of(given.defaults), [self.of(each) if each else None for each in given.kw_defaults]]
        body = node.body if isinstance(node.body, list) else [node.body]
        every = [*given.posonlyargs, *given.args, given.vararg, *given.kwonlyargs, given.kwarg]
        bound = Bound.by(body)
        bound.names |= {each.arg for each in every if each}
        self.scopes.append(Scope(bound))
        names = [each and [each.arg, self._number(each.arg, self.scopes[-1])] for each in every]
        shape = [len(given.posonlyargs), len(given.args), bool(given.vararg)]
        made = ["function", isinstance(node, ast.AsyncFunctionDef), outer, shape, names, self.of(body)]
        self.scopes.pop()
        return made

    def dotted(self, node: ast.AST) -> str | None:
        """The dotted name that an expression spells, with imports inside of functions followed; None for a variable."""
        attributes: list[str] = []
        while isinstance(node, ast.Attribute):
            attributes.insert(0, node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return None
        scope = self._scope_of(node.id)
        if scope is None:
            return ".".join((node.id, *attributes))
        if node.id in scope.bound.imports:
            return ".".join((f"={scope.bound.imports[node.id]}", *attributes))
        return None

    def _any(self, node: ast.AST) -> list[Any]:
        made: list[Any] = [type(node).__name__]
        for name, value in ast.iter_fields(node):
            if name in SILENT or value is None or value == []:
                continue
            captured = CAPTURES.get(type(node).__name__) == name
            made.append([name, self._variable(value) if captured else self.of(value)])
        return made

    def _name(self, node: ast.Name) -> Any:
        dotted = self.dotted(node)
        if dotted is not None and not isinstance(node.ctx, ast.Load):
            return ["target"]  # at the top of a module, where only the assigned value counts
        return self._variable(node.id) if dotted is None else self.reference(dotted, None)

    def _attribute(self, node: ast.Attribute) -> Any:
        dotted = self.dotted(node)
        return ["Attribute", self.of(node.value), node.attr] if dotted is None else self.reference(dotted, None)

    def _call(self, node: ast.Call) -> Any:
        dotted = self.dotted(node.func)
        if dotted is None and isinstance(node.func, ast.Attribute):
            self.methods.append(node)
        called = self.of(node.func) if dotted is None else self.reference(dotted, node)
        keywords = sorted(([each.arg or "**", self.of(each.value)] for each in node.keywords), key=lambda each: each[0])
        return ["Call", called, self.of(node.args), keywords]

    def _constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, str) and (target := self.text(node.value)) is not None:
            return target
        return ["Constant", type(node.value).__name__, repr(node.value)]

    def _annassign(self, node: ast.AnnAssign) -> Any:
        value = [["value", self.of(node.value)]] if node.value else []
        return ["Assign", ["targets", [self.of(node.target)]], *value]

    def _functiondef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> Any:
        return [self._variable(node.name), self.function(node)]

    _asyncfunctiondef = _functiondef

    def _lambda(self, node: ast.Lambda) -> Any:
        return self.function(node)

    def _classdef(self, node: ast.ClassDef) -> Any:
        name = self._variable(node.name) if self.scopes else None
        outer = [self.of(node.decorator_list), self.of(node.bases), self.of(node.keywords)]
        self.scopes.append(Scope(Bound.by(node.body), is_class=True))
        body = self.of(node.body)
        self.scopes.pop()
        return ["class", name, outer, body]

    def _comprehension(self, node: Any) -> Any:
        first = self.of(node.generators[0].iter)  # which is evaluated outside
        targets = Bound.by(each.target for each in node.generators)
        self.scopes.append(Scope(targets))
        loops = [
            [each.is_async, self.of(each.target), self.of(each.iter) if place else first, self.of(each.ifs)]
            for place, each in enumerate(node.generators)
        ]
        results = [self.of(getattr(node, name)) for name in ("key", "value", "elt") if hasattr(node, name)]
        self.scopes.pop()
        return [type(node).__name__, loops, results]

    _listcomp = _setcomp = _dictcomp = _generatorexp = _comprehension

    def _scope_of(self, name: str) -> Scope | None:
        """The innermost scope that binds a name; from inside a method the names of its class are not seen."""
        for depth, scope in enumerate(reversed(self.scopes)):
            seen = not scope.is_class or depth == 0
            if seen and (name in scope.bound.names or name in scope.bound.imports):
                return scope
        return None

    def _variable(self, name: str) -> Any:
        scope = self._scope_of(name)
        if scope is None:
            return ["unbound", name]
        return ["field", name] if scope.is_class else self._number(name, scope)

    def _number(self, name: str, scope: Scope) -> list[Any]:
        if name not in scope.numbers:
            scope.numbers[name] = self._met
            self._met += 1
        return ["variable", scope.numbers[name]]

    def _idle(self, node: Any) -> bool:
        """Whether a statement computes nothing: a docstring, `pass`, an import (its uses count), a bare annotation."""
        if isinstance(node, ast.Expr):
            return isinstance(node.value, ast.Constant)
        if isinstance(node, ast.AnnAssign) and node.value is None:
            return not (self.scopes and self.scopes[-1].is_class)  # in a class it may be a dataclass's field
        return isinstance(node, ast.Pass | ast.Import | ast.ImportFrom | ast.Global | ast.Nonlocal)
