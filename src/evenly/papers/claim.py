"""A paper, and a claim: a comparison that the paper makes, declared before anything is run."""

from dataclasses import dataclass
from typing import Literal

from evenly.errors import UsageError

DIRECTIONS = ("less", "greater", "equal")
Direction = Literal["less", "greater", "equal"]


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

    `value` is the name of a measured quantity, `against` another one, paired with it seed by seed, or a number.

    Parameters
    ----------
    name
        Its name among the claims of its experiment.
    says
        The comparison in one sentence.
    direction
        The claimed relation of `value` to `against`: "less", "greater", or "equal" up to `margin`.
    paper, paper_against
        The paper's numbers for the two, where it gives them.
    margin
        How far our number may be from the paper's; for "equal", how far the two may be apart.
    corrects
        The statement is our correction of the paper: it is judged in the same way, but not part of the paper's verdict.
    after
        It was declared after a first run rather than in advance; rows and pages say so.
    note
        A comment: an erratum, the reason for the margin.
    """

    name: str
    says: str
    value: str
    direction: Direction
    against: str | float = 0.0
    paper: float | None = None
    paper_against: float | None = None
    margin: float | None = None
    corrects: bool = False
    after: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise UsageError(f"claim {self.name!r}: direction is less, greater or equal, not {self.direction!r}.")
        if self.direction == "equal" and self.margin is None:
            raise UsageError(f"claim {self.name!r}: equal needs a margin, up to which.")
        if self.paper is not None and self.margin is None:
            raise UsageError(f"claim {self.name!r}: the paper's number {self.paper} needs a margin, set in advance.")
        if self.paper is not None and self.paper_against is None and isinstance(self.against, str):
            raise UsageError(f"claim {self.name!r}: the paper's number for {self.against!r} is missing.")

    @property
    def effect(self) -> float | None:
        """The difference that the paper states; None where it gives no numbers."""
        if self.paper is None:
            return None
        return self.paper - (float(self.against) if self.paper_against is None else self.paper_against)
