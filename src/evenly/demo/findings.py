"""What the demo found, said in plain words: every sentence follows from the numbers, whatever they are."""

from collections.abc import Mapping
from statistics import median
from typing import Any

from evenly.intervals import Interval, interval, paired_difference
from evenly.report import palette

Plain = Mapping[str, Any]
METHODS = {name: palette.display_name(name) for name in ("plain", "random", "useful", "sam")}
IMAGE_METHODS = {name: palette.display_name(name) for name in ("plain", "random", "useful")}


def at_end(toy: Plain, method: str, feature: str) -> list[float]:
    """The alignment of each seed's network with a feature after the last step."""
    return list(toy["alignment"][method][feature][-1])


def balance(toy: Plain, method: str) -> list[float]:
    """Difficult over easy alignment of each seed after the last step: 1 is an even hand."""
    return [hard / easy for hard, easy in zip(at_end(toy, method, "hard"), at_end(toy, method, "easy"), strict=True)]


def errors(images: Plain, method: str, split: str) -> list[float]:
    """The error of each seed, seed by seed, in per cent."""
    own = sorted((row for row in images["rows"] if row["method"] == method), key=lambda row: row["seed"])
    return [100 * row[f"error.{split}"] for row in own]


def difference_text(difference: Interval, *, digits: int = 2) -> str:
    """A difference with its interval.

    >>> difference_text(interval([0.1, 0.2, 0.3]))
    '+0.20 [−0.05, +0.45]'
    """
    numbers = [f"{value:+.{digits}f}".replace("-", "−") for value in (difference.mean, difference.low, difference.high)]
    return numbers[0] if difference.n < 2 else f"{numbers[0]} [{numbers[1]}, {numbers[2]}]"


def toy_findings(toy: Plain) -> list[str]:
    """The lean to the easy feature, what the separation finds, what the cures change, and the test errors."""
    return [lean(toy), hits(toy["separations"], what="lack the easy patch"), growth(toy), test_errors(toy)]


def headline(toy: Plain) -> str:
    """The bias and its cure in two sentences, whatever the numbers say."""
    easy, hard = median(at_end(toy, "plain", "easy")), median(at_end(toy, "plain", "hard"))
    bias = (
        f"Plain training follows the easy feature {easy / hard:.1f} times as far as the difficult one."
        if easy > hard
        else "Plain training follows the easy feature no further than the difficult one."
    )
    gains = {
        name: paired_difference(at_end(toy, name, "hard"), at_end(toy, "plain", "hard"))
        for name in ("useful", "random", "sam")
    }
    cures = [METHODS[name] for name in ("useful", "sam") if gains[name].low > 0]
    if not cures:
        by = " and ".join(f"{METHODS[name]}'s {difference_text(gains[name])}" for name in ("useful", "sam"))
        return f"{bias} With so few seeds, the changes in the difficult one ({by}) may be chance."
    by = f", by {difference_text(gains['useful'])}" if cures == ["USEFUL"] else ""
    own = f"{' and '.join(cures)} let{'s' * (len(cures) == 1)} the difficult one grow{by}"
    control = "; showing as many random examples twice does not" if not gains["random"].low > 0 else ""
    return f"{bias} {own}{control}."


def lean(toy: Plain) -> str:
    """How far plain training follows each of the two features."""
    easy, hard = median(at_end(toy, "plain", "easy")), median(at_end(toy, "plain", "hard"))
    text = (
        f"Plain gradient descent ends with an alignment of {easy:.2f} with the easy feature and of {hard:.2f} with the "
        f"difficult one (medians of {toy['setting']['seeds']} seeds)."
    )
    even = sum(ratio >= 1 for ratio in balance(toy, "plain"))
    return text + (f" With {even} of them the initial weights let it learn both." if even else "")


def hits(separations: Any, *, what: str) -> str:
    """How well the separation finds the examples that lack something.

    >>> hits([{"precision": 1.0, "recall": 1.0}], what="lack the easy patch")
    'Separating the early outputs finds exactly the examples that lack the easy patch, with 1 of 1 seeds.'
    """
    exact = sum(row["precision"] == row["recall"] == 1 for row in separations)
    if exact == len(separations):
        return f"Separating the early outputs finds exactly the examples that {what}, with {exact} of {exact} seeds."
    precision, recall = (interval([row[name] for row in separations]).mean for name in ("precision", "recall"))
    seeds = f"{len(separations)} seeds{f', {exact} of them exact' if exact else ''}"
    return (
        f"Separating the early outputs finds {recall:.1%} of the examples that {what}, and of what it finds, "
        f"{precision:.1%} are such examples (means of {seeds})."
    )


def growth(toy: Plain) -> str:
    """How much further than plain training each method goes along the difficult feature."""
    plain, parts = at_end(toy, "plain", "hard"), []
    for method in ("useful", "random", "sam"):
        own = at_end(toy, method, "hard")
        more = sum(a > b for a, b in zip(own, plain, strict=True))
        difference = paired_difference(own, plain)
        sure = "" if difference.excludes_zero else ", which may be chance"
        parts.append(f"{METHODS[method]} {difference_text(difference)} (higher with {more} of {len(own)} seeds{sure})")
    return f"Alignment with the difficult feature, against plain training: {'; '.join(parts)}."


def test_errors(toy: Plain) -> str:
    """The test error of plain training, and the change with each method."""
    wrong = {method: [100 * error for error in toy["error"][method]] for method in METHODS}
    parts = [
        f"{METHODS[m]} {difference_text(paired_difference(wrong[m], wrong['plain']))}"
        for m in ("useful", "random", "sam")
    ]
    return (
        f"Test error: {interval(wrong['plain']).mean:.1f}% with plain training; changes in points: {'; '.join(parts)}."
    )


def image_findings(images: Plain) -> list[str]:
    """What the separation found among the images, and what training on it changed, split by split."""
    return [
        hits(images["separations"], what="have no upper digit"),
        f"Test error on data made like the training set: {compare_methods(images, 'test')}",
        f"Test error on data whose upper digit says nothing about the label: {compare_methods(images, 'balanced')}",
    ]


def compare_methods(images: Plain, split: str) -> str:
    """USEFUL against plain training and against random upsampling on one split, in points of error."""
    own, plain, chance = (errors(images, method, split) for method in ("useful", "plain", "random"))
    gain, over = paired_difference(own, plain), paired_difference(own, chance)
    text = f"{interval(plain).mean:.1f}% with plain training; USEFUL changes it by {difference_text(gain)} points"
    if not gain.excludes_zero:
        return f"{text}, which may be chance ({gain.n} paired seeds)."
    text += f", and by {difference_text(over)} against random upsampling: "
    better = gain.mean < 0
    if not over.excludes_zero:
        return text + ("some of it may be the extra steps." if better else "worse, which may be the extra steps.")
    if over.mean < 0:
        return text + ("more than the extra steps explain." if better else "worse, but less so than random upsampling.")
    return text + ("less than the extra steps alone give." if better else "worse than either.")
