"""A paper, and a claim: a comparison that the paper makes, declared before anything is run."""

import math
import re
from dataclasses import dataclass, field
from typing import Any, Literal

from evenly.errors import UsageError

DIRECTIONS = ("less", "greater", "equal")
Direction = Literal["less", "greater", "equal"]
_SIGNS: dict[str, Direction] = {"<": "less", ">": "greater", "=": "equal"}
_RELATION = re.compile(r"(?P<value>.+?) (?P<sign>[<>=]) (?P<against>.+?)(?: ± (?P<margin>[\d.e+-]+))?")


@dataclass(frozen=True)
class Paper:
    """A paper: the prefix of its experiments' keys, and its citation."""

    key: str
    name: str
    title: str
    authors: str
    bibtex: str


@dataclass(frozen=True)
class Claim:
    """One comparison of the paper, which the runs decide.

    Parameters
    ----------
    name
        Its name among the claims of its experiment.
    says
        The comparison in one sentence.
    relation
        The comparison as a formula: `a < b`, `a > b` or `a = b ± margin`, where `a` is the name of a measured quantity
        and `b` another one, paired with it seed by seed, or a number. `a = b` without a margin is about every seed.
    paper, paper_against
        The paper's numbers for the two, where it gives them.
    margin
        How far our difference may be from the paper's; for `=` the same as after `±`.
    corrects
        The statement is our correction of the paper: it is judged in the same way, but not part of the paper's verdict.
    after
        It was declared after a first run rather than in advance; rows and pages say so.
    note
        A comment: an erratum, the reason for the margin.

    Examples
    --------
    >>> claim = Claim("gap", "SAM's gap is half of GD's", "sam.gap = 0.5 ± 0.1")
    >>> claim.value, claim.direction, claim.against, claim.margin
    ('sam.gap', 'equal', 0.5, 0.1)
    """

    name: str
    says: str
    relation: str
    paper: float | None = None
    paper_against: float | None = None
    margin: float | None = None
    corrects: bool = False
    after: bool = False
    note: str = ""
    value: str = field(init=False)
    direction: Direction = field(init=False)
    against: str | float = field(init=False)

    def __post_init__(self) -> None:
        match = _RELATION.fullmatch(self.relation)
        if match is None:
            raise UsageError(f"claim {self.name!r}: write a < b, a > b or a = b ± margin, not {self.relation!r}.")
        direction = _SIGNS[match["sign"]]
        parts: dict[str, Any] = {"value": match["value"], "direction": direction, "against": _number(match["against"])}
        if direction == "equal":
            parts["margin"] = float(match["margin"] or self.margin or 0.0)
        elif match["margin"]:
            raise UsageError(f"claim {self.name!r}: ± belongs to a = b, and {self.relation!r} has a direction.")
        for name, part in parts.items():
            object.__setattr__(self, name, part)
        if self.margin is not None and not 0 <= self.margin < math.inf:
            raise UsageError(f"claim {self.name!r}: the margin {self.margin} must be 0 or larger.")
        if self.paper is not None and self.margin is None:
            raise UsageError(f"claim {self.name!r}: the paper's number {self.paper} needs a margin.")
        if self.paper is not None and self.paper_against is None and isinstance(self.against, str):
            raise UsageError(f"claim {self.name!r}: the paper's number for {self.against!r} is missing.")

    @property
    def effect(self) -> float | None:
        """The difference that the paper states; None where it gives no numbers."""
        if self.paper is None:
            return None
        return self.paper - (float(self.against) if self.paper_against is None else self.paper_against)


def _number(text: str) -> str | float:
    """The number that a text spells, or else the text: the name of a quantity."""
    try:
        return float(text)
    except ValueError:
        return text
