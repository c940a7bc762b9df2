"""Verdicts in words: the rule's word for the paper, and words that never judge it for stand-ins and remarks."""

from collections.abc import Mapping, Sequence
from typing import Any

Row = Mapping[str, Any]
#: Verdicts on the paper, from best to worst, with their marks.
MARK = {
    "reproduced": "✓",
    "stronger than claimed": "✓",
    "weaker than claimed": "~",
    "inconclusive": "?",
    "contradicted": "✗",
    "not run": "·",
}
#: The kinds of rows, and their titles.
KINDS = {
    "paper": "Claims of the papers",
    "stand-in": "Stand-ins (other data, network or regime)",
    "remark": "Our remarks and corrections",
    "atlas": "Atlas of cures",
}
MANY = 1000  # seeds, more than which no one runs
HOLDS = ("reproduced", "stronger than claimed", "weaker than claimed")
_STAND_IN = {"inconclusive": "unclear in a stand-in", "contradicted": "not seen in a stand-in"}
# A single row knows nothing of the correction over the whole atlas, so its words are never certain.
_ATLAS = {"inconclusive": "unclear", "contradicted": "may harm"}
_ATLAS_ORDER = ("helps", "may help", "unclear", "may harm", "harms")
_REMARK = {"inconclusive": "unclear", "contradicted": "does not hold"}


def verdict_words(verdict: str, kind: str) -> str:
    """The verdict in words: stand-ins (other data, network or regime) and remarks do not judge the paper.

    >>> verdict_words("contradicted", "paper"), verdict_words("contradicted", "stand-in")
    ('✗ contradicted', 'not seen in a stand-in')
    >>> verdict_words("weaker than claimed", "stand-in"), verdict_words("reproduced", "remark")
    ('seen in a stand-in', 'holds')
    >>> verdict_words("reproduced", "atlas")
    'may help'
    """
    if verdict == "not run" or kind == "paper":
        return f"{MARK[verdict]} {verdict}"
    if kind == "stand-in":
        return _STAND_IN.get(verdict, "seen in a stand-in")
    if kind == "atlas":
        return _ATLAS.get(verdict, "may help")
    return _REMARK.get(verdict, "holds")


def claim_words(claim: Mapping[str, Any], kind: str) -> str:
    """The verdict of one claim in words: a cure of the atlas that changed nothing with any seed does no harm.

    >>> claim_words({"verdict": "contradicted", "difference": {"mean": 0.0, "low": 0.0, "high": 0.0, "n": 10}}, "atlas")
    'unclear'
    """
    difference = claim["difference"]
    same = difference["low"] == difference["high"] == 0
    return verdict_words("inconclusive" if kind == "atlas" and same else claim["verdict"], kind)


def line_words(line: Mapping[str, Any]) -> str:
    """The verdict of a line of the overview in words: the line's own, where several rows were corrected together.

    >>> line_words({"verdict": "reproduced", "kind": "atlas", "corrected": "helps"})
    'helps'
    """
    return line.get("corrected") or verdict_words(line["verdict"], line["kind"])


def open_question(claim: Mapping[str, Any]) -> str:
    """What an inconclusive claim leaves open, and how many seeds would settle it; nothing for other claims.

    >>> claim = {"verdict": "inconclusive", "effect": -0.28, "seeds_needed": 24, "settled_if": "claimed",
    ...          "direction": "less", "difference": {"mean": 0.05, "low": -0.95, "high": 1.05, "n": 3}}
    >>> open_question(claim)
    '± 1 around an effect of −0.28; about 24 seeds would settle it if the claim is right'
    >>> open_question(claim | {"effect": None, "seeds_needed": 608, "settled_if": "measured"})
    '± 1 around a mean of 0.05; about 610 seeds would settle it if the mean is as measured'
    >>> one_side = {"mean": -0.8, "low": -1.46, "high": -0.14, "n": 3}
    >>> open_question(claim | {"difference": one_side, "effect": -1.0, "seeds_needed": 21, "settled_if": "measured"})
    'the direction is as claimed, the size open: ± 0.66 around an effect of −1; about 21 seeds would settle it if the
    mean is as measured'
    """
    if claim["verdict"] != "inconclusive":
        return ""
    difference = claim["difference"]
    if difference["low"] is None:
        return "one seed has no interval"
    width = f"± {(difference['high'] - difference['low']) / 2:.3g}"
    around = f"a mean of {difference['mean']:.3g}" if claim["effect"] is None else f"an effect of {claim['effect']:.3g}"
    around = around.replace(" -", " −")
    if claim["direction"] != "equal" and (difference["low"] > 0 or difference["high"] < 0):
        width = f"the direction is as claimed, the size open: {width}"
    needed = claim["seeds_needed"]
    if not needed or needed > MANY:
        return f"{width} around {around}; more than {MANY:,} seeds would be needed to settle it"
    rounded = needed if needed < 100 else round(needed, -1)
    assumed = {"claimed": " if the claim is right", "measured": " if the mean is as measured"}
    return (
        f"{width} around {around}; about {rounded} seeds would settle it{assumed.get(str(claim.get('settled_if')), '')}"
    )


def num_holding(row: Row) -> tuple[int, int]:
    """How many of the paper's claims in a row hold, and how many there are; in a remark of ours, of our own."""
    own = [claim["verdict"] for claim in row["claims"] if claim["corrects"] == (row["kind"] == "remark")]
    return sum(verdict in HOLDS for verdict in own), len(own)


def counts(lines: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, int]]:
    """How often each verdict was given, for each kind of row, from the best to the worst.

    >>> counts([{"kind": kind, "verdict": verdict} for kind, verdict in
    ...         (("paper", "not run"), ("paper", "reproduced"), ("stand-in", "inconclusive"))])
    {'paper': {'✓ reproduced': 1, '· not run': 1}, 'stand-in': {'unclear in a stand-in': 1}}
    """
    counted: dict[str, dict[str, int]] = {}
    for kind in KINDS:
        order = [*(_ATLAS_ORDER if kind == "atlas" else ()), *(verdict_words(verdict, kind) for verdict in MARK)]
        words = sorted((line_words(line) for line in lines if line["kind"] == kind), key=order.index)
        if words:
            counted[kind] = {word: words.count(word) for word in dict.fromkeys(words)}
    return counted


def counts_in_words(lines: Sequence[Mapping[str, Any]]) -> list[str]:
    """A sentence for each kind of row: how often each verdict was given.

    >>> counts_in_words([{"kind": "remark", "verdict": "reproduced"}])
    ['Our remarks and corrections: holds (1).']
    """
    return [f"{KINDS[kind]}: {tally(counted)}." for kind, counted in counts(lines).items()]


def tally(counted: Mapping[str, int]) -> str:
    """Verdicts, each with its number.

    >>> tally({"✓ reproduced": 25, "· not run": 38})
    '✓ reproduced (25), · not run (38)'
    """
    return ", ".join(f"{word} ({number})" for word, number in counted.items())
