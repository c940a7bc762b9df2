"""YAML as people mean it: `1e-3` is a number, `no` is a word, and duplicate keys are refused.

PyYAML speaks YAML 1.1, in which `1e-3` is text, `no` is false, `010` is eight and `1:30` is ninety. Here
plain words are read by the core schema of YAML 1.2; what is written is quoted so that both agree on it.
"""

import os
import re
import stat
from collections.abc import Hashable, Mapping
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from evenly.errors import UsageError, did_you_mean

try:  # libyaml reads and writes ten times faster; a query over a thousand runs notices
    from yaml import CSafeDumper as SafeDumper
    from yaml import CSafeLoader as SafeLoader
except ImportError:  # pragma: no cover - depends on how PyYAML was built
    from yaml import SafeDumper, SafeLoader  # type: ignore[assignment]  # the same in Python

_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_SCHEMA = [
    ("null", re.compile(r"~|null|Null|NULL|"), ["~", "n", "N", ""]),
    ("bool", re.compile(r"true|True|TRUE|false|False|FALSE"), list("tTfF")),
    ("int", _INT, list("-+0123456789")),
    ("float", _FLOAT, list("-+.0123456789")),
]


def parse(text: str, *, source: str) -> Any:
    """The plain value that `text` writes in YAML; `source` names it in errors.

    >>> parse("{lr: 1e-3, name: no, layers: [2, 0x10]}", source="--set")
    {'lr': 0.001, 'name': 'no', 'layers': [2, 16]}
    >>> parse("lr: 1\\nlr: 2", source="my.yaml")
    Traceback (most recent call last):
    evenly.errors.UsageError: my.yaml, line 2: 'lr' is given twice (first in line 1). Keep one of the two.
    """
    try:
        _refuse_bombs(text)
        return yaml.load(text, Loader=_Loader)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}, line {mark.line + 1}" if mark and "\n" in text.strip() else source
        problem = error.problem or "not YAML"
        problem = f"{error.context} {problem}" if problem.startswith("but") else problem
        raise UsageError(f"{where}: {problem.rstrip('.')}.") from error
    except yaml.YAMLError as error:
        raise UsageError(f"{source}: {str(error).splitlines()[0].rstrip('.')}.") from error


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """The mapping in the YAML file `path`."""
    path = Path(path)
    try:
        kind = path.stat().st_mode
        if not (stat.S_ISREG(kind) or stat.S_ISDIR(kind)):  # opening a named pipe would wait for its writer
            raise UsageError(f"{path} is not a regular file. Give the path of a YAML file.")
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        beside = [p.name for p in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []
        hint = did_you_mean(path.name, beside) if beside else "There is no YAML file in that folder."
        raise UsageError(f"{path} does not exist. {hint}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from None
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}. Give the path of a readable YAML file.") from error
    value = parse(text, source=str(path))
    if not isinstance(value, dict):
        content = "nothing" if value is None else f"{type(value).__name__} {value!r:.60}"
        raise UsageError(f"{path}: expected settings such as 'epochs: 200', one per line, but it holds {content}.")
    return value


def render(mapping: Mapping[str, Any]) -> str:
    """`mapping` as YAML text, in its own order, lists on one line.

    >>> print(render({"lr": 1e-05, "name": "1e-3", "at": [0.5, 0.75]}), end="")
    lr: 1.0e-05
    name: '1e-3'
    at: [0.5, 0.75]
    """
    try:
        return yaml.dump(dict(mapping), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=2**20)
    except yaml.YAMLError as error:
        raise UsageError(
            f"{error.args[0]}: {error.args[-1]!r:.60}. Settings are plain numbers, text and lists."
        ) from error


def _refuse_bombs(text: str) -> None:
    """No aliases and no deep nesting: a few lines of the former fill any memory, the latter overruns C's stack."""
    depth = 0
    for event in yaml.parse(text, Loader=SafeLoader):
        if isinstance(event, yaml.AliasEvent):
            problem = f"aliases (*{event.anchor}) are not read here. Write the value out"
            raise ConstructorError(None, None, problem, event.start_mark)  # type: ignore[arg-type]  # stubs know no events
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > 50:
            raise ConstructorError(None, None, "more than 50 levels of nesting", event.start_mark)


class _Loader(SafeLoader):
    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - so PyYAML declares it

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Hashable, Any]:
        if not isinstance(node, yaml.MappingNode):
            raise ConstructorError(None, None, "expected a mapping", node.start_mark)
        lines: dict[str, int] = {}
        mapping: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, str):
                problem = f"the name of a setting must be text, not {key!r}. Put it in quotes"
                raise ConstructorError(None, None, problem, key_node.start_mark)
            if key in mapping:
                problem = f"{key!r} is given twice (first in line {lines[key]}). Keep one of the two"
                raise ConstructorError(None, None, problem, key_node.start_mark)
            lines[key] = key_node.start_mark.line + 1
            mapping[key] = self.construct_object(value_node, deep=deep)
        return mapping

    def construct_object(self, node: yaml.Node, deep: bool = False) -> Any:
        try:
            return super().construct_object(node, deep)
        except (ValueError, AttributeError, TypeError) as error:  # a tag that does not fit, such as the 99th month
            raise ConstructorError(None, None, f"cannot be read as {node.tag} ({error})", node.start_mark) from error

    def construct_whole_number(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node)
        try:
            return int(text, 16) if text.startswith("0x") else int(text, 8) if text.startswith("0o") else int(text)
        except ValueError:
            raise ConstructorError(None, None, f"{text:.40} is not a whole number", node.start_mark) from None

    def construct_number(self, node: yaml.ScalarNode) -> float:
        text = self.construct_scalar(node)
        try:
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        except ValueError:
            raise ConstructorError(None, None, f"{text:.40} is not a number", node.start_mark) from None


class _Dumper(SafeDumper):
    def ignore_aliases(self, data: Any) -> bool:
        return True

    def represent_list_on_one_line(self, value: list[Any]) -> yaml.Node:
        return self.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=True)

    def represent_text(self, value: str) -> yaml.Node:
        # PyYAML writes some control characters (U+0085) bare between single quotes and then reads a space.
        return self.represent_scalar("tag:yaml.org,2002:str", value, style=None if value.isprintable() else '"')


for _kind, _pattern, _first in _SCHEMA:
    _whole = re.compile(f"^(?:{_pattern.pattern})$")
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", _whole, _first)
    # Added to those of YAML 1.1, so that a word which either version would misread is quoted.
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_kind}", _whole, _first)

_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_whole_number)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number)
_Dumper.add_representer(list, _Dumper.represent_list_on_one_line)
_Dumper.add_representer(str, _Dumper.represent_text)
