"""The controls of a method: what could explain its gain, at its own factor and with its own augmentation.

A word names its controls (`evenly.training.method_words`); the method that contains it says how strong they have to
be. A control that repeats examples less often than the method, or without its noise, would leave the gain unexplained.
"""

from evenly.recipe import Recipe
from evenly.training.method_words import AUGMENTING, FACTOR, WORDS, spelling
from evenly.training.methods import Method
from evenly.training.selection import WEIGHING

# Words that change what becomes of the chosen examples: a control that chooses others treats them alike.
LIKE = tuple(word for word in WORDS if word.startswith("like-"))
MODIFIERS = (*AUGMENTING, "right", "continue", *LIKE)
# Those that change how many steps the copies take.
OF_STEPS = ("right", "continue")
# Rivals of each other rather than controls: either may be what a user wants, so neither explains the other's gain.
RIVALS = ("logit-penalty", "label-smoothing")
#: Words that serve to explain another method's gain.
CONTROLS = frozenset(control for word in WORDS.values() for control in word.controls).difference(RIVALS)


def controls_of(method: Method) -> tuple[str, ...]:
    """The methods to compare a method with: those that could explain its gain, and its rivals.

    >>> from evenly.training.methods import parse
    >>> controls_of(parse("useful:8+noise:0.3"))
    ('random:8+noise:0.3', 'steps:8', 'batch', 'augment-all:noise:0.3')
    >>> controls_of(parse("sam+useful")), controls_of(parse("useful:2+right"))
    (('random-perturbation', 'random', 'steps', 'batch'), ('random:2+right', 'steps:2+right', 'batch'))
    >>> controls_of(parse("jtt"))  # which copies fewer examples, or more, than USEFUL
    ('random:5+like-jtt', 'steps:5+like-jtt', 'batch')
    """
    named = [_control(control, word, value, method) for word, value in method.words for control in WORDS[word].controls]
    return tuple(dict.fromkeys(named))


def is_control(method: Method) -> bool:
    """Whether a method serves to explain another one's gain, whatever its values.

    >>> from evenly.training.methods import parse
    >>> [is_control(parse(name)) for name in ("random:8+noise:0.2", "batch:32", "useful:8+noise", "plain")]
    [True, True, False, False]
    """
    words = {word for word, _ in method.words}
    return bool(words & CONTROLS) and words <= CONTROLS.union(MODIFIERS)


def explains(control: Method, method: Method, base: Recipe, *, factor: int) -> bool:
    """Whether the first method could explain the second one's gain.

    It consists of that method's controls, with as many copies and the same augmentation, and of words that both share:
    what it has beyond them, such as noise, would be a cure of its own. `base` and `factor` are those of the comparison.

    >>> from evenly.training.methods import parse
    >>> cure = parse("useful:8+noise:0.2")
    >>> [explains(parse(name), cure, Recipe(), factor=2) for name in ("random:8", "random:8+noise:0.2", "batch:32")]
    [True, True, True]
    >>> [explains(parse(name), cure, Recipe(), factor=2) for name in ("random", "random:8+noise:0.4", "steps:2")]
    [False, False, False]
    >>> explains(parse("label-smoothing"), parse("logit-penalty"), Recipe(), factor=2)  # its rival
    False
    """
    needed = _needed_values(method, base, factor)
    own = {word: _value(word, value, base, factor) for word, value in method.words}
    if not any(word in needed for word, _ in control.words):
        return False
    words = control.words
    if any(WORDS[word].value == FACTOR and word in needed for word, _ in words):
        if _copies(control, base) != _copies(method, base):
            return False
        words = tuple(each for each in words if each[0] not in LIKE)
    for word, given in words:
        value = _value(word, given, base, factor)
        if word in needed and needed[word] in (None, value):
            continue
        if word not in own or own[word] != value:
            return False
    return True


def _needed_values(method: Method, base: Recipe, factor: int) -> dict[str, str | None]:
    """The words of a method's controls, each with the value it must have, or None where any will do."""
    needed: dict[str, str | None] = {}
    for word, value in method.words:
        strength = _value(word, value, base, factor)
        for control in WORDS[word].controls:
            if control in RIVALS:
                continue
            if WORDS[control].value == FACTOR or word == "augment":
                needed[control] = strength
            else:
                needed[control] = f"noise:{strength}" if word == "noise" else None
    if method.resamples and base.resampling.augment and not method.augments:
        needed["augment-all"] = _value("augment-all", None, base, factor)
    return needed


def _copies(method: Method, base: Recipe) -> str | None:
    """The cure whose number of copies a method has: its own, or the one it is a control of."""
    cure = method.copied(base)
    return None if cure is None else "useful" if cure.copies in WEIGHING else cure.copies


def _value(word: str, value: str | None, base: Recipe, factor: int) -> str | None:
    """The value that a word has in a comparison: its own, its default, or that of the comparison."""
    known = WORDS[word]
    if value is None:
        value = known.default(base) if callable(known.default) else known.default
    return str(factor) if value is None and known.value == FACTOR else value


def _control(control: str, word: str, value: str | None, method: Method) -> str:
    """The control of one word of a method, spelled with the method's own values."""
    default = WORDS[word].default
    value = default if value is None and isinstance(default, str) else value
    if word == "noise":
        return f"{control}:noise:{value}"
    if word == "augment":
        return spelling(control, value)
    if WORDS[control].value != FACTOR:
        return control
    kept = MODIFIERS if control == "random" else OF_STEPS
    modifiers = [spelling(name, given) for name, given in method.words if name in kept]
    like = [f"like-{word}"] if f"like-{word}" in LIKE else []
    return "+".join([spelling(control, value), *like, *modifiers])
