"""Which examples a network does not learn early: USEFUL's first half.

Shapes: N examples, K of one class, D outputs, R restarts.
"""

import math
import warnings
from collections.abc import Mapping, Sequence, Set
from typing import Literal, get_args

import torch
from torch import Tensor

from evenly.errors import DataError, UsageError, did_you_mean
from evenly.numbers import is_whole, number
from evenly.resampling.arrays import Array, as_numbers, per_example
from evenly.resampling.baselines import misclassified, random_subset, require_generator, upper_share
from evenly.resampling.class_batch import ClassBatch
from evenly.resampling.class_statistics import splits_by_loss
from evenly.resampling.distinctness import Distinctness, distinctness
from evenly.resampling.multiset import copies
from evenly.resampling.outputs import On, Outputs, check_outputs
from evenly.resampling.remarks import (
    classes_to_judge,
    on_clusters,
    on_fit,
    on_probabilities,
    on_right_only,
    on_unsplit,
    refuse_equal,
)
from evenly.resampling.separation import ClassSplit, Separation, SeparationWarning
from evenly.resampling.silhouette import SAMPLE
from evenly.rng import generator

Method = Literal["k-means", "quantile", "misclassified", "random", "score"]


def separate(
    logits: Array,
    labels: Array | Sequence[int],
    *,
    losses: Array | Sequence[float] | None = None,
    method: Method = "k-means",
    on: On = "logits",
    score: Array | Sequence[float] | None = None,
    share: float | None = None,
    among: Literal["all", "right"] = "all",
    index: Array | Sequence[int] | None = None,
    classes: Sequence[str] | None = None,
    rng: torch.Generator | None = None,
    restarts: int = 10,
    silhouette_sample: int = SAMPLE,
    max_accuracy: float = 0.99,
) -> Separation:
    """Split the examples of each class by the outputs of a network early in training; the part of higher loss is hard.

    Nguyen et al. (2024), eq. 12: in every class, 2-means on the outputs; hard is the cluster whose mean loss is
    higher (the smaller cluster, should they be equal). Take the outputs in eval mode and without augmentation. They
    are read class by class, so that a memory-mapped array may be larger than memory.

    Parameters
    ----------
    logits
        The last layer's outputs, a row per example: a tensor on any device, or an array, memory-mapped or not.
        A single column is the logit of class 1 of two.
    labels
        A class number per row.
    losses
        A loss per row; the cross-entropy of logits and labels by default.
    method
        `k-means`; or one of its rivals: `quantile` (loss above the median), `misclassified`, `random` (a random
        `share`) and `score` (the `share` of highest `score`, a number of yours per row).
    on
        Cluster `logits`, their `probabilities`, or `features`, which need `losses`.
    share
        The part of all examples to call hard, for quantile, random and score; a half by default.
    among
        Which examples are clustered: `all`; or, where labels may be wrong, those that the network predicts `right`, and
        the others are kept once. That loses the minority whose easy feature contradicts the label, which is just what
        an early network predicts wrongly.
    index
        The number of the example behind each row, where the rows are not in the order of the data set, or are those
        of a part of it: its position, or, for evenly's own `Labelled`, its `index`. Rows of a shuffled loader need it.
        Without it, the rows are those of the whole data set in its order.
    classes
        Names of the classes, for messages.
    rng
        A `torch.Generator` for starts and samples; by default the same for every call.
    restarts
        Starts of 2-means in each class.
    silhouette_sample
        Points per class from which the silhouette is estimated; 0 leaves it out.
    max_accuracy
        Above this share of right predictions the network has fitted nearly everything, and a split is refused unless
        most classes still fall into two clusters.

    Examples
    --------
    >>> logits = torch.tensor([[4.0, 0.0], [5.0, 0.0], [0.2, 0.3], [0.0, 4.0], [0.0, 5.0], [0.4, 0.1]])
    >>> separation = separate(logits, [0, 0, 0, 1, 1, 1])
    >>> separation.hard.tolist()
    [False, False, True, False, False, True]
    >>> separation.indices(factor=2).tolist()
    [0, 1, 2, 3, 4, 5, 2, 5]
    """
    _check(method, share=share, score=score, among=among)
    _check_numbers(restarts=restarts, silhouette_sample=silhouette_sample, max_accuracy=max_accuracy)
    restarts, silhouette_sample = int(restarts), int(silhouette_sample)
    outputs = check_outputs(logits, labels, losses=losses, on=on, classes=classes)
    if method == "misclassified" and not outputs.predict:
        raise UsageError("method='misclassified' needs predictions, which features do not give: use on='logits'.")
    if among == "right" and not outputs.predict:
        raise UsageError("among='right' needs predictions, which features do not give: use on='logits'.")
    index_N = _numbers(index, len(outputs))
    rng = generator(0, "separate") if rng is None else require_generator(rng)
    # Drawn before anything else, so that no other option changes the split.
    draws_CR2 = torch.rand(
        int(outputs.labels.max()) + 1, restarts, 2, generator=rng, device=rng.device, dtype=torch.float64
    )
    if method == "k-means":
        chosen_N = None
    else:
        score_N = None if score is None else per_example(score, len(outputs), "score")
        chosen_N = _by_rule(outputs, method, score_N=score_N, share=0.5 if share is None else share, rng=rng)

    hard_N = torch.zeros(len(outputs), dtype=torch.bool)
    loss_N = torch.empty(len(outputs), dtype=torch.float32)
    right = 0
    probable = outputs.predict  # until a row is seen that is none
    splits: list[ClassSplit] = []
    distinct: dict[int, Distinctness] = {}
    clustered_num: dict[int, int] = {}  # examples of a class that are clustered: all, or those predicted correctly
    scratch_ME = outputs.scratch(extra=1)
    looked_at = classes_to_judge(outputs.labels) if method == "k-means" and silhouette_sample else frozenset()
    for group in outputs.groups():
        members_M = torch.cat([members_K for _, members_K in group]) if len(group) > 1 else group[0][1]
        x_MD = outputs.read(members_M, scratch_ME)
        probable = probable and outputs.look_like_probabilities(x_MD)
        loss_M, right_M = outputs.judge(x_MD, members_M)
        loss_N[members_M] = loss_M.float()
        left_out: dict[int, ClassSplit] = {}
        if right_M is not None:
            right += int(right_M.sum())
            if among == "right":
                left_out = _left_out(outputs.labels[members_M[~right_M]], loss_M[~right_M])
                members_M, loss_M = members_M[right_M], loss_M[right_M]
                if not len(members_M):
                    splits += left_out.values()
                    continue
                x_MD = outputs.read(members_M, scratch_ME)
        classes_C, sizes_C = torch.unique_consecutive(outputs.labels[members_M], return_counts=True)
        clustered_num |= zip(classes_C.tolist(), sizes_C.tolist(), strict=True)
        batch = ClassBatch.pad(outputs.points(x_MD, scratch_ME), scratch_ME, sizes_C, loss_M)
        draws_BR2 = draws_CR2[classes_C]
        hard_BK = batch.harder_cluster(draws_BR2) if chosen_N is None else batch.place(chosen_N[members_M])
        hard_N[members_M] = batch.rows(hard_BK).cpu()
        clustered = batch.splits(classes_C.tolist(), hard_BK, sample=silhouette_sample, rng=rng)
        splits += _join(clustered, left_out)
        distinct |= _distinct_clusters(batch, clustered, sizes_C, among=looked_at, sample=silhouette_sample)

    accuracy = right / len(outputs) if outputs.predict else math.nan
    spoken = remarks = on_probabilities(probable, binary=outputs.binary)
    if method == "k-means":
        refuse_equal(outputs, splits, clustered_num, float(loss_N.mean()), accuracy)
        unsplit = on_unsplit(outputs, splits, clustered_num)
        wrong = on_right_only(len(outputs), right) if among == "right" else ()
        spoken = (*spoken, *unsplit, *wrong, *on_fit(accuracy, max_accuracy, distinct))
        remarks = (*spoken, *on_clusters(outputs.name, distinct))
        if not any(facts.distinct for facts in distinct.values()):
            spoken = remarks
    for remark in spoken:
        warnings.warn(remark, SeparationWarning, stacklevel=2)
    return Separation(
        hard=hard_N,
        labels=outputs.labels,
        losses=loss_N,
        index=index_N,
        splits=tuple(splits),
        method=method,
        on=on,
        accuracy=accuracy,
        classes=outputs.classes,
        remarks=remarks,
        distinctness=distinct,
        by_position=index is None,
    )


def _distinct_clusters(
    batch: ClassBatch, splits: Sequence[ClassSplit], sizes_C: Tensor, *, among: Set[int], sample: int
) -> dict[int, Distinctness]:
    """How distinct the two clusters are, for those of the classes that are judged and can be."""
    distinct = {}
    for place, split in enumerate(splits):
        if split.label in among:
            points_KD = batch.x_BKD[place, : sizes_C[place]]
            rng = generator(0, "distinct", split.label)
            facts = distinctness(points_KD, known=split.silhouette, sample=sample, rng=rng)
            if facts is not None:
                distinct[split.label] = facts
    return distinct


def _left_out(label_K: Tensor, loss_K: Tensor) -> dict[int, ClassSplit]:
    """Examples that no cluster is made of, as easy ones of their classes."""
    if not len(label_K):
        return {}
    splits = splits_by_loss(torch.zeros(len(label_K), dtype=torch.bool), label_K, loss_K)
    return {split.label: split for split in splits}


def _join(clustered: Sequence[ClassSplit], left_out: Mapping[int, ClassSplit]) -> list[ClassSplit]:
    """Splits in the order of their labels, to whose easy examples those left out are added."""
    joined = dict(left_out)
    for split in clustered:
        joined[split.label] = split.with_easy(left_out[split.label]) if split.label in left_out else split
    return [joined[label] for label in sorted(joined)]


def _by_rule(outputs: Outputs, method: str, *, score_N: Tensor | None, share: float, rng: torch.Generator) -> Tensor:
    if method == "random":
        return random_subset(len(outputs), round(share * len(outputs)), rng=rng)
    if score_N is not None:
        return upper_share(score_N, share)
    wrong_N = torch.zeros(len(outputs), dtype=torch.bool)
    loss_N = torch.empty(len(outputs), dtype=torch.float64)
    for label, members_K in outputs.by_class():
        x_KD = outputs.read(members_K)
        if outputs.predict:
            wrong_N[members_K] = misclassified(outputs.predictions(x_KD), torch.full_like(members_K, label))
        loss_N[members_K], _ = outputs.judge(x_KD, members_K)
    return wrong_N if method == "misclassified" else upper_share(loss_N, share)


def _check(method: str, *, share: float | None, score: object, among: str) -> None:
    if among not in ("all", "right"):
        raise UsageError(f"among={among!r}: give 'all' or 'right'.")
    if among == "right" and method != "k-means":
        raise UsageError(f"among='right' is for clusters, and method={method!r} makes none.")
    if method not in get_args(Method):
        raise UsageError(f"method={method!r} is not known. {did_you_mean(method, get_args(Method))}")
    if (method == "score") != (score is not None):
        raise UsageError("method='score' and score= go together: a number per example, the higher the harder.")
    if share is not None and method not in ("quantile", "random", "score"):
        raise UsageError(
            f"share={share}: {method} finds its own share; leave it out, or use quantile, random or score."
        )
    if share is not None and not 0 <= number(share) <= 1:
        raise UsageError(f"share={share!r} is a part of all examples: give a number from 0 to 1.")


def _check_numbers(*, restarts: object, silhouette_sample: object, max_accuracy: object) -> None:
    if not is_whole(restarts):
        raise UsageError(f"restarts={restarts!r}: give a whole number, at least 1; 10 are usual.")
    if not is_whole(silhouette_sample, at_least=0):
        raise UsageError(f"silhouette_sample={silhouette_sample!r}: give a number of points, or 0 to leave it out.")
    if not 0 <= number(max_accuracy) <= 1:
        raise UsageError(f"max_accuracy={max_accuracy!r} is a share of right predictions: give a number from 0 to 1.")


def _numbers(index: Array | Sequence[int] | None, num: int) -> Tensor:
    if index is None:
        return torch.arange(num)
    index_N = as_numbers(index, "index", "the number of the example behind each row").cpu()
    if index_N.is_floating_point() or index_N.shape != (num,):
        raise DataError(f"index: {index_N.dtype} of shape {tuple(index_N.shape)}, expected {num:,} whole numbers.")
    copy_N = copies(index_N)
    if bool(copy_N.any()):
        most = int(copy_N.argmax())
        raise DataError(
            f"index: example {int(index_N[most])} has {int(copy_N[most]) + 1} rows ({int((copy_N > 0).sum()):,} rows "
            "too many in all). Take the outputs of each example once: a sampler with replacement, or padding for "
            "several devices, repeats some."
        )
    return index_N.long()
