"""Sentences that the user of a separation should read, and refusals of what cannot be separated.

Shapes: N examples.
"""

import math
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor

from evenly.errors import DataError
from evenly.resampling.distinctness import Distinctness
from evenly.resampling.outputs import Outputs
from evenly.resampling.separation import ClassSplit

MOST_EXAMINED = 64  # classes whose clusters are compared with clouds: a sample of a thousand is enough
FEWEST = 20  # a class with fewer examples is not judged


class Fitted(DataError):
    """The network has fitted nearly everything, and its outputs form no clusters."""


def classes_to_judge(label_N: Tensor) -> frozenset[int]:
    """The classes whose clusters are judged: all with enough examples, or some of very many, evenly spaced.

    >>> sorted(classes_to_judge(torch.arange(60) % 2)), len(classes_to_judge(torch.arange(10_000) % 200))
    ([0, 1], 64)
    """
    large = (label_N.bincount() >= FEWEST).nonzero().flatten()
    if len(large) > MOST_EXAMINED:
        large = large[torch.linspace(0, len(large) - 1, MOST_EXAMINED).round().long()]
    return frozenset(large.tolist())


def on_unsplit(outputs: Outputs, splits: Sequence[ClassSplit], clustered: Mapping[int, int]) -> tuple[str, ...]:
    """One sentence for each kind of class that could not be split; `clustered` has the number of examples tried."""
    named: dict[str, list[str]] = {what: [] for what in (_ALONE, _FEW_RIGHT, _EQUAL, _RIGHT_EQUAL)}
    for split in splits:
        if not split.has_both_parts:
            named[_why_unsplit(split, clustered.get(split.label, 0))].append(outputs.name(split.label))
    remarks = []
    for what, names in named.items():
        if names:
            listing = ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")
            remarks.append(
                f"not split, each example kept once: class {listing} ({what}). To repeat them anyway, give "
                "`indices` a factor for every example."
            )
    return tuple(remarks)


_ALONE = "only one example"
_FEW_RIGHT = "fewer than two of its examples are predicted correctly"
_EQUAL = "equal outputs for all its examples"
_RIGHT_EQUAL = "equal outputs for all of its examples that are predicted correctly"


def _why_unsplit(split: ClassSplit, clustered: int) -> str:
    if split.num == 1:
        return _ALONE
    if clustered < 2:
        return _FEW_RIGHT
    return _EQUAL if clustered == split.num else _RIGHT_EQUAL


def on_clusters(name: Callable[[int], str], distinctness: Mapping[int, Distinctness]) -> tuple[str, ...]:
    """A sentence on the classes whose clusters are halves of one cloud, if there are any."""
    indistinct = [label for label, facts in distinctness.items() if not facts.distinct]
    if not indistinct:
        return ()
    worst = sorted(indistinct, key=lambda label: distinctness[label].silhouette)
    names = ", ".join(
        f"{name(label)}: {distinctness[label].silhouette:.2f} / {max(distinctness[label].clouds):.2f}"
        for label in worst[:5]
    )
    more = f" and {len(worst) - 5} more" if len(worst) > 5 else ""
    return (
        f"{len(indistinct)} of {len(distinctness)} classes {'does' if len(indistinct) == 1 else 'do'} "
        f"{CLUSTERLESS}: what is called hard there is one end of a single cloud, not a group of its own, and "
        f"upsampling may only repeat noise. Silhouette / that of a single cloud, for class {names}{more}. Separate "
        "after another epoch or with another seed: a real group would be found again.",
    )


CLUSTERLESS = "not fall into two clusters"


def on_fit(accuracy: float, max_accuracy: float, distinctness: Mapping[int, Distinctness]) -> tuple[str, ...]:
    """A sentence on a network that fits nearly everything; a refusal where most classes examined show no two clusters.

    A network may predict every label and still give distinct outputs to the examples that lack the easy feature, or it
    may no longer distinguish them. Its clusters show which, its accuracy does not.
    """
    if not accuracy > max_accuracy:
        return ()
    if not distinctness:
        return (
            f"the network fits {accuracy:.2%} of the training set, and no class could be examined for clusters (that "
            f"takes {FEWEST} examples of a class, and silhouette_sample above 0): the split may be noise. An earlier "
            "epoch, or another seed, should agree with it before it is trusted.",
        )
    distinct = sum(facts.distinct for facts in distinctness.values())
    if 2 * distinct <= len(distinctness):
        raise Fitted(
            f"the network fits {accuracy:.2%} of the training set, and {len(distinctness) - distinct} of "
            f"{len(distinctness)} classes do {CLUSTERLESS}: the split would be noise. Take the outputs of an earlier "
            f"epoch, below {max_accuracy:.0%} (evenly.resampling.moment chooses one); max_accuracy=1 splits anyway."
        )
    return (
        f"the network fits {accuracy:.2%} of the training set. {distinct} of {len(distinctness)} classes still fall "
        "into two clusters, but an earlier epoch, or another seed, should agree with the split before it is trusted.",
    )


def on_probabilities(probable: bool, *, binary: bool) -> tuple[str, ...]:
    """A sentence on outputs that look like probabilities, of which losses and clusters are others than of logits."""
    if not probable:
        return ()
    log = "log(p) − log(1 − p)" if binary else "log(p)"
    return (
        f"all outputs {'are from 0 to 1' if binary else 'are at least 0 and sum to 1 for each example'}: these look "
        f"like probabilities, and are taken for logits. Give logits (outputs before the softmax), or {log}.",
    )


def on_right_only(num: int, right: int) -> tuple[str, ...]:
    """A sentence on the examples left out by clustering only correctly predicted ones, if there are any."""
    if num == right:
        return ()
    return (
        f"among='right': {num - right:,} of {num:,} examples are predicted wrongly and kept once. This guards against "
        "wrong labels; where a minority has an easy feature that contradicts its label, it is that minority that is "
        "left out, and it will do worse.",
    )


def refuse_equal(
    outputs: Outputs, splits: Sequence[ClassSplit], clustered: Mapping[int, int], loss: float, accuracy: float
) -> None:
    """Raise an error if no class has two different outputs among those that are clustered."""
    if any(split.has_both_parts for split in splits):
        return
    if all(split.num == 1 for split in splits):
        raise DataError(
            f"each of the {len(splits):,} classes has one example: there is nothing to split within classes."
        )
    reasons = {_why_unsplit(split, clustered.get(split.label, 0)) for split in splits}
    if reasons <= {_ALONE, _FEW_RIGHT}:
        raise DataError(
            f"among='right': no class has two examples that are predicted correctly ({accuracy:.1%} of all are), so "
            "none can be split. Train longer before separating, or cluster all examples: among='all'."
        )
    which = "that are correct predictions " if reasons & {_FEW_RIGHT, _RIGHT_EQUAL} else ""
    num = max(outputs.rows.shape[1], 2)
    remedy = (
        "Separate earlier: the network has fitted every class to one point."
        if accuracy == 1
        else "Train longer before separating, and check the learning rate."
    )
    raise DataError(
        f"all outputs {which}of every class are equal: the mean loss is {loss:.4f}, a network that knows nothing has "
        f"ln({num}) = {math.log(num):.4f}. {remedy}"
    )
