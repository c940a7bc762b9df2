"""Indices with repeats: the training set in which some examples occur more than once.

Shapes: N examples, M places in the multiset.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenly.data.batches import occurrences
from evenly.data.numpy_memory import as_tensor
from evenly.errors import UsageError

MOST_COPIES, MORE_COPIES = 100, 1_000_000  # for each example, and beyond that for all together
Factor = int | Tensor | NDArray[Any] | Sequence[int]


def repeats(hard_N: Tensor, *, factor: Factor = 2, once: Tensor | Sequence[int] | None = None) -> Tensor:
    """How often each example occurs: `factor` times where it is hard, once elsewhere.

    Factor 2 is the original plus one copy. A list with a factor per example ignores `hard`. `once` (a boolean per
    example, or positions) keeps some examples at one copy in any case.

    >>> hard = torch.tensor([True, False, True])
    >>> repeats(hard, factor=3).tolist(), repeats(hard, once=[2]).tolist(), repeats(hard, factor=[1, 4, 1]).tolist()
    ([3, 1, 3], [2, 1, 1], [1, 4, 1])
    """
    if _is_row(factor):
        repeat_N = whole_factors(factor, len(hard_N))
    else:
        repeat_N = torch.where(hard_N.cpu(), whole_factor(factor), 1)
    if once is not None:
        repeat_N[_rows_shown_once(once, len(hard_N))] = 1
    return repeat_N


def expand(repeat_N: Tensor | Sequence[int]) -> Tensor:
    """The multiset as positions: every example in order, then the second copies in order, then the third.

    The first N are the original data set. The number of earlier occurrences of a position is the number of its copy
    (`copies`), which augmentation uses.

    >>> expand([1, 3, 2]).tolist()
    [0, 1, 2, 1, 2, 1]
    """
    repeat_N = whole_factors(repeat_N, len(repeat_N))
    if int(repeat_N.sum()) > (most := MOST_COPIES * len(repeat_N) + MORE_COPIES):
        raise UsageError(f"{int(repeat_N.sum()):,} copies of {len(repeat_N):,} examples: at most {most:,} are made.")
    # All copies, first grouped by example, then sorted by copy number.
    position_M = torch.arange(len(repeat_N)).repeat_interleave(repeat_N)
    first_N = repeat_N.cumsum(0) - repeat_N
    copy_M = torch.arange(len(position_M)) - first_N[position_M]
    return position_M[copy_M.argsort(stable=True)]


def copies(index_M: Tensor | Sequence[int]) -> Tensor:
    """The copy number of each place: 0 for the original, 1 for the next.

    >>> copies([0, 1, 2, 1, 2, 1]).tolist()
    [0, 0, 0, 1, 1, 2]
    """
    return occurrences(torch.as_tensor(index_M, dtype=torch.int64).cpu())


def whole_factor(factor: object) -> int:
    """The factor as a whole number of at least 1, or an error.

    >>> whole_factor(0.5)
    Traceback (most recent call last):
    evenly.errors.UsageError: factor=0.5: an example occurs a whole number of times, at least once. ...
    """
    value = factor.item() if isinstance(factor, Tensor | np.generic | np.ndarray) else factor
    if not isinstance(value, int | float) or isinstance(value, bool) or value != value // 1 or value < 1:
        raise UsageError(
            f"factor={value!r}: an example occurs a whole number of times, at least once. Use 2 for the original plus "
            "one copy; for weights in between use evenly.resampling.baselines.upweight."
        )
    return int(value)


def whole_factors(factors: Any, num: int) -> Tensor:
    """One factor per example as int64, each at least 1; an error names the first that is not.

    >>> whole_factors([1, 0], 2)
    Traceback (most recent call last):
    evenly.errors.UsageError: factor 0 of example 1: every example occurs a whole number of times, at least once. ...
    """
    factor_N = as_tensor(factors).detach().cpu()
    if factor_N.shape != (num,):
        raise UsageError(f"{len(factor_N):,} factors for {num:,} examples: give one for each, or a single number.")
    wrong = (factor_N < 1) | (factor_N != factor_N.floor() if factor_N.is_floating_point() else False)
    if bool(wrong.any()):
        first = int(wrong.nonzero()[0])
        raise UsageError(
            f"factor {factor_N[first].item()} of example {first}: every example occurs a whole number of times, at "
            "least once. Nothing is ever left out; to do that, take a subset of the data set first."
        )
    return factor_N.long().clone()


def _is_row(factor: Any) -> bool:
    return not isinstance(factor, str) and hasattr(factor, "__len__") and getattr(factor, "ndim", 1) > 0


def _rows_shown_once(once: Tensor | Sequence[int], num: int) -> Tensor:
    try:
        chosen = as_tensor(once).detach().cpu()
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"once={once!r:.60}: give a boolean for each example, or positions.") from error
    if chosen.dtype == torch.bool:
        if chosen.shape != (num,):
            given = f"{len(chosen):,}" if chosen.ndim == 1 else f"{tuple(chosen.shape)}"
            raise UsageError(f"once: {given} booleans for {num:,} examples: give one for each, or positions.")
        return chosen
    if chosen.ndim != 1 or (len(chosen) and (chosen.is_floating_point() or chosen.is_complex())):
        kind = str(chosen.dtype).removeprefix("torch.")
        raise UsageError(
            f"once: {kind} of shape {tuple(chosen.shape)}, expected a boolean for each of the {num:,} examples, or "
            "whole numbers, the positions of those that stay at one copy."
        )
    chosen = chosen.long()
    if len(chosen) and (int(chosen.min()) < 0 or int(chosen.max()) >= num):
        raise UsageError(f"once: positions run from 0 to {num - 1}, not {int(chosen.min())} to {int(chosen.max())}.")
    return chosen
