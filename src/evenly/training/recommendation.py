"""The verdict of a comparison: an interval for every method, its paired difference to plain training, and advice.

It works on stored comparisons (`evenly.records.comparison`) and needs no torch.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evenly.intervals import Interval, holm, interval, num_seeds, paired_difference, points_with_interval
from evenly.training.next_command import FEWEST, more_seeds, other_setting, remedy

MATTERS = 0.1  # share of the baseline's error: an interval within this distance of zero is no difference
LEAST = 0.001  # but at least a tenth of a point
MOST_SEEDS = 50  # more seeds than this are not recommended
USUAL = 5  # seeds to begin with
LEVEL = 0.95  # the chance that nothing is recommended where nothing helps, however many methods are compared
PROSE = {"plain": "plain training", "random": "random upsampling{}", "equal steps": "as many steps on plain data"}


def judge(comparison: dict[str, Any]) -> None:
    """Fill in `error`, `cost`, `difference` and `recommendation`, from the runs that are done."""
    baseline = comparison["baseline"]
    plain = _errors(_method(comparison, baseline))
    for method in comparison["methods"]:
        errors = _errors(method)
        method["error"] = _record(interval(list(errors.values()))) if errors else None
        costs = [row["cost"] for row in _done(method).values()]
        method["cost"] = math.fsum(costs) / len(costs) if costs else None
        method["difference"] = None
        both = [seed for seed in errors if seed in plain]
        if method["name"] != baseline and both:
            method["difference"] = _difference(
                paired_difference([errors[seed] for seed in both], [plain[seed] for seed in both]),
                to=baseline,
                margin=max(LEAST, MATTERS * math.fsum(plain.values()) / len(plain)),
            )
    _doubt_the_best_of_many([method for method in comparison["methods"] if method["difference"] is not None])
    comparison["recommendation"] = recommend(comparison)


def recommend(comparison: Mapping[str, Any]) -> dict[str, Any]:
    """Advice, no stronger than the numbers: badge, sentence, the method to use, and the command to run next."""
    methods, baseline = comparison["methods"], comparison["baseline"]
    runs = [row for method in methods for row in _done(method).values()]
    collapsed = [row for row in runs if row.get("collapsed")]
    before = ""
    if collapsed:
        before = f"{len(collapsed)} of {len(runs)} runs {_symptoms(collapsed)}. "
        own = list(_done(_method(comparison, baseline)).values())
        if 2 * sum(bool(row.get("collapsed")) for row in own) >= len(own):
            hint = remedy(collapsed[0]["collapsed"])
            following = other_setting(comparison, hint)
            return _advice(
                "learned nothing", f"{before}Nothing can be compared before this is fixed. {hint}", following
            )
    if (reason := _reason_of_failure(comparison)) is not None:
        return _advice("failed", f"Every run failed: {reason}", None)
    judged = [method for method in methods if method["difference"] is not None]
    if not judged:
        return _advice("too few seeds", f"{before}{_nothing_yet(comparison)}", None)
    if (pairs := max(method["difference"]["n"] for method in judged)) < FEWEST:
        few = f"Too early to say: {pairs} {'seed' if pairs == 1 else 'seeds'} cannot tell a gain from chance."
        following = _fix(comparison, collapsed) or more_seeds(comparison, USUAL)
        return _advice("too few seeds", before + few, following)
    best = _best(judged, comparison)
    sentences = []
    if best is not None:
        sentences.append(
            f"Use {_prose(best)}: {points_with_interval(_interval(best['difference']))} points{_against(comparison)} "
            f"for {best['cost']:.1f}× the cost."
        )
        badge = "helped"
    elif any(each["difference"]["verdict"] == "may help" and not _explanation(each, comparison) for each in judged):
        badge = "may help"
        sentences.append("Too early to say.")
    else:
        verdicts = {method["difference"]["verdict"] for method in judged if not _is_control(method)}
        verdicts = verdicts or {method["difference"]["verdict"] for method in judged}
        badge = next((each for each in ("too few seeds", "no difference") if each in verdicts), "hurt")
        badge = "no difference" if verdicts & {"helped", "may help"} and badge == "hurt" else badge
        sentences.append(
            "Too early to say." if badge == "too few seeds" else f"Stay with {_prose(_method(comparison, baseline))}."
        )
    sentences += [text for method in judged if method is not best and (text := _remark(method, comparison, best))]
    if hopeless := [_prose(method) for method in judged if _is_hopeless(method)]:
        sentences.append(f"More than {MOST_SEEDS} seeds would be needed to settle {_list_words(hopeless)}.")
    wanted = [each["difference"]["seeds_to_settle"] for each in judged if _is_open(each)]
    following = _fix(comparison, collapsed) or more_seeds(comparison, max(filter(None, wanted), default=0))
    return _advice(badge, before + " ".join(sentences), following, method=best["name"] if best is not None else None)


def _best(judged: Sequence[Mapping[str, Any]], comparison: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The method to use: it surely helped, no control explains the gain, and nothing cheaper does as well."""
    able = [each for each in judged if each["difference"]["verdict"] == "helped" and not _explanation(each, comparison)]
    if not able:
        return None
    best = min(able, key=lambda each: float(each["difference"]["mean"]))
    for other in sorted(able, key=lambda each: float(each["cost"])):
        if other["cost"] < best["cost"] and not _beats(best, other):
            return other
    return best


def _doubt_the_best_of_many(judged: Sequence[dict[str, Any]]) -> None:
    """Turn `helped` into `may help` where the gain does not survive Holm's correction for the number of methods.

    Controls are run to explain a gain and not to win, so that the other methods do not pay for them. A control itself
    must survive the correction over all methods, or could explain a gain that survives.
    """
    tried = [method for method in judged if not _is_control(method)]
    sure = _surviving(tried)
    sure |= _surviving(judged) | {name for method in tried if method["name"] in sure for name in _controls(method)}
    for method in judged:
        difference = method["difference"]
        if difference["verdict"] == "helped" and method["name"] not in sure:
            num = _num_compared(method, judged)
            settle = _seeds_to_settle(_interval(difference), level=1 - (1 - LEVEL) / num)
            difference |= {"verdict": "may help", "seeds_to_settle": settle}


def _surviving(methods: Sequence[Mapping[str, Any]]) -> set[str]:
    """The names of the methods whose differences survive Holm's correction over all of these."""
    rejected = holm([_interval(method["difference"]).p_value for method in methods], level=LEVEL)
    return {method["name"] for method, survives in zip(methods, rejected, strict=True) if survives}


def _num_compared(method: Mapping[str, Any], judged: Sequence[Mapping[str, Any]]) -> int:
    """The number of methods by which a method's gain is corrected."""
    return len(judged) if _is_control(method) else sum(not _is_control(each) for each in judged)


def _controls(method: Mapping[str, Any]) -> set[str]:
    return set(method.get("controls", ()))


def _explanation(method: Mapping[str, Any], comparison: Mapping[str, Any]) -> str | None:
    """The label of a control that does as well, if there is one.

    Records of earlier versions name rivals as controls of each other: two methods do not explain each other away.
    """
    for control in comparison["methods"]:
        if control["name"] not in _controls(method) or method["name"] in _controls(control):
            continue
        if not _beats(method, control) and len(_errors(control)) > 1:
            return _prose(control)
    return None


def _beats(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether one method's error is lower than the other's, pair by pair, with an interval that excludes zero."""
    mine, theirs = _errors(one), _errors(other)
    both = [seed for seed in mine if seed in theirs]
    return len(both) > 1 and paired_difference([mine[seed] for seed in both], [theirs[seed] for seed in both]).high < 0


def _remark(method: Mapping[str, Any], comparison: Mapping[str, Any], best: Mapping[str, Any] | None) -> str | None:
    """A sentence on a method that is not the best one, if there is something to say."""
    difference, name = method["difference"], _prose(method)
    gain = f"{points_with_interval(_interval(difference))} points{_against(comparison)}"
    if difference["verdict"] == "hurt":
        return f"{_capital(name)} hurts: {gain}."
    explained = _explanation(method, comparison) if difference["verdict"] in ("helped", "may help") else None
    if difference["verdict"] == "may help" and not explained:
        num = _num_compared(method, [each for each in comparison["methods"] if each["difference"] is not None])
        doubt, more = f"one of {num} methods may look as good by chance", _seeds_missing(difference, "it")
        doubt = f"{difference['n']} equal differences may be chance" if _interval(difference).has_no_width else doubt
        return f"{_capital(name)} may help: {gain}, but {doubt}." + (f" {more}" if more else "")
    if _is_control(method):
        return None
    if difference["verdict"] == "too few seeds":
        return _seeds_missing(difference, name)
    if difference["verdict"] == "no difference":
        return f"{_capital(name)} makes no difference: {gain}."
    if explained:
        return f"{_capital(name)} adds nothing beyond {explained}."
    return f"{_capital(name)} does no better for {method['cost']:.1f}×." if best is not None else None


def _seeds_missing(difference: Mapping[str, Any], name: str) -> str | None:
    more = (difference["seeds_to_settle"] or 0) - difference["n"]
    return f"{more} more {'seed' if more == 1 else 'seeds'} would settle {name}." if more > 0 else None


def _against(comparison: Mapping[str, Any]) -> str:
    """The baseline in words, if it is not plain training."""
    baseline = comparison["baseline"]
    return "" if baseline == "plain" else f" against {_prose(_method(comparison, baseline))}"


def _is_hopeless(method: Mapping[str, Any]) -> bool:
    return _is_open(method) and method["difference"]["seeds_to_settle"] is None


def _is_open(method: Mapping[str, Any]) -> bool:
    """Whether more seeds are wanted for a method; a control is followed up only where it may be a cure itself."""
    verdict = method["difference"]["verdict"]
    return verdict == "may help" or (verdict == "too few seeds" and not _is_control(method))


def _prose(method: Mapping[str, Any]) -> str:
    """A method's name within a sentence, with its factor and whatever else it combines."""
    label = str(method["label"])
    first, plus, others = label.partition(" + ")
    name, times, factor = first.partition(" ×")
    return f"{PROSE[name].format(times + factor)}{plus}{others}" if name in PROSE else label


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _list_words(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _difference(gap: Interval, *, to: str, margin: float) -> dict[str, Any]:
    settle: int | None = None
    if gap.n < FEWEST:
        verdict, settle = "too few seeds", FEWEST
    elif gap.excludes_zero:
        verdict = "helped" if gap.high < 0 else "hurt"
    elif -margin <= gap.low and gap.high <= margin:
        verdict = "no difference"
    else:
        verdict = "too few seeds"
    if verdict == "too few seeds" and gap.n > 1:
        settle = _seeds_to_settle(gap)
    return {"to": to, **_record(gap), "verdict": verdict, "seeds_to_settle": settle}


def _seeds_to_settle(gap: Interval, *, level: float = LEVEL) -> int | None:
    """The seeds that would detect a difference of this size; None where they would be too many."""
    signs = math.ceil(1 - math.log2(1 - level)) if gap.has_no_width and gap.mean else None  # until 2/2ⁿ ≤ 1 − level
    needed = signs or num_seeds(gap.mean, gap.deviation, level=level)
    return None if needed is None or needed > MOST_SEEDS else max(needed, gap.n + 1, FEWEST)


def _reason_of_failure(comparison: Mapping[str, Any]) -> str | None:
    """Why all runs of a comparison failed; None if any did not. A run that waited for another says less than that."""
    rows = [row for method in comparison["methods"] for row in method["runs"].values()]
    if not rows or any(row.get("state") != "failed" for row in rows):
        return None
    reasons = [str(row.get("reason") or "") for row in rows]
    return next((each for each in reasons if each and not each.startswith("it needs ")), "their logs say why.")


def _nothing_yet(comparison: Mapping[str, Any]) -> str:
    errors = [method for method in comparison["methods"] if method["error"] is not None]
    if not errors:
        return "No run is done yet."
    shown = ", ".join(f"{method['label']} {method['error']['mean'] * 100:.2f}%" for method in errors)
    return f"There is nothing to compare yet: {shown}."


def _symptoms(rows: Sequence[Mapping[str, Any]]) -> str:
    """What happened to the runs that did not learn, with the numbers of the first.

    >>> _symptoms([{"collapsed": "learned nothing: it ended at 75%. Try --lr 1."}, {"collapsed": "stopped learning."}])
    'learned nothing or stopped learning (the first: it ended at 75%)'
    """
    parts = [str(row["collapsed"]).split(". ")[0].rstrip(".").partition(": ") for row in rows]
    kinds = dict.fromkeys(kind for kind, _, _ in parts)
    return f"{' or '.join(kinds)} ({'the first: ' if len(rows) > 1 else ''}{parts[0][2]})"


def _fix(comparison: Mapping[str, Any], collapsed: Sequence[Mapping[str, Any]]) -> str | None:
    """The command with the setting that would let the runs learn that did not: more seeds would not."""
    return other_setting(comparison, remedy(collapsed[0]["collapsed"])) if collapsed else None


def _advice(badge: str, sentence: str, following: str | None, *, method: str | None = None) -> dict[str, Any]:
    return {"badge": badge, "sentence": sentence.strip(), "next": following, "method": method}


def _method(comparison: Mapping[str, Any], name: str) -> dict[str, Any]:
    own: dict[str, Any] = next(method for method in comparison["methods"] if method["name"] == name)
    return own


def _done(method: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {seed: row for seed, row in method["runs"].items() if row.get("state") == "done"}


def _errors(method: Mapping[str, Any]) -> dict[str, float]:
    return {seed: float(row["error"]) for seed, row in _done(method).items()}


def _is_control(method: Mapping[str, Any]) -> bool:
    return bool(method.get("control"))


def _record(interval_: Interval) -> dict[str, Any]:
    low, high = (None if math.isnan(end) else end for end in (interval_.low, interval_.high))
    return {"mean": interval_.mean, "low": low, "high": high, "n": interval_.n}


def _interval(record: Mapping[str, Any]) -> Interval:
    low, high = (math.nan if record[end] is None else record[end] for end in ("low", "high"))
    return Interval(record["mean"], low, high, record["n"])
