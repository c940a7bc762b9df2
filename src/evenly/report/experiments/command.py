"""Commands on a page, from records that may be a stranger's: quoted in one place, so that pasting them is safe."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from evenly import recipe as recipes
from evenly.errors import UsageError
from evenly.recipe import Recipe
from evenly.typed import yaml_text
from evenly.typed.mappings import flatten

NAMED = {
    "model.name": "--model",
    "optimizer.lr": "--lr",
    "epochs": "--epochs",
    "batch_size": "--batch-size",
    "seed": "--seed",
}
# The command line has other defaults than a recipe for these (`training.defaults`); one part of a schedule fixes all.
ALWAYS = ("optimizer.lr", "schedule.kind")


def train_command(recipe: Mapping[str, Any]) -> str:
    """The command that repeats a run."""
    return shell_line(["evenly", "train", *_words(dict(recipe))])


def compare_command(recipe: Mapping[str, Any], *, methods: Sequence[str] = (), seeds: str = "0-4") -> str:
    """The command that compares USEFUL with plain training, or the given methods, by the same recipe."""
    base = dict(recipe) | {"resampling": {}, "until": {}, "seed": 0}
    verb, which = ("compare", ["--methods", ",".join(methods)]) if methods else ("useful", [])
    return shell_line(["evenly", verb, *_words(base), *which, "--seeds", seeds])


def stored_command(text: Any) -> str:
    """A recorded command, if it is one of evenly's, with each of its words quoted again.

    >>> stored_command("evenly useful 'my photos' --seeds 0-4"), stored_command("rm -rf /"), stored_command(3)
    ("evenly useful 'my photos' --seeds 0-4", '', '')
    >>> stored_command("evenly train $(touch x); ls")
    "evenly train '$(touch' 'x);' ls"
    """
    try:
        words = shlex.split(text) if isinstance(text, str) else []
    except ValueError:  # an unterminated quotation
        return ""
    return shell_line(words) if words[:1] == ["evenly"] else ""


def shell_line(words: Sequence[str]) -> str:
    r"""Words as a line for a shell, in which each is one word and nothing else.

    Unprintable characters are escaped: pasted raw, a control character could end the quotes around it.

    >>> shell_line(["evenly", "train", "my photos; touch x"])
    "evenly train 'my photos; touch x'"
    >>> print(shell_line(["evenly", "train", "a\x03'b"]))
    evenly train $'a\U00000003\U00000027b'
    """
    return " ".join(shlex.quote(word) if word.isprintable() else f"$'{_escape(word)}'" for word in words)


def _words(recipe: dict[str, Any]) -> list[str]:
    """A recipe as the words of a command: the settings that differ from the defaults, the usual ones by name."""
    try:
        known = flatten(recipes.to_mapping(recipes.from_mapping(Recipe, recipe), defaults=False))
    except UsageError:  # a recipe of another version: every setting as recorded
        known = flatten(recipe)
    every = flatten(recipe)
    known |= {path: every[path] for path in ALWAYS if path in every}
    words = [str(every.get("data.name", "digits"))]
    rest = []
    for path, value in known.items():
        text = yaml_text.render({"v": value}).removeprefix("v:").strip() if not isinstance(value, str) else value
        if path in NAMED:
            words += [NAMED[path], text]
        elif path != "data.name":
            rest += ["--set", f"{path}={text}"]
    return [*words, *rest]


def _escape(word: str) -> str:
    return "".join(sign if sign.isprintable() and sign not in "\\'" else f"\\U{ord(sign):08x}" for sign in word)
