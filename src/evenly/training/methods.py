"""The methods of a comparison: each word changes some settings of a recipe; words combine with `+`.

A word may carry a value: `useful:8` shows hard examples eight times, `steps:8` takes as many steps on plain data,
`sam:0.1` takes the radius 0.1, `batch:32` takes batches of 32. `evenly.training.method_words` lists the words.

>>> method = parse("sam+useful:8")
>>> method.label, method.needs_early
('SAM + USEFUL ×8', True)
>>> method.recipe(Recipe(), early="c0ffee").resampling.factor
8
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from evenly.errors import UsageError, did_you_mean
from evenly.recipe import Recipe, Resampling, override
from evenly.records.comparison import epochs_of_equal_steps
from evenly.training.method_words import AUGMENTING, FACTOR, SPELLINGS, WORDS, label_of, settings_of, spelling
from evenly.training.selection import second_recipe

# The settings that decide how many steps copies take.
_OF_COPIES = ("resampling.factor", "resampling.among", "resampling.start", "resampling.like")


@dataclass(frozen=True)
class Method:
    """Words, in the order they were given, each with its value or None."""

    name: str
    words: tuple[tuple[str, str | None], ...]

    @property
    def label(self) -> str:
        """What tables and pages call it.

        >>> parse("useful:8+noise").label
        'USEFUL ×8 + noise'
        """
        return " + ".join(label_of(word, value) for word, value in self.words)

    def label_in(self, base: Recipe, *, factor: int) -> str:
        """Its label, with what the comparison itself sets: another factor than the usual one, and augmentations.

        >>> base = override(Recipe(), ["resampling.augment=[noise:0.2]"])
        >>> parse("useful").label_in(base, factor=8), parse("useful").label_in(Recipe(), factor=2)
        ('USEFUL ×8, noise 0.2', 'USEFUL')
        >>> [parse(name).label_in(base, factor=8) for name in ("plain", "jtt", "useful:3+noise:0.1")]
        ['plain', 'JTT, noise 0.2', 'USEFUL ×3 + noise 0.1']
        """
        if not self.resamples:
            return self.label
        given = str(factor) if factor != Resampling().factor else None
        words = [
            (word, value or (given if WORDS[word].value == FACTOR and WORDS[word].default is None else None))
            for word, value in self.words
        ]
        label = Method(self.name, tuple(words)).label
        if not base.resampling.augment or self.augments:
            return label
        target = f" on {base.resampling.augment_target}" if base.resampling.augment_target != "hard" else ""
        return f"{label}, {' and '.join(base.resampling.augment).replace(':', ' ')}{target}"

    @property
    def resamples(self) -> bool:
        """Whether it selects examples by the outputs of an early run."""
        return any(
            setting.startswith("resampling.method") for word, _ in self.words for setting in WORDS[word].settings
        )

    @property
    def needs_early(self) -> bool:
        """Whether it needs an early run: to select examples, or to match the number of steps."""
        return self.resamples or self.has("steps")

    @property
    def augments(self) -> bool:
        """Whether one of its words augments examples."""
        return any(self.has(word) for word in AUGMENTING)

    def has(self, word: str) -> bool:
        """Whether it contains a word."""
        return any(own == word for own, _ in self.words)

    def recipe(
        self,
        base: Recipe,
        *,
        early: str | None = None,
        share: float | None = None,
        factor: int = 2,
        keep_suspects: bool = True,
    ) -> Recipe:
        """The recipe of this method, given that of plain training.

        `early` is the ID of the early run, `share` that of the examples whose copies `steps` stands for, `factor` how
        often chosen examples are shown unless the method itself says.
        """
        settings = self._settings(base)
        plain = replace(base, resampling=Resampling())
        cure = self.copied(base, early=early, factor=factor, keep_suspects=keep_suspects)
        if cure is not None and cure.factor == 1 and not cure.augment and cure.start == "scratch":
            raise UsageError(
                f"{self.name}: with the factor 1 every example counts once, as in plain training. Give 2 or more, as "
                f"{next(word for word, _ in self.words if WORDS[word].value == FACTOR)}:2."
            )
        if self.resamples and cure is not None:
            base = replace(base, resampling=cure)
        else:
            if self.has("steps"):
                settings = [setting for setting in settings if setting.partition("=")[0] not in _OF_COPIES]
            base, settings = plain, [_for_all(setting, plain, self) for setting in settings]
            settings = [setting for setting in settings if setting]
        changed = override(base, settings)
        if self.has("steps") and cure is not None:
            epochs = epochs_of_equal_steps(changed.epochs, share=share or 0.0, factor=cure.factor)
            changed = replace(changed, epochs=epochs)
        elif changed == plain and self.name != "plain":
            raise UsageError(f"{self.name} changes nothing: the recipe already has this setting. Leave it out.")
        return changed

    def copied(
        self, base: Recipe, *, early: str | None = None, factor: int = 2, keep_suspects: bool = True
    ) -> Resampling | None:
        """The resampling whose copies this method shows, or whose steps it takes; None for any other method.

        >>> parse("steps:5+like-jtt").copied(Recipe()).method, parse("random:5").copied(Recipe()).factor
        ('misclassified', 5)
        """
        settings = self._settings(base)
        given = {path: value for path, _, value in (setting.partition("=") for setting in settings)}
        method, like = given.get("resampling.method"), given.get("resampling.like")
        if method is None:
            if not self.has("steps"):
                return None
            method = like or base.resampling.like or "useful"  # whose steps it takes
            settings = [each for each in settings if each.partition("=")[0] in _OF_COPIES[:-1]]
        own = [each for each in settings if each.startswith("resampling.")]
        made = second_recipe(base, early or "unknown", method, factor=factor, keep_suspects=keep_suspects, like=like)
        return override(made, own).resampling

    def _settings(self, base: Recipe) -> list[str]:
        """The settings that its words change, each `path=value`; words that contradict each other are refused."""
        settings = [setting for word, value in self.words for setting in settings_of(word, value, base)]
        _refuse_contradictions(self, settings)
        return settings


def parse(name: str) -> Method:
    """The method with this name; an unknown name is refused with a suggestion.

    >>> parse("smaller")
    Traceback (most recent call last):
    evenly.errors.UsageError: there is no method 'smaller'. ...
    """
    words = []
    for part in name.split("+"):
        word, colon, value = part.strip().partition(":")
        word = SPELLINGS.get(word, word)
        if word not in WORDS:
            raise UsageError(f"there is no method {word!r}. {did_you_mean(word, [*WORDS, 'original'])}")
        if colon and not (value and WORDS[word].value):
            if WORDS[word].value:
                raise UsageError(f"{name}: give a value after the colon, or write {word}.")
            raise UsageError(f"{name}: {word} takes no value. Write {word}.")
        words.append((word, value or None))
    if len(words) > 1 and any(word == "plain" for word, _ in words):
        raise UsageError(f"{name}: plain is training without any other method. Leave `plain` out of it.")
    if len({word for word, _ in words}) < len(words):
        raise UsageError(f"{name}: use each word only once.")
    return Method("+".join(spelling(*each) for each in words), tuple(words))


def parse_all(names: Iterable[str]) -> list[Method]:
    """Several methods, each once."""
    methods = [parse(name) for name in names]
    if twice := [each.name for each in methods if sum(other.name == each.name for other in methods) > 1]:
        raise UsageError(f"{twice[0]} is given twice: name each method once.")
    return methods


def _for_all(setting: str, plain: Recipe, method: Method) -> str:
    """Replace a resampling setting where nothing is resampled: the recipe itself augments all examples."""
    path, _, value = setting.partition("=")
    if not path.startswith("resampling."):
        return setting
    if not method.has("augment-all"):
        told = f"{method.name}: {path} is for the examples that another method chooses"
        if method.has("steps"):  # which chooses none
            for_all = "+".join(_word_for_all(*each) for each in method.words)
            raise UsageError(f"{told}, and steps chooses none. For all examples: {for_all}")
        for_all = " For all of them: augment-all" if path == "resampling.augment" else ""
        raise UsageError(f"{told}. Write useful+{method.name}.{for_all}")
    kept = ", ".join(plain.augment)
    return f"augment=[{kept}{', ' if kept else ''}{value[1:-1]}]" if path == "resampling.augment" else ""


def _word_for_all(word: str, value: str | None) -> str:
    """A word of a method, in which augmentation is for all examples.

    >>> _word_for_all("noise", None), _word_for_all("augment", "erase"), _word_for_all("sam", None)
    ('augment-all:noise:0.2', 'augment-all:erase', 'sam')
    """
    if word == "noise":
        return f"augment-all:noise:{value or WORDS[word].default}"
    return spelling("augment-all" if word == "augment" else word, value)


def _refuse_contradictions(method: Method, settings: list[str]) -> None:
    name = method.name
    if method.has("steps") and method.resamples:
        apart = (
            "+".join(spelling(*each) for each in method.words if (each[0] == "steps") == own) for own in (False, True)
        )
        raise UsageError(
            f"{name}: steps takes the steps of copies on plain data, and the other words make copies. Compare the two "
            f"instead: {','.join(apart)}"
        )
    likes = [word for word, _ in method.words if word.startswith("like-")]
    if likes and not (method.has("random") or method.has("steps")):
        raise UsageError(
            f"{name}: {likes[0]} says how many examples `random` copies, or how many steps `steps` takes. Write "
            f"random+{likes[0]} or steps+{likes[0]}."
        )
    paths = [setting.partition("=")[0] for setting in settings]
    for path in paths:
        if paths.count(path) > 1:
            raise UsageError(f"{name}: two of its words set {path}. Leave one of them out.")
