"""Whether a claim held: by rule, from paired t-intervals over seeds, never by hand."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from evenly.errors import UsageError, did_you_mean
from evenly.intervals import Interval, interval, num_seeds
from evenly.papers.claim import Claim
from evenly.report.verdict_words import HOLDS as WORDS_THAT_HOLD

Verdict = Literal[
    "reproduced", "stronger than claimed", "weaker than claimed", "inconclusive", "contradicted", "not run"
]
#: From best to worst.
VERDICTS: tuple[Verdict, ...] = (
    "reproduced",
    "stronger than claimed",
    "weaker than claimed",
    "inconclusive",
    "contradicted",
    "not run",
)
#: The verdicts under which the direction that was claimed is established.
HOLDS = frozenset(WORDS_THAT_HOLD)
LEVEL = 0.3  # relative difference between our two numbers and the paper's that needs no remark


@dataclass(frozen=True)
class Judged:
    """A claim beside what was measured: ours, the difference seed by seed, and what the rule says.

    `effect` is the difference that the paper states, None if it gives none or if its numbers are not comparable with
    ours. `seeds_needed` is given for an inconclusive claim: the number of seeds that would settle it with probability
    0.9, None if no feasible number would. It assumes what `settled_if` says: that the claim is right (`claimed`); or,
    if the paper states no effect, the interval excludes it, that many seeds were run already, or only the size is open,
    that the mean is as measured (`measured`). `same_level` says whether the two numbers are about as large as the
    paper's: a difference of the right size at another level gets a remark.
    """

    claim: Claim
    value: Interval
    against: Interval | None
    difference: Interval
    effect: float | None
    same_level: bool | None
    verdict: Verdict
    seeds_needed: int | None
    settled_if: Literal["claimed", "measured"] | None
    seeds: tuple[int, ...]
    values: tuple[float, ...]
    references: tuple[float, ...]


def judge(claim: Claim, measured: Mapping[str, Mapping[int, float]], *, levels: bool = True) -> Judged:
    """The verdict on one claim, from the paired differences d, their 95% interval and the paper's effect e.

    - *reproduced*: the interval excludes 0 on the claimed side, and the mean is within the margin of e, if given;
    - *weaker*, *stronger than claimed*: it excludes 0 on the claimed side, and e; the mean is outside the margin;
    - *contradicted*: it lies wholly on the other side of 0, or is exactly 0, or excludes even half of e;
    - *inconclusive*: everything else, also an interval on the claimed side that holds e, around a mean outside the
      margin; one seed alone can at most contradict a statement about every seed.

    "Equal" up to a margin is reproduced where the interval lies within the margin, contradicted where it lies wholly
    outside, and inconclusive where it does neither; a margin of 0 is a statement about every seed. With `levels=False`
    the paper's numbers are not compared with ours.

    >>> claim = Claim("gap", "b is below a", "b < a")
    >>> judge(claim, {"a": {0: 1.0, 1: 2.0, 2: 3.0}, "b": {0: 0.5, 1: 1.6, 2: 2.4}}).verdict
    'reproduced'
    >>> wide = judge(claim, {"a": {0: 1.0, 1: 2.0}, "b": {0: 0.9, 1: 0.0}})
    >>> wide.verdict, wide.seeds_needed
    ('inconclusive', 20)
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
    value, against = interval(values), interval(references)
    difference = interval([a - b for a, b in zip(values, references, strict=True)])
    effect = claim.effect if levels else None
    if claim.direction == "equal":
        verdict = _equality(claim, difference, list(zip(values, references, strict=True)))
    else:
        verdict = _direction(claim, difference, effect)
    needed, settled_if = _seeds_needed(claim, difference, effect) if verdict == "inconclusive" else (None, None)
    return Judged(
        claim=claim,
        value=value,
        against=against if isinstance(claim.against, str) else None,
        difference=difference,
        effect=effect,
        same_level=_same_level(claim, value, against) if levels else None,
        verdict=verdict,
        seeds_needed=needed,
        settled_if=settled_if,
        seeds=seeds,
        values=values,
        references=references,
    )


def is_worse(now: str, before: str) -> bool:
    """Whether a verdict is worse than it was; what was not run cannot worsen.

    >>> is_worse("contradicted", "reproduced"), is_worse("reproduced", "reproduced"), is_worse("reproduced", "not run")
    (True, False, False)
    >>> is_worse("stronger than claimed", "reproduced")
    False
    """
    kept = now == "stronger than claimed" and before == "reproduced"
    return before != "not run" and VERDICTS.index(now) > VERDICTS.index(before) and not kept


def _direction(claim: Claim, difference: Interval, effect: float | None) -> Verdict:
    if difference.n < 2:
        return "inconclusive"
    sign = -1.0 if claim.direction == "less" else 1.0
    low, high = sorted((sign * difference.low, sign * difference.high))
    if low > 0:
        if effect is None or abs(difference.mean - effect) <= (claim.margin or 0.0):
            return "reproduced"
        if difference.low <= effect <= difference.high:
            return "inconclusive"  # the side is established, the size is not
        return "weaker than claimed" if sign * difference.mean < sign * effect else "stronger than claimed"
    # An interval of no width at 0, as exact computations have it, shows that there is no difference.
    if high <= 0 or (effect is not None and high < sign * effect / 2):
        return "contradicted"
    return "inconclusive"


def _equality(claim: Claim, difference: Interval, pairs: Sequence[tuple[float, float]]) -> Verdict:
    bound = claim.margin or 0.0
    if bound == 0:  # a statement about every seed: one that breaks it refutes it
        if any(value != other for value, other in pairs):
            return "contradicted"
        return "reproduced" if len(pairs) > 1 else "inconclusive"
    if difference.n < 2:
        return "inconclusive"
    if max(abs(difference.low), abs(difference.high)) <= bound:
        return "reproduced"
    return "contradicted" if difference.low > bound or difference.high < -bound else "inconclusive"


def _seeds_needed(
    claim: Claim, difference: Interval, effect: float | None
) -> tuple[int | None, Literal["claimed", "measured"] | None]:
    """The number of seeds that would settle a claim, and the assumption about the truth that it rests on."""
    wanted = 0.9
    if claim.direction == "equal":  # to be seen: the distance to the nearer end of the margin
        margin = claim.margin or 0.0
        claimed, if_claimed, if_measured = 0.0, margin, margin - abs(difference.mean)
        wanted = 0.95  # from the middle the interval can leave the margin at both ends, with 0.05 at each
    elif effect is not None and difference.excludes_zero:  # only the size is open: to be seen is that it is another
        claimed, if_claimed, if_measured = math.nan, math.nan, difference.mean - effect
    else:
        claimed = if_claimed = math.nan if effect is None else effect
        if_measured = difference.mean
    if difference.low <= claimed <= difference.high:
        needed = num_seeds(if_claimed, difference.deviation, wanted=wanted)
        if needed is None or needed > difference.n:
            return needed, "claimed" if needed else None
    needed = num_seeds(if_measured, difference.deviation)
    return needed, "measured" if needed else None


def _same_level(claim: Claim, value: Interval, against: Interval) -> bool | None:
    if claim.paper is None or claim.paper_against is None or claim.margin is None:
        return None
    pairs = ((value.mean, claim.paper), (against.mean, claim.paper_against))
    return all(abs(ours - theirs) <= max(claim.margin, LEVEL * abs(theirs)) for ours, theirs in pairs)


def _quantity(name: str, measured: Mapping[str, Mapping[int, float]]) -> Mapping[int, float]:
    if name not in measured:
        raise UsageError(f"a claim is about {name!r}, which was not measured. {did_you_mean(name, measured)}")
    wrong = [seed for seed, number in measured[name].items() if not math.isfinite(number)]
    if wrong:
        raise UsageError(f"{name!r} is not finite for seed {wrong[0]}: measure something that is, such as a share.")
    return measured[name]
