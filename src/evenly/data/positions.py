"""Positions of examples, as given by a user: whole numbers, not a mask and not rounded.

Shapes: M positions.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from evenly.data.numpy_memory import as_tensor
from evenly.errors import UsageError


def check_positions(given: Tensor | Sequence[int], num: int, *, who: str, where: str) -> Tensor:
    """The positions as 64-bit numbers on their own device; `who` is given them, `where` are the `num` examples.

    Positions on a GPU are not compared with `num`: reading them would wait for it.

    >>> check_positions([0, 2, 2], 3, who="subset: positions", where="digits train")
    tensor([0, 2, 2])
    >>> check_positions(torch.tensor([True, False]), 2, who="subset: positions", where="digits train")
    Traceback (most recent call last):
    evenly.errors.UsageError: subset: positions are torch.bool: give positions, whole numbers from 0 to 1. Of ...
    """
    try:
        given_M = as_tensor(given)
    except (TypeError, ValueError, RuntimeError) as error:
        raise UsageError(f"{who} are {given!r:.60}: give positions, whole numbers from 0 to {num - 1}.") from error
    if given_M.ndim != 1:
        raise UsageError(f"{who} have shape {tuple(given_M.shape)}: give one row of positions.")
    # A position is not rounded, and a mask is no list of positions; an empty list is float to torch.
    if len(given_M) and (given_M.is_floating_point() or given_M.is_complex() or given_M.dtype == torch.bool):
        raise UsageError(
            f"{who} are {given_M.dtype}: give positions, whole numbers from 0 to {num - 1}."
            + (" Of a mask they are mask.nonzero().flatten()." if given_M.dtype == torch.bool else "")
        )
    position_M = given_M.to(torch.int64)
    if position_M.is_cpu:
        wrong = position_M[(position_M < 0) | (position_M >= num)]
        if len(wrong):
            raise UsageError(
                f"{who}: {len(wrong)} of them are outside {where}, the first is {int(wrong[0])}: positions run from "
                f"0 to {num - 1}."
            )
    return position_M
