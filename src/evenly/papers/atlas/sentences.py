"""Numbers of the atlas in the sentences of the documentation: each is bound to its cells and filled in from the rows.

A comment behind a number names what it is: `−2.3 ± 1.1<!-- atlas: lacking-20 useful balanced -->`. The words are a task
(or several: patterns, separated by commas), a cure, `vs` and another cure if it is not compared with plain training,
and a kind of error (or `any`); or a task, `early` and a quantity of its early networks. Before the cure, `lower`,
`higher` or `lowest` asks for the tasks on which its interval lies below zero or above it, or its mean is the lowest of
all cures: `7 of the 8`, `0.5 to 13.2`, `up to 39.5`. The number's own form decides how it is written; one without a
sign stands beside a word such as *worse* and is never negative.

`<!-- until: TASK -->` follows what is said only as long as that task has not been measured.
"""

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatch
from statistics import fmean

from evenly.errors import UsageError
from evenly.intervals import Interval, paired_difference
from evenly.papers.atlas.cells import Row
from evenly.papers.atlas.cures import CURES
from evenly.papers.atlas.tasks import ERRORS

_NUMBER = r"[+−]?\d+(?:\.\d+)?"
_FORMS = (
    rf"{_NUMBER} ± {_NUMBER}",
    rf"{_NUMBER} \[{_NUMBER}, {_NUMBER}\]",
    rf"{_NUMBER} to {_NUMBER}",
    rf"up to {_NUMBER}",
    r"\d+ of (?:the )?\d+",
    rf"{_NUMBER}%",
    _NUMBER,
)
BOUND = re.compile(rf"({'|'.join(_FORMS)})<!-- atlas: ([^>]+?) -->")
UNTIL = re.compile(r"([^.|]*\.?)<!-- until: (\S+) -->")


def filled(text: str, rows: Sequence[Row]) -> str:
    """The text with every bound number as the rows have it; what a person must edit stays as it is."""

    def current(place: re.Match[str]) -> str:
        shown, query = place.groups()
        try:
            return f"{_written(shown, query, rows)}<!-- atlas: {query} -->"
        except UsageError:
            return place[0]

    return BOUND.sub(current, text)


def complaints(text: str, rows: Sequence[Row]) -> list[str]:
    """A sentence for each place that a person must edit: other signs, unknown cells, what has since been measured."""
    told = []
    for place in BOUND.finditer(text):
        try:
            _written(place[1], place[2], rows)
        except UsageError as error:
            told.append(f"line {_line(text, place)}: {error}")
    unread = text.count("<!-- atlas:") - len(BOUND.findall(text))
    if unread:
        told.append(f"{unread} comments `<!-- atlas: … -->` stand behind no number")
    measured = {_name(row) for row in rows}
    told += [
        f"line {_line(text, place)}: {place[2]} has been measured: rewrite what was said before ({place[1].strip()!r})"
        for place in UNTIL.finditer(text)
        if place[2] in measured
    ]
    return told


def _written(shown: str, query: str, rows: Sequence[Row]) -> str:
    """The number that the query asks for, in the form of the one that is shown."""
    words = query.split()
    asked = words.pop(1) if len(words) > 2 and words[1] in _QUESTIONS else ""
    own, other = _own(words[0], rows), "plain"
    if words[1:2] == ["early"] and len(own) == 1 and f"early.{words[-1]}" in own[0]["quantities"]:
        return f"{100 * fmean(own[0]['quantities'][f'early.{words[-1]}'].values()):.{_decimals(shown)}f}%"
    if len(words) == 5 and words[2] == "vs":
        other = words.pop(3)
        words.pop(2)
    if len(words) != 3 or not {words[1], other} <= {*CURES} or words[2] not in (*ERRORS, "any"):
        raise UsageError(f"{query!r} is not TASK [lower|higher|lowest] CURE [vs CURE] ERROR")
    _, cure, error = words
    errors = [*ERRORS] if error == "any" else [error]
    pairs = [(row, kind) for row in own for kind in errors]
    if asked:
        return _QUESTIONS[asked](shown, query, [(row, kind, cure, other) for row, kind in pairs])
    if len(pairs) != 1:
        raise UsageError(f"{query!r} is {len(pairs)} cells: name one, or ask for lower, higher or lowest")
    [(row, kind)] = pairs
    if shown.endswith("%"):
        return f"{fmean(_errors(row, cure, kind)):.{_decimals(shown)}f}%"
    return _interval(shown, query, paired_difference(_errors(row, cure, kind), _errors(row, other, kind)))


_Asked = tuple[Row, str, str, str]


def _lower(shown: str, query: str, asked: Sequence[_Asked], sign: int = -1) -> str:
    differences = [paired_difference(_errors(r, cure, kind), _errors(r, other, kind)) for r, kind, cure, other in asked]
    means = [abs(each.mean) for each in differences if each.excludes_zero and each.mean * sign > 0]
    if " of " in shown:
        return _count(shown, len(means), len(asked))
    if not means:
        raise UsageError(f"{shown!r} is shown for {query!r}, and no interval lies on that side of zero")
    if shown.startswith("up to "):
        return f"up to {max(means):.{_decimals(shown)}f}"
    if " to " in shown:
        return f"{min(means):.{_decimals(shown)}f} to {max(means):.{_decimals(shown)}f}"
    raise UsageError(f"{shown!r} for {query!r}: write it as '7 of 8', '0.5 to 13.2' or 'up to 39.5'")


def _higher(shown: str, query: str, asked: Sequence[_Asked]) -> str:
    return _lower(shown, query, asked, 1)


def _lowest(shown: str, query: str, asked: Sequence[_Asked]) -> str:
    if " of " not in shown:
        raise UsageError(f"{shown!r} for {query!r}: write it as '7 of 8'")
    best = [min(CURES, key=lambda name: fmean(_errors(row, name, kind))) for row, kind, _, _ in asked]
    return _count(shown, best.count(asked[0][2]), len(best))


_QUESTIONS: dict[str, Callable[[str, str, Sequence[_Asked]], str]] = {
    "lower": _lower,
    "higher": _higher,
    "lowest": _lowest,
}


def _interval(shown: str, query: str, difference: Interval) -> str:
    digits, signed = _decimals(shown), shown[0] in "+−"
    mean = round(difference.mean, digits) + 0.0
    if mean and ((signed and (mean < 0) != (shown[0] == "−")) or (not signed and mean < 0)):
        raise UsageError(f"{shown!r} is shown for {query!r}, whose sign is now that of {mean:+.{digits}f}: reword it")
    sign = "+" if signed else ""
    text = f"{mean:{sign if mean else ''}.{digits}f}"
    if "±" in shown:
        text += f" ± {difference.half_width:.{digits}f}"
    elif "[" in shown:
        text += f" [{difference.low:{sign}.{digits}f}, {difference.high:{sign}.{digits}f}]"
    return text.replace("-", "−")


def _count(shown: str, number: int, total: int) -> str:
    """A count as it was shown.

    >>> _count("7 of the 8", 9, 11)
    '9 of the 11'
    """
    return f"{number}{' of the ' if ' the ' in shown else ' of '}{total}"


def _own(patterns: str, rows: Sequence[Row]) -> list[Row]:
    own = [row for row in rows if any(fnmatch(_name(row), pattern) for pattern in patterns.split(","))]
    if not own:
        raise UsageError(f"no task that has been measured is called {patterns!r}")
    return own


def _errors(row: Row, cure: str, error: str) -> list[float]:
    return [*row["quantities"][f"{cure}.{error}"].values()]


def _decimals(shown: str) -> int:
    """The digits behind the point of the first number.

    >>> _decimals("−2.35 ± 1.10"), _decimals("up to 40")
    (2, 0)
    """
    first = re.search(_NUMBER, shown)
    return len(first[0].partition(".")[2]) if first else 0


def _name(row: Row) -> str:
    return str(row["key"]).partition("/")[2]


def _line(text: str, place: re.Match[str]) -> int:
    return text.count("\n", 0, place.end()) + 1
