"""Sets of curvatures drawn at random, and statements about every one of them."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from evenly.papers.claim import Claim

if TYPE_CHECKING:
    import torch

    from evenly.stability.problem import Problem

ROUNDING = 1e-9  # relative: what is equal in exact arithmetic is not a violation


def in_every_set(name: str, says: str, quantity: str = "", *, corrects: bool = False, note: str = "") -> Claim:
    """A statement about every set: one set that breaks it refutes it."""
    judged_before = "until its first run it was judged by the mean over sets, which is weaker"
    return Claim(
        name,
        f"{says} (sets in which not, %)",
        f"{quantity or name}.violated = 0",
        corrects=corrects,
        after=True,
        note="; ".join(filter(None, [note, judged_before])),
    )


def violations(held: Mapping[str, bool]) -> dict[str, float]:
    """`NAME.violated` in percent of one set: 0 where the statement held, 100 where not.

    A statement about every set is judged by these, not by the mean of what it is about.

    >>> violations({"bound": True, "order": False})
    {'bound.violated': 0.0, 'order.violated': 100.0}
    """
    return {f"{name}.violated": 0.0 if true else 100.0 for name, true in held.items()}


def random_set(rng: "torch.Generator", *, num: int, dim: int) -> "Problem":
    """Hᵢ = gᵢgᵢᵀ with normal gᵢ, some examples and some directions steeper than others."""
    import torch

    from evenly.stability.problem import Problem

    by_example, by_direction = (torch.randn(shape, generator=rng).mul(0.5).exp() for shape in ((num, 1), (1, dim)))
    return Problem.from_factors((torch.randn(num, dim, generator=rng) * by_example * by_direction).double())
