"""The words of which the methods of a comparison are made: the settings that each changes, its value and controls.

To add a word, add a line to `WORDS`.
"""

from collections.abc import Callable
from typing import NamedTuple

from evenly.recipe import Recipe
from evenly.rules import FORMER_NAMES, RULES


class Word(NamedTuple):
    """One change to plain training.

    Parameters
    ----------
    label
        Its name in tables and on pages.
    settings
        The settings it changes, each `path=value`.
    value
        The setting that `word:VALUE` sets, as `path={}`; empty if the word takes no value.
    default
        Its default value; a function computes it from the recipe, None leaves the setting unchanged.
    controls
        The words that could explain its gain; `evenly.training.controls` gives them the method's own values.
    """

    label: str
    settings: tuple[str, ...] = ()
    value: str = ""
    default: str | Callable[[Recipe], str] | None = None
    controls: tuple[str, ...] = ()


#: The setting of words whose value says how often examples are shown.
FACTOR = "resampling.factor={}"


def _resample(label: str, method: str, *controls: str, factor: str | None = None) -> Word:
    return Word(label, (f"resampling.method={method}",), FACTOR, factor, controls)


def _augmentations(recipe: Recipe) -> str:
    return ", ".join(recipe.resampling.augment or ("noise:0.2",))


_STEPS = ("random", "steps", "batch")
#: Words that augment: what the recipe augments by is not added to theirs.
AUGMENTING = ("noise", "augment", "augment-all")
WORDS: dict[str, Word] = {
    "plain": Word("plain"),
    "useful": _resample("USEFUL", "useful", *_STEPS),
    "random": _resample("random", "random"),
    "upweight": _resample("upweight", "upweight", *_STEPS),
    "reweight": _resample("reweight", "reweight", "batch"),
    "quantile": _resample("quantile", "quantile", *_STEPS),
    "misclassified": _resample("misclassified", "misclassified", *_STEPS),
    "jtt": _resample("JTT", "misclassified", *_STEPS, factor="5"),
    "balance": _resample("balance", "balance", *_STEPS),
    "steps": Word("equal steps", (), FACTOR),
    "noise": Word("noise", (), "resampling.augment=[noise:{}]", "0.2", ("augment-all",)),
    "augment": Word("augment", (), "resampling.augment=[{}]", _augmentations, ("augment-all",)),
    "augment-all": Word("augment all", ("resampling.augment_target=all",), "resampling.augment=[{}]", _augmentations),
    "right": Word("among the right", ("resampling.among=right",)),
    "continue": Word("continued", ("resampling.start=early",)),
    "like-misclassified": Word("like misclassified", ("resampling.like=misclassified",)),
    "like-jtt": Word("like JTT", ("resampling.like=misclassified",)),
    "like-quantile": Word("like quantile", ("resampling.like=quantile",)),
    "like-balance": Word("like balance", ("resampling.like=balance",)),
    "logit-penalty": Word("logit penalty", (), "logit_penalty={}", "0.01", ("label-smoothing",)),
    "label-smoothing": Word("label smoothing", (), "label_smoothing={}", "0.1", ("logit-penalty",)),
    "dfr": Word("DFR", (), "last_layer={}", "validation"),
    "batch": Word("smaller batch", (), "batch_size={}", lambda recipe: str(max(1, recipe.batch_size // 4))),
    "random-perturbation": Word("random perturbation", ("ascent.rule=random",), "ascent.rho={}"),
    **{
        rule: Word(known.kind, (f"ascent.rule={rule}",), "ascent.rho={}", None, ("random-perturbation",))
        for rule, known in RULES.items()
        if rule != "random"  # in a comparison, `random` means random upsampling
    },
}
#: Spellings in older commands and records.
SPELLINGS = {"original": "plain"} | {old: new for old, new in FORMER_NAMES.items() if new != "random"}


def label_of(word: str, value: str | None) -> str:
    """What tables and pages call a word with its value.

    >>> label_of("useful", "8"), label_of("sam", "0.1"), label_of("plain", None)
    ('USEFUL ×8', 'SAM 0.1', 'plain')
    """
    if value is None:
        return WORDS[word].label
    return f"{WORDS[word].label} {'×' if WORDS[word].value == FACTOR else ''}{value}"


def settings_of(word: str, value: str | None, base: Recipe) -> list[str]:
    """The settings that a word with its value changes in a recipe, each `path=value`.

    >>> settings_of("noise", None, Recipe()), settings_of("sam", "0.1", Recipe())
    (['resampling.augment=[noise:0.2]'], ['ascent.rule=sam', 'ascent.rho=0.1'])
    """
    known = WORDS[word]
    if value is None:
        value = known.default(base) if callable(known.default) else known.default
    return [*known.settings, *([] if value is None else [known.value.format(value)])]


def spelling(word: str, value: str | None) -> str:
    """A word with its value, as it is written in a method."""
    return word if value is None else f"{word}:{value}"
