"""Damage to what text means: values of another kind, keys lost, doubled and misspelt, cells that cannot be."""

import csv
import io
import json
import random
from typing import Any

from soak.mutations import NUMBERS, TEXT, WORDS, Mutation

_VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 0.5, 10**30, -(10**30), 2**63, 2**64, 1e308, float("nan"), float("inf"),
    "", "x", "1", "NaN", "Infinity", "../../precious", "\x00", "\ud800", "os:system", [], [1], [[]], {}, {"a": 1},
    [None], {"": None}, "x" * 5000, [0] * 5000,
)  # fmt: skip
_ONLY_YAML = (
    "x: !!python/object/apply:os.system [true]\n", "<<: *none\n", "? [a]\n: b\n", "a: &a\n  b: *a\n", "\tx: 1\n",
    "x: 2026-13-45\n", "x: 0o9\n", "x: 1:60\n", "x: !!binary ====\n", "---\nx: 1\n", "%YAML 9\n---\n", "seed: 1_0\n",
    "x: !!timestamp 2026-99-99\n", "seed: 0x1F\n", "!!set {a, b}\n", "x: !!float a\n",
)  # fmt: skip


def change_value(value: Any, rng: random.Random) -> Any:
    """The same tree with one to three of its nodes changed, dropped, wrapped, doubled or renamed."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        value = _changed(value, rng)
    return value


def change_json(data: bytes, rng: random.Random) -> bytes:
    """A JSON document with a change in its tree, or with a key that stands twice."""
    try:
        value = json.loads(data)
    except ValueError:
        return rng.choice(TEXT)(data, rng)
    return _dumped(change_value(value, rng), rng)


def change_json_lines(data: bytes, rng: random.Random) -> bytes:
    """JSON Lines with a change in one of the lines."""
    lines = data.splitlines(keepends=True)
    if not lines:
        return data
    at = rng.randrange(len(lines))
    lines[at] = change_json(lines[at], rng).replace(b"\n", b" ").rstrip() + b"\n"
    return b"".join(lines)


def change_yaml(data: bytes, rng: random.Random) -> bytes:
    """A YAML document with a change in its tree, or with what only YAML can say."""
    import yaml

    if rng.random() < 0.25:
        return rng.choice((data + rng.choice(_ONLY_YAML).encode(), rng.choice(_ONLY_YAML).encode() + data))
    try:
        value = yaml.safe_load(data)
    except (yaml.YAMLError, ValueError):
        return rng.choice(TEXT)(data, rng)
    changed = change_value(value, rng)
    try:
        return yaml.safe_dump(changed, allow_unicode=True).encode("utf-8", "surrogatepass")
    except yaml.YAMLError:
        return json.dumps(changed).encode()


def change_cells(data: bytes, rng: random.Random) -> bytes:
    """A table with one to three cells, columns or rows changed."""
    text = data.decode("utf-8", "replace")
    separator = "\t" if "\t" in text else ","
    rows = list(csv.reader(io.StringIO(text), delimiter=separator))
    if not rows or not rows[0]:
        return rng.choice(TEXT)(data, rng)
    for _ in range(rng.choice((1, 1, 2, 3))):
        row = rng.choice(rows)
        kind = rng.randrange(8)
        if not row:
            continue
        at = rng.randrange(len(row))
        if kind < 4:
            row[at] = rng.choice((*NUMBERS, *WORDS))
        elif kind == 4:
            del row[at]
        elif kind == 5:
            row.insert(at, rng.choice(row))
        elif kind == 6:
            for other in rows[1:]:
                if at < len(other):
                    other[at] = rng.choice((*NUMBERS, *WORDS))
        else:
            rows[:] = rows[: rng.randrange(len(rows)) + 1]
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator=rng.choice(("\n", "\r\n"))).writerows(rows)
    return out.getvalue().encode("utf-8", "surrogatepass")


JSON: tuple[Mutation, ...] = (change_json,) * 12 + TEXT
JSON_LINES: tuple[Mutation, ...] = (change_json_lines,) * 12 + TEXT
YAML: tuple[Mutation, ...] = (change_yaml,) * 12 + TEXT
CELLS: tuple[Mutation, ...] = (change_cells,) * 12 + TEXT


def _changed(value: Any, rng: random.Random) -> Any:
    """Walk down at random, and change what is there at the end of the walk."""
    if isinstance(value, dict) and value and rng.random() < 0.85:
        name = rng.choice(list(value))
        if (kind := rng.random()) < 0.7:
            return {**value, name: _changed(value[name], rng)}
        rest = {key: item for key, item in value.items() if key != name}
        if kind < 0.85:
            return rest
        return {**rest, rng.choice((f"{name}s", "", "x", f" {name}")): value[name]}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        if (kind := rng.random()) < 0.7:
            return [*value[:at], _changed(value[at], rng), *value[at + 1 :]]
        return [*value[:at], *value[at + 1 :]] if kind < 0.85 else [*value, value[at]]
    if isinstance(value, int | float) and rng.random() < 0.4:
        return rng.choice((-value, value + 1, float(value), str(value), value * 10**9, [value]))
    return rng.choice((*_VALUES, [value], {"x": value}))


def _dumped(value: Any, rng: random.Random) -> bytes:
    text = json.dumps(value)
    if isinstance(value, dict) and value and rng.random() < 0.1:
        name = rng.choice(list(value))
        text = text[:-1] + f", {json.dumps(name)}: {json.dumps(rng.choice(_VALUES))}" + "}"
    if rng.random() < 0.03:
        text = text.replace(":", ":" + "[" * 50_000, 1)
    return (text + "\n").encode("utf-8", "surrogatepass")
