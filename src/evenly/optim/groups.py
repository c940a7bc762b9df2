"""Perturbation groups: how a batch is divided before each part is displaced on its own."""

import math
from typing import Any

from torch import Tensor
from torch.utils._pytree import tree_flatten, tree_map

from evenly.errors import UsageError

Batch = tuple[Any, ...]


def size_of(batch: Batch) -> int:
    """The number of examples: the first dimension of every tensor in the batch.

    >>> import torch
    >>> size_of((torch.zeros(6, 2), {"y": torch.zeros(6)}))
    6
    """
    sizes = {t.shape[0] for t in tree_flatten(batch)[0] if isinstance(t, Tensor) and t.ndim}
    if len(sizes) != 1:
        raise UsageError(
            f"the batch has tensors of {sorted(sizes) or 'no'} examples: give tensors with the same first dimension, "
            "as in sam.backward(lambda x, y: loss(model(x), y), x, y)"
        )
    return int(sizes.pop())


def cut(batch: Batch, start: int, stop: int) -> Batch:
    """Examples start to stop of every tensor in the batch; anything else is unchanged.

    >>> import torch
    >>> cut((torch.arange(4), "mean"), 1, 3)
    (tensor([1, 2]), 'mean')
    """

    def cut_leaf(leaf: Any) -> Any:
        return leaf[start:stop] if isinstance(leaf, Tensor) and leaf.ndim else leaf

    result: Batch = tree_map(cut_leaf, batch)
    return result


def divide(batch: Batch, m: int, ranks: int) -> tuple[list[Batch], bool]:
    """The groups of m examples, and whether one group spans all ranks.

    >>> import torch
    >>> groups, spans = divide((torch.arange(6),), 3, 1)
    >>> [g[0].tolist() for g in groups], spans
    ([[0, 1, 2], [3, 4, 5]], False)
    """
    num = size_of(batch)
    if m == num * ranks:
        return [batch], ranks > 1
    if m <= num and num % m == 0:
        return [cut(batch, i, i + m) for i in range(0, num, m)], False
    every, shared = "", ""
    if ranks > 1:
        every, shared = f" on each of {ranks} ranks", f' ({num * ranks} or "all" for all ranks)'
    raise UsageError(
        f"m={m} does not divide the batch of {num}{every}: take m from {_divisors(num)}{shared}, or drop_last=True in "
        "the DataLoader if this batch is the short one at the end of an epoch"
    )


def first_part(batch: Batch, fraction: float) -> Batch:
    """The first ⌈fraction · N⌉ examples.

    >>> import torch
    >>> first_part((torch.arange(5),), 0.5)[0].tolist()
    [0, 1, 2]
    """
    batch = require_batch(batch, f"fraction={fraction}")
    return cut(batch, 0, max(1, math.ceil(fraction * size_of(batch))))


def require_batch(batch: Batch, option: str) -> Batch:
    """The batch; a `UsageError` if an option divides the batch but `backward` was given none."""
    if not batch:
        raise UsageError(
            f"{option} divides the batch, so the batch must be given: "
            "sam.backward(lambda x, y: F.cross_entropy(model(x), y), x, y)"
        )
    return batch


def _divisors(num: int) -> str:
    return ", ".join(str(i) for i in range(1, num + 1) if num % i == 0)
