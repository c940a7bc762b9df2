"""The command that repeats a comparison: words from recipes that may be a stranger's, quoted in one place."""

import shlex
from collections.abc import Sequence
from typing import Any

from evenly import recipe as recipes
from evenly.errors import UsageError
from evenly.recipe import Recipe
from evenly.report.run_page.related import Comparison
from evenly.typed import yaml_text
from evenly.typed.mappings import flatten

ORDER = ("original", "random", "upweight", "quantile", "misclassified", "steps")
NAMED = {
    "model.name": "--model",
    "optimizer.lr": "--lr",
    "epochs": "--epochs",
    "batch_size": "--batch-size",
    "seed": "--seed",
}


def command(comparison: Comparison) -> str:
    """The command that repeats the comparison, or the run where it stands alone; safe to paste into a shell."""
    return line(_words(comparison))


def line(words: Sequence[str]) -> str:
    r"""Words as a line for a shell, in which each is one word and nothing else.

    What cannot be printed is escaped: pasted raw, a control character could end the quotes around it.

    >>> line(["evenly", "train", "my photos; touch x"])
    "evenly train 'my photos; touch x'"
    >>> print(line(["evenly", "train", "a\x03'b"]))
    evenly train $'a\U00000003\U00000027b'
    """
    return " ".join(shlex.quote(word) if word.isprintable() else f"$'{_escaped(word)}'" for word in words)


def _words(comparison: Comparison) -> list[str]:
    shown = comparison.shown
    members = [member for member in comparison.members if member.family == shown.family or member.method == "steps"]
    methods = sorted(
        {member.method for member in members if not member.is_early}, key=lambda m: ORDER.index(m) if m in ORDER else -1
    )
    base = dict(shown.run.recipe) | {"resampling": {}, "until": {}, "seed": 0}
    if "useful" not in methods or shown.is_early:
        return ["evenly", "train", *_described(dict(shown.run.recipe))]
    first = next(member for member in members if member.method == "useful")
    words = ["evenly", "useful", *_described(base)]
    words += ["--controls", ",".join(method for method in methods if method != "useful")]
    words += ["--seeds", ",".join(str(seed) for seed in sorted({m.seed for m in members}))]
    if first.early is not None:
        words += _first_stage(flatten(first.early.recipe), first.recipe)
    factor = first.recipe.get("resampling.factor", 2)
    words += ["--factor", str(factor)] if factor != 2 else []
    words += ["--drop-suspect"] if first.recipe.get("resampling.keep_suspects") is False else []
    return words


def _described(mapping: dict[str, Any]) -> list[str]:
    """A recipe as the words of a command: what differs from the defaults, the usual settings by name."""
    try:
        known = flatten(recipes.to_mapping(recipes.from_mapping(Recipe, mapping), defaults=False))
    except UsageError:  # a recipe of another version: every setting as it stands
        known = flatten(mapping)
    words = [str(flatten(mapping).get("data.name", "digits"))]
    rest = []
    for path, value in known.items():
        text = yaml_text.render({"v": value}).removeprefix("v:").strip() if not isinstance(value, str) else value
        if path in NAMED:
            words += [NAMED[path], text]
        elif path != "data.name":
            rest += ["--set", f"{path}={text}"]
    return [*words, *rest]


def _first_stage(early: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """When the examples were separated, and what stood in for the network or the optimizer until then."""
    moments = {"epoch": "--at-epoch", "fraction": "--at-fraction"}
    rule = str(early.get("until.rule"))
    words = [moments[rule], _number(early.get("until.value", 0))] if rule in moments else []
    if early.get("model.name") != second.get("model.name"):
        words += ["--early-model", str(early.get("model.name"))]
    if any(early.get(name) != second.get(name) for name in ("ascent.rule", "optimizer.name")):
        ascent = early.get("ascent.rule", "none")
        words += ["--early-optimizer", str(early.get("optimizer.name") if ascent == "none" else ascent)]
    if early.get("optimizer.lr") != second.get("optimizer.lr"):
        words += ["--early-lr", _number(early.get("optimizer.lr"))]
    return words


def _number(value: Any) -> str:
    """A number as short as it can be said exactly; anything else as it stands."""
    return f"{value:g}" if isinstance(value, int | float) and float(f"{value:g}") == value else str(value)


def _escaped(word: str) -> str:
    return "".join(sign if sign.isprintable() and sign not in "\\'" else f"\\U{ord(sign):08x}" for sign in word)
