"""How a statement about every set is counted, and a logarithm that is always a number."""

from collections.abc import Collection, Mapping, Sequence

from torch import Tensor

ROUNDING = 1e-9  # relative: what is equal in exact arithmetic is not a violation
DECADES = 30.0


def violations(held: Mapping[str, bool]) -> dict[str, float]:
    """`NAME.violated` in percent of one set: 0 where the statement held, 100 where not.

    A statement about every set is judged by these, not by the mean of what it is about: one set refutes it.

    >>> violations({"bound": True, "order": False})
    {'bound.violated': 0.0, 'order.violated': 100.0}
    """
    return {f"{name}.violated": 0.0 if true else 100.0 for name, true in held.items()}


def worst_share(cells: Collection[Sequence[bool]]) -> float:
    """The largest share of True among cells, in percent.

    >>> worst_share([[False, False], [True, False], [False, False]])
    50.0
    """
    return max(100 * sum(cell) / len(cell) for cell in cells)


def decimal_log(value: Tensor) -> Tensor:
    """log₁₀ of what is not negative, kept within ±30: zero is −30, and what overflowed or is NaN is +30.

    >>> import torch
    >>> decimal_log(torch.tensor([0.0, 100.0, float("inf"), float("nan")])).tolist()
    [-30.0, 2.0, 30.0, 30.0]
    """
    found: Tensor = value.log10().nan_to_num(nan=DECADES, posinf=DECADES, neginf=-DECADES).clamp(-DECADES, DECADES)
    return found
