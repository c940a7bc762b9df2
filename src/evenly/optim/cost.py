"""What a rule costs: passes through the network per optimizer step."""

from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any

from evenly.rules import RULES, module_of, rule_name


def rule_class(name: str) -> Any:
    """The class of a rule.

    >>> rule_class("gsam").__name__
    'GSAM'
    """
    name = rule_name(name)
    return getattr(import_module(module_of(name)), RULES[name].kind)


def passes_per_step(name: str, options: Mapping[str, Any], *, passes: int | None = None) -> float:
    """One pass per step, plus the extra passes of displaced steps, on the fraction of the batch they use.

    `passes` is the number that a rule in use was seen to make, if it was: some models need two of LSAM.

    >>> passes_per_step("sam", {"every": 5}), passes_per_step("looksam", {"k": 4}), passes_per_step("lsam", {})
    (1.2, 1.25, 1.0)
    >>> passes_per_step("lsam", {"m": 4}), passes_per_step("lsam", {}, passes=2)
    (2.0, 2.0)
    """
    kind = rule_class(name)
    own = {field.name for field in fields(kind.rule_type)}
    rule = kind.rule_type(**{key: value for key, value in options.items() if key in own})
    every = int(options.get("every", 1))
    looks: float = sum(rule.displaces(step) for step in range(0, 1000 * every, every)) / (1000 * every)
    extra: int = max(kind.passes_with(options), passes or 1) - 1
    return 1.0 + extra * float(options.get("fraction", 1.0)) * looks
