"""Settings of a recipe that have an option of their own, beside `--set`: one value for each, and errors as typed."""

import json
import re
from collections.abc import Mapping

from evenly.errors import UsageError
from evenly.rules import RULES

#: Settings by the names of their options, where the two differ.
PATHS = {
    "model": "model.name",
    "rho": "ascent.rho",
    "lr": "optimizer.lr",
    "skip_broken": "data.options.skip_broken",
}


def typed_options(named: Mapping[str, str | None]) -> dict[str, tuple[str, str]]:
    """The settings that have an option of their own and were given by it: the option and its value, by path.

    >>> typed_options({"optimizer": "sam", "batch_size": "32", "lr": None})
    {'ascent.rule': ('--optimizer', 'sam'), 'batch_size': ('--batch-size', '32')}
    """
    paths = PATHS | {"optimizer": "ascent.rule" if named.get("optimizer") in RULES else "optimizer.name"}
    options = {name: f"--{name.replace('_', '-')}" for name in named}
    return {paths.get(name, name): (options[name], value) for name, value in named.items() if value is not None}


def refuse_two_values(typed: Mapping[str, tuple[str, str]], changes: list[str]) -> None:
    """Raise if `--set` gives a setting another value than its own option does."""
    from evenly.typed import yaml_text

    for change in changes:
        path, _, text = (part.strip() for part in change.partition("="))
        if not (text and path in typed):
            continue
        option, value = typed[path]
        values = [yaml_text.parse(word, source=f"--set {path}") for word in (quote_name(path, value), text)]
        if values[0] != values[1]:
            raise UsageError(f"{option} {value} and --set {change} give {path} two values. Leave one of them out.")


def as_typed(message: str, typed: Mapping[str, tuple[str, str]], *, radius: float) -> str:
    """An error about a setting, in terms of the option it was given by; `radius` is that of the rule.

    >>> wrong = "epochs: expected a whole number of at least 1, not 0. For example: epochs=200"
    >>> as_typed(wrong, {"epochs": ("--epochs", "0")}, radius=0.05)
    '--epochs 0: expected a whole number of at least 1. For example: --epochs 200'
    """
    for path, (option, value) in typed.items():
        found = re.fullmatch(
            rf"{re.escape(path)}: (expected .*), not .*\. For example: {re.escape(path)}=(.*)", message
        )
        if found:
            example = f"{radius:g}" if found[2] == "null" else found[2]
            return f"{option} {value}: {found[1]}. For example: {option} {example}"
    return message


def quote_name(path: str, value: str) -> str:
    """Quote names, which are text even if they look like numbers; numbers stay YAML."""
    if value != value.encode("utf-8", "replace").decode():
        raise UsageError(f"{value!a} is not UTF-8, which a recipe is written in. Rename the file or folder.")
    return json.dumps(value) if path.endswith("name") else value
