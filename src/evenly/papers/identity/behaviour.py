"""A digest of what a function computes: unchanged by renaming or moving code, changed by another number or formula.

The digest covers the normal forms of a function and of everything under `evenly.papers` that it reaches: functions,
classes and constants, each represented by its own digest rather than its name. Of evenly's code outside of papers two
things count. The defaults that the work relies on are part of the digest, unless they are false in Python (None, False,
0, empty), so that a new option does not affect old calls. And the dotted names are listed beside it, since they may be
renamed: `same` compares two lists.

It cannot see a formula that changed outside of papers (tests compare the numbers of the ledger's smoke rows to guard
those), defaults of methods on objects that were made elsewhere, or later assignments into a constant.
"""

import ast
import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from evenly.errors import UsageError
from evenly.papers.identity.normal_form import NormalForm
from evenly.papers.identity.signatures import Parameter, defaults_used, parameters
from evenly.papers.identity.source import FUNCTIONS, Sources, Thing

# The interface between the work and its caller (Context, PartResult), which is not part of the computation.
CONTRACT = "experiment"
WORK = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_]\w*")


@dataclass(frozen=True)
class Identity:
    """The digest of a computation, and the names of evenly's code outside of papers that it uses."""

    digest: str
    outside: frozenset[str] = frozenset()


class Behaviour:
    """The computations of the code under `papers` in one copy of the package."""

    def __init__(self, root: Path) -> None:
        self.sources = Sources(root)
        self.papers = f"{self.sources.package}.papers"
        self._known: dict[Thing, Identity] = {}
        self._open: list[Thing] = []  # names whose digests are in progress, for recursion
        self._lowest: list[int] = []

    def of(self, name: str) -> Identity:
        """The identity of the function that `module:function` names, without the defaults of its parameters."""
        return self._content(self._find(name))

    def arguments(self, name: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of that function with its defaults filled in."""
        thing = self._find(name)
        left = [each for each in parameters(self.sources, thing) if each.name not in given and each.default is not None]
        return {each.name: self._value(each) for each in left} | dict(given)

    def exists(self, dotted: str) -> bool:
        """Whether a dotted name exists in this copy of the package."""
        thing = self.sources.find(dotted)
        return thing is not None and bool(not thing.name or self.sources.definition(thing))

    def same(self, one: Identity, now: Identity) -> bool:
        """Whether the recorded identity `one` matches the current one, allowing for renamed code outside of papers.

        A name that is gone was renamed. One that still exists but is no longer used was replaced by another.
        """
        if one.digest != now.digest:
            return False
        gone, new = one.outside - now.outside, now.outside - one.outside
        return len(new) <= len(gone) and not any(map(self.exists, gone))

    def _find(self, name: str) -> Thing:
        thing = self._work(name)
        if thing is None:
            raise UsageError(f"{name!r} names nothing under evenly.papers.")
        return thing

    def _work(self, text: str) -> Thing | None:
        if not WORK.fullmatch(text):
            return None
        thing = self.sources.find(f"{self.papers}.{text}")
        return thing if thing and thing.name and not thing.attributes else None

    def _content(self, thing: Thing) -> Identity:
        """The identity of a top-level name of papers; a name in progress is represented by its distance."""
        if thing in self._known:
            return self._known[thing]
        depth = len(self._open)
        if thing in self._open:
            place = self._open.index(thing)
            self._lowest[-1] = min(self._lowest[-1], place)
            return Identity(f"itself, {depth - place} up")
        self._open.append(thing)
        self._lowest.append(depth)
        made = _Reading(self, thing.module).content(self.sources.definition(thing))
        self._open.pop()
        lowest = self._lowest.pop()
        if lowest < depth:  # part of a cycle: it looks different from other points of the cycle
            self._lowest[-1] = min(self._lowest[-1], lowest)
        else:
            self._known[thing] = made
        return made

    def _value(self, parameter: Parameter) -> Any:
        """The default of a parameter: the value itself where it is written out, else the form of its expression."""
        assert parameter.default is not None
        try:
            return _plain(ast.literal_eval(parameter.default))
        except ValueError:
            return f"computed: {_hash(_Reading(self, parameter.module).expression(parameter.default))}"


class _Reading:
    """The reading of one definition: its normal form, and the names it refers to."""

    def __init__(self, behaviour: Behaviour, module: str) -> None:
        self.behaviour, self.sources, self.module = behaviour, behaviour.sources, module
        self.form = NormalForm(self.refer, text=self.text)
        self.met: dict[str, int] = {}  # names outside of papers, numbered
        self.outside: set[str] = set()  # these, and those of everything it refers to
        self.classes: list[Thing] = []

    def content(self, statements: Iterable[ast.stmt]) -> Identity:
        """The identity of what these statements define."""
        forms: list[Any] = []
        for each in statements:
            if isinstance(each, FUNCTIONS):
                forms.append(self.form.function(each, defaults=False))
            elif isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
                one = each.targets[0] if isinstance(each, ast.Assign) else each.target
                plain = isinstance(one, ast.Name)
                forms.append(self.form.of(each.value) if plain else self.form.of(each))
            else:
                forms.append(self.form.of(each))
        return Identity(_hash([forms, self._methods()]), frozenset(self.outside))

    def expression(self, node: ast.expr) -> Any:
        """The form of an expression at the top of the module."""
        return self.form.of(node)

    def text(self, value: str) -> Any:
        """The function that text such as "train_and_measure:train_recipe" refers to."""
        work = self.behaviour._work(value)
        return None if work is None else self._inside(work, None)

    def refer(self, dotted: str, call: ast.Call | None) -> Any:
        """The target of a name that no scope inside the definition binds."""
        if dotted.startswith("="):  # imported by the function itself
            return self._import_form(dotted[1:], call)
        module = self.sources.module(self.module)
        first, _, rest = dotted.partition(".")
        if module is not None and first in module.definitions:
            return self._import_form(f"{self.module}:{dotted}", call)
        if module is not None and first in module.imports:
            return self._import_form(".".join(filter(None, (module.imports[first], rest))), call)
        return ["builtin", dotted]

    def _import_form(self, dotted: str, call: ast.Call | None) -> Any:
        if dotted.replace(":", ".").partition(".")[0] != self.sources.package:
            return ["library", dotted.replace(":", ".")]
        thing = self.sources.find(dotted)
        if thing is None:
            return ["missing"]
        if not f"{thing.module}.".startswith(f"{self.behaviour.papers}."):
            return self._outside(thing, call)
        if thing.module == f"{self.behaviour.papers}.{CONTRACT}":
            return ["contract", *thing.attributes]
        return self._inside(thing, call)

    def _inside(self, thing: Thing, call: ast.Call | None) -> Any:
        content = self.behaviour._content(thing.top)
        self.outside |= content.outside
        defaults = {}
        if isinstance(next(iter(self.sources.definition(thing.top)), None), FUNCTIONS):
            takes = parameters(self.sources, thing)
            defaults = {each.name: self.behaviour._value(each) for each in defaults_used(takes, call)}
        return ["papers", content.digest, *thing.attributes, defaults]

    def _outside(self, thing: Thing, call: ast.Call | None) -> Any:
        definition = next(iter(self.sources.definition(thing.top)), None)
        if isinstance(definition, ast.Assign | ast.AnnAssign) and definition.value is not None:
            try:
                return ["value", _plain(ast.literal_eval(definition.value)), *thing.attributes]
            except ValueError:
                pass
        if isinstance(definition, ast.ClassDef) and thing.top not in self.classes:
            self.classes.append(thing.top)
        name = thing.top.dotted
        self.outside.add(name)
        number = self.met.setdefault(name, len(self.met))
        return ["outside", number, *thing.attributes, self._set(defaults_used(parameters(self.sources, thing), call))]

    def _methods(self) -> list[Any]:
        """The defaults that method calls rely on, by name, for the classes outside of papers that occur."""
        defaults = []
        for each in self.classes:
            for call in self.form.methods:
                assert isinstance(call.func, ast.Attribute)
                takes = parameters(self.sources, Thing(each.module, each.name, (call.func.attr,)))
                if used := self._set(defaults_used(takes, call)):
                    defaults.append([call.func.attr, used])
        return defaults

    def _set(self, left: Iterable[Parameter]) -> dict[str, Any]:
        """Defaults that are not false, by the name of the parameter; those that are computed count by their form."""
        values = {}
        for each in left:
            assert each.default is not None
            try:
                value = ast.literal_eval(each.default)
            except ValueError:
                values[each.name] = _Reading(self.behaviour, each.module).expression(each.default)
                continue
            if value:
                values[each.name] = _plain(value)
        return values


@cache
def of_this_package() -> Behaviour:
    """The computations of the running package."""
    return Behaviour(Path(__file__).parents[2])


def digest(value: Any) -> str:
    """Twelve hex digits of plain data.

    >>> digest([1, {"b": 2.0}]) == digest([1.0, {"b": 2}])
    True
    """
    return _hash(_plain(value))


def _hash(plain: Any) -> str:
    text = json.dumps(plain, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=6).hexdigest()


def _plain(value: Any) -> Any:
    """Plain JSON values, with equal numbers written alike."""
    if isinstance(value, Mapping):
        return {str(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, set | frozenset):
        return sorted((_plain(each) for each in value), key=repr)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if value is None or isinstance(value, bool | int | float | str) else repr(value)
