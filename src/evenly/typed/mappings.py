"""Plain trees of settings: flattening, differences and digests."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def flatten(mapping: Mapping[str, Any], under: str = "") -> dict[str, Any]:
    """A tree of settings by dotted path.

    >>> flatten({"optimizer": {"lr": 0.1}, "data": {"options": {}}})
    {'optimizer.lr': 0.1, 'data.options': {}}
    """
    rows: dict[str, Any] = {}
    for name, value in mapping.items():
        rows |= flatten(value, f"{under}{name}.") if isinstance(value, Mapping) and value else {under + name: value}
    return rows


def changed_settings(was: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, str]:
    """A line for every setting that differs between two trees, or that only one of them has.

    >>> changed_settings({"lr": 0.1, "seed": 0}, {"lr": 0.2, "swa": True})
    {'lr': 'lr: 0.1 → 0.2', 'seed': 'seed: 0 → not there', 'swa': 'swa: not there → True'}
    """
    before, after = flatten(was), flatten(now)

    def format_side(side: Mapping[str, Any], name: str) -> str:
        return repr(side[name]) if name in side else "not there"

    return {
        name: f"{name}: {format_side(before, name)} → {format_side(after, name)}"
        for name in dict.fromkeys([*before, *after])
        if name not in before or name not in after or before[name] != after[name]
    }


def digest(value: Any, *, digits: int = 32) -> str:
    """Hex digits that are equal for equal plain data: on any machine, in any order of names, for 1 and 1.0.

    >>> digest({"a": 1, "b": [0.0]}) == digest({"b": [0], "a": 1.0})
    True
    >>> digest({"a": 1}, digits=12) == digest({"a": True}, digits=12)
    False
    """
    text = json.dumps(_canonical(value), sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=digits // 2).hexdigest()


def _canonical(value: Any) -> Any:
    """Numbers that are equal in Python (1, 1.0, and 0.0, −0.0) are written alike."""
    if isinstance(value, Mapping):
        return {name: _canonical(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
