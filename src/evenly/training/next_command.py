"""The command that would tell more than a comparison: with more seeds, or with a setting that lets it learn."""

import re
from collections.abc import Mapping
from typing import Any

FEWEST = 3  # pairs: with two, test errors that happen to be equal would look certain


def more_seeds(comparison: Mapping[str, Any], seeds: int) -> str | None:
    """The same command with enough seeds to settle the open differences."""
    command, own = comparison.get("command"), comparison["seeds"]
    if not command or max(seeds, FEWEST) <= len(own):
        return None
    first, last = min(own), max(own) + max(seeds, FEWEST) - len(own)
    given = f"{first}-{last}"
    if len(own) < max(own) - first + 1:  # keep the gaps
        given = f"{','.join(map(str, own))},{max(own) + 1}-{last}"
    words = re.sub(r" --seeds[ =]\S+", "", str(command))
    return f"{words} --seeds {given}"


def other_setting(comparison: Mapping[str, Any], hint: str) -> str | None:
    """The same command with the learning rate or the epochs that a hint names; None if that has been tried.

    A rate that `--lr auto` found is not replaced: the next hint would lead back to it.
    """
    named, command = re.search(r"--(lr|epochs) (auto|\d[\d.e+-]*(?<=\d))", hint), comparison.get("command")
    if named is None or not command:
        return None
    path = {"lr": r"optimizer\.lr", "epochs": "epochs"}[named[1]]
    given = re.compile(rf" (?:--{named[1]}|--set[ =]{path})[ =](\S+)")
    values = given.findall(str(command))
    if values and values[-1] in (named[2], "auto"):
        return None
    return f"{given.sub('', str(command))} {named[0]}"


def remedy(sentence: str) -> str:
    """What a sentence on a run that learned nothing advises, after what happened.

    >>> remedy("learned nothing: the training error ended at 75.0%. Try --lr 0.01.")
    'Try --lr 0.01.'
    """
    return sentence.partition(". ")[2] or "Try another learning rate: --lr 0.01."
