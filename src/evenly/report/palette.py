"""One name and one colour for each method, and other hues for easy and hard, on every chart, page and figure.

Each colour has a contrast of at least 3:1 on white and on the dark ground of the page (WCAG 2.2, 1.4.11). Lines of
controls are dashed: red-green blind readers tell the solid lines apart by colour and controls from methods by dashes.
"""

import re
from typing import NamedTuple

GREY = "#767E88"
EASY, HARD = "#C08A00", "#7E5BD6"


class Method(NamedTuple):
    """The name and look of a method."""

    name: str
    colour: str
    is_control: bool = False


#: The methods by the names they have in recipes, on the command line and in records, in the order of tables.
METHODS = {
    "plain": Method("plain", GREY, is_control=True),
    "random": Method("random", "#0F9D78", is_control=True),
    "steps": Method("equal steps", "#5F7F1C", is_control=True),
    "useful": Method("USEFUL", "#0070BA"),
    "sam": Method("SAM", "#D9480F"),
    "sam+useful": Method("SAM + USEFUL", "#C565B5"),
    "upweight": Method("upweight", "#A05A3C"),
    "quantile": Method("quantile", "#2E8FB3"),
    "misclassified": Method("misclassified", "#B5547A"),
}
#: Colours for series that are no methods, in turn.
SERIES = ("#0070BA", "#D9480F", "#0F9D78", "#C565B5", "#A87B00", "#2E8FB3", GREY)
#: For heat maps with a meaningful middle: blue below it, vermilion above.
DIVERGING = ("#0070BA", "#F2F2F2", "#D9480F")

_SPELLINGS = {
    "none": "plain", "original": "plain", "plain training": "plain", "sgd": "plain", "gd": "plain",
    "gradient descent": "plain", "original data": "plain",
    "upweighted": "upweight", "equal steps": "steps", "as many steps": "steps", "random upsampling": "random",
    "sgd+useful": "useful", "gd+useful": "useful",
}  # fmt: skip


def method(name: str) -> str | None:
    """The method that a name in a record, a recipe or a legend means; None where it is no method.

    >>> method("SGD"), method("original"), method("SAM + USEFUL"), method("useful:8"), method("epoch")
    ('plain', 'plain', 'sam+useful', 'useful', None)
    >>> method("random ×8"), method("SAM + USEFUL ×8")
    ('random', 'sam+useful')
    """
    key = re.sub(r"\s*\+\s*", "+", name.strip().lower())
    key = re.sub(r"(:| ×)[^+]*", "", key)  # a value
    key = _SPELLINGS.get(key, key)
    return key if key in METHODS else None


def display_name(name: str) -> str:
    """A method's name as pages and tables show it; any other name as it is.

    >>> display_name("useful"), display_name("original"), display_name("useful, factor 5"), display_name("lookahead")
    ('USEFUL', 'plain', 'USEFUL, factor 5', 'lookahead')
    >>> display_name("sam+useful:8")
    'SAM + USEFUL:8'
    >>> display_name("USEFUL ×8, noise 0.2")
    'USEFUL ×8, noise 0.2'
    """
    first, comma, rest = name.partition(",")
    known, value = method(first), re.search(r"(:| ×)[^+]*$", first)
    return f"{METHODS[known].name}{value[0] if value else ''}{comma}{rest}" if known else name


def colour_of(name: str) -> str | None:
    """The colour of a method, or of easy and hard, by its name in a legend; None for anything else.

    >>> colour_of("USEFUL") == colour_of("useful, factor 5"), colour_of("hard examples"), colour_of("density")
    (True, '#7E5BD6', None)
    """
    known = method(name.partition(",")[0])
    if known:
        return METHODS[known].colour
    parts = {"easy": EASY, "hard": HARD, "difficult": HARD}
    return next((hue for word, hue in parts.items() if re.match(rf"{word}( (feature|examples|part))?$", name)), None)


def is_control(name: str) -> bool:
    """Whether a name in a legend is that of a control, whose line is dashed, whatever its values.

    >>> is_control("plain"), is_control("random ×8 + noise 0.2"), is_control("USEFUL ×8"), is_control("SAM + random")
    (True, True, False, False)
    """
    words = [re.sub(r" ×.*", "", word) for word in name.partition(",")[0].split("+")]
    known = [own for word in words if (own := method(word)) is not None]
    return bool(known) and all(METHODS[own].is_control for own in known)
