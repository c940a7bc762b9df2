"""Whether a claim held: by rule, from paired t-intervals over seeds, never by hand."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evenly.errors import UsageError, did_you_mean
from evenly.intervals import Interval, interval
from evenly.papers.experiment import Claim

Verdict = Literal["reproduced", "same direction only", "not reproduced", "not run"]
LEVEL = 0.3  # where the paper gives both sides of a comparison, the part of each by which ours may differ
# From best to worst.
VERDICTS: tuple[Verdict, ...] = ("reproduced", "same direction only", "not reproduced", "not run")


@dataclass(frozen=True)
class Judged:
    """A claim beside what was measured: ours, the difference seed by seed, and what the rule says."""

    claim: Claim
    value: Interval
    against: Interval | None
    difference: Interval
    within: bool | None
    verdict: Verdict
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    references: tuple[float, ...]


def judged(claim: Claim, measured: Mapping[str, Mapping[int, float]], *, levels: bool = True) -> Judged:
    """The verdict on one claim.

    - *reproduced*: the difference has the claimed sign and its 95 % interval excludes zero ("equal": the interval lies
      within the margin); and, where the paper gives a number and `levels` are comparable, ours is within the margin.
    - *same direction only*: the mean has the claimed sign (is within the margin), but not all of the above.
    - *not reproduced*: it has not.

    >>> claim = Claim("gap", "b is below a", "b", "less", "a")
    >>> judged(claim, {"a": {0: 1.0, 1: 2.0, 2: 3.0}, "b": {0: 0.5, 1: 1.6, 2: 2.4}}).verdict
    'reproduced'
    >>> judged(claim, {"a": {0: 1.0, 1: 2.0}, "b": {0: 0.9, 1: 0.0}}).verdict
    'same direction only'
    """
    own = _quantity(claim.value, measured)
    if isinstance(claim.against, str):
        reference = _quantity(claim.against, measured)
        seeds = tuple(seed for seed in own if seed in reference)
        if len(seeds) < max(len(own), len(reference)):
            raise UsageError(f"claim {claim.name!r}: {claim.value} and {claim.against} were not run with equal seeds.")
        references = tuple(float(reference[seed]) for seed in seeds)
    else:
        seeds, references = tuple(own), (float(claim.against),) * len(own)
    values = tuple(float(own[seed]) for seed in seeds)
    difference = interval([a - b for a, b in zip(values, references, strict=True)])
    within = _within(claim, interval(values), interval(references), difference) if levels else None
    return Judged(
        claim=claim,
        value=interval(values),
        against=interval(references) if isinstance(claim.against, str) else None,
        difference=difference,
        within=within,
        verdict=_rule(claim, difference, within),
        seeds=seeds,
        values=values,
        references=references,
    )


def overall(claims: Sequence[Judged]) -> Verdict:
    """The verdict on an experiment: the worst among the paper's own claims.

    >>> overall([])
    'not run'
    """
    own = [each.verdict for each in claims if not each.claim.corrects]
    return max(own, key=VERDICTS.index, default="not run")


def worse(now: str, before: str) -> bool:
    """Whether a verdict is worse than it was; what was not run cannot worsen.

    >>> worse("not reproduced", "reproduced"), worse("reproduced", "reproduced"), worse("reproduced", "not run")
    (True, False, False)
    """
    return before != "not run" and VERDICTS.index(now) > VERDICTS.index(before)


def _rule(claim: Claim, difference: Interval, within: bool | None) -> Verdict:
    mean = difference.mean
    if claim.direction == "equal":
        bound = claim.margin if claim.margin is not None else 0.0
        holds, surely = abs(mean) <= bound, max(abs(difference.low), abs(difference.high)) <= bound
        if math.isnan(difference.low):
            surely = False
    else:
        holds = mean < 0 if claim.direction == "less" else mean > 0
        surely = holds and difference.excludes_zero
    if not holds:
        return "not reproduced"
    return "reproduced" if surely and within is not False else "same direction only"


def _within(claim: Claim, value: Interval, reference: Interval, difference: Interval) -> bool | None:
    """Whether ours is as near to the paper's numbers as was asked in advance; None where there are none.

    One number is held against ours by the margin. Of two, their difference is, and each of them must be of the paper's
    size: a drop of the right height from another level is another result.
    """
    if claim.paper is None or claim.margin is None:
        return None
    if claim.paper_against is None:
        return abs(value.mean - claim.paper) <= claim.margin
    near = abs(difference.mean - (claim.paper - claim.paper_against)) <= claim.margin
    pairs = ((value.mean, claim.paper), (reference.mean, claim.paper_against))
    return near and all(abs(ours - theirs) <= max(claim.margin, LEVEL * abs(theirs)) for ours, theirs in pairs)


def _quantity(name: str, measured: Mapping[str, Mapping[int, float]]) -> Mapping[int, float]:
    if name not in measured:
        raise UsageError(f"a claim is about {name!r}, which was not measured. {did_you_mean(name, measured)}")
    wrong = [seed for seed, number in measured[name].items() if not math.isfinite(number)]
    if wrong:
        raise UsageError(f"{name!r} is not finite for seed {wrong[0]}: measure something that is, such as a share.")
    return measured[name]
