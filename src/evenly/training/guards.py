"""Warnings before upsampling: classes without distinct clusters, and labels that may be wrong."""

import functools
import math
from collections.abc import Iterable, Mapping
from typing import Any

from evenly.data import Labelled
from evenly.errors import EvenlyError
from evenly.records import Run
from evenly.resampling import Separation
from evenly.resampling.balance import balance_factors
from evenly.resampling.label_noise import LabelNoise, label_noise, on_noise
from evenly.training.early import load_outputs
from evenly.training.separations import rule_of, separation_of


def cautions(early: Run, data: Labelled, resamplings: Iterable[Mapping[str, Any]], *, refuse: bool) -> list[str]:
    """The remarks of the separations that resamplings make, and sentences on wrong labels that they would repeat.

    Each of `resamplings` has `method`, `among`, `factor` and `like`, whose copies a random one makes, or None. With
    `refuse`, outputs that cannot be separated are an error; else the runs that need the separation report it.
    """
    noise = functools.cache(lambda: _noise(early))
    sentences: dict[str, None] = {}
    for each in resamplings:
        rule = rule_of((each["like"] or "useful") if each["method"] == "random" else each["method"])
        try:
            separation = separation_of(early, data, method=rule, among=each["among"])
        except EvenlyError:
            if refuse:
                raise
            continue
        sentences |= dict.fromkeys(separation.remarks)
        # Wrong labels are among what the network predicts wrongly, and a random choice repeats few of them.
        if each["method"] != "random" and each["among"] == "all":
            factor = _balanced_factor(separation, each["factor"]) if each["method"] == "balance" else each["factor"]
            told = on_noise(noise(), hard_share=separation.share, factor=factor, method=rule)
            sentences |= dict.fromkeys(told)
    return list(sentences)


def _noise(early: Run) -> LabelNoise:
    kept = load_outputs(early)
    return label_noise(kept["logits"], kept["labels"])


def _balanced_factor(separation: Separation, most: int) -> int:
    """The factor for hard examples alone that shows them as often, relative to all, as balanced clusters do."""
    factor_N, hard_N = balance_factors(separation, most=most).double(), separation.hard
    if not bool(hard_N.any()) or separation.share == 1:
        return 1
    often = float(factor_N[hard_N].mean() / factor_N.mean())
    return max(1, math.ceil(often * (1 - separation.share) / (1 - often * separation.share) - 1e-9))
