"""How a batch is drawn, and what its second moment is.

A batch of B from n examples is a vector of counts x; its curvature is H_t = (1/B) Σᵢ xᵢ Hᵢ. Every scheme has

    E[H_t M H_t] = c₁ H M H + c₂ meanᵢ Hᵢ M Hᵢ,    c₁ = (n/B)² E[xᵢxⱼ],  c₂ = (n/B²)(E[xᵢ²] − E[xᵢxⱼ]),  i ≠ j,

so the three schemes differ, in mean square, only in two numbers.
"""

from typing import Literal, get_args

import torch
from torch import Tensor

from evenly.errors import UsageError, did_you_mean
from evenly.numbers import is_whole

Sampling = Literal["bernoulli", "without", "with"]


def second_moment(sampling: Sampling, *, num_examples: int, batch: int) -> tuple[float, float]:
    """(c₁, c₂) of a sampling scheme.

    `bernoulli` takes each example with probability B/n (Chang & Khanna, 2025): (1, 1/B − 1/n).
    `without` replacement (Mulayoff & Michaeli, 2024): (1 − p, p), p = (n − B)/(B(n − 1)).
    `with` replacement: (1 − 1/B, 1/B).

    >>> second_moment("bernoulli", num_examples=4, batch=2)
    (1.0, 0.25)
    >>> second_moment("without", num_examples=100, batch=100)
    (1.0, 0.0)
    """
    check_batch(sampling, num_examples=num_examples, batch=batch)
    if sampling == "bernoulli":
        return 1.0, 1 / batch - 1 / num_examples
    if sampling == "with":
        return 1 - 1 / batch, 1 / batch
    part = (num_examples - batch) / (batch * (num_examples - 1)) if num_examples > 1 else 0.0
    return 1 - part, part


def draw(sampling: Sampling, *, num_examples: int, batches_L: Tensor, repeats: int, rng: torch.Generator) -> Tensor:
    """Counts x of `repeats` batches for every batch size of `batches_L`: float64 of shape L × repeats × n.

    The sizes share their random numbers: the smaller batch is part of the larger one, so that settings do not differ by
    the luck of the draw.

    >>> rng = torch.Generator().manual_seed(0)
    >>> x = draw("without", num_examples=5, batches_L=torch.tensor([2, 3]), repeats=4, rng=rng)
    >>> x.sum(-1)[:, 0].tolist(), (x[1] >= x[0]).all().item()
    ([2.0, 3.0], True)
    """
    size, sizes_L11 = (repeats, num_examples), batches_L[:, None, None]
    if sampling == "with":
        order = torch.randint(num_examples, (repeats, int(batches_L.max())), generator=rng, device=rng.device)
        counts = torch.zeros((len(batches_L), *size), dtype=torch.float64, device=rng.device)
        taken_LKB = (torch.arange(order.shape[1], device=rng.device) < sizes_L11).double()
        where_LKB = order.expand(len(batches_L), -1, -1)
        return counts.scatter_add_(-1, where_LKB, taken_LKB.expand_as(where_LKB))
    u = torch.rand(size, generator=rng, device=rng.device, dtype=torch.float64)
    if sampling == "bernoulli":
        return (u < sizes_L11 / num_examples).double()
    return (u.argsort(-1).argsort(-1) < sizes_L11).double()


def draw_groups(
    sampling: Sampling, *, num_examples: int, batch: int, m: int, repeats: int, rng: torch.Generator
) -> Tensor:
    """Counts of `repeats` batches, each divided into B/m groups of m examples: float64 of shape repeats × B/m × n.

    Bernoulli batches put every example into a group with probability m/n each, or into none.

    >>> x = draw_groups("without", num_examples=6, batch=4, m=2, repeats=3, rng=torch.Generator().manual_seed(0))
    >>> x.sum(-1)[0].tolist(), float(x.sum(1).max())
    ([2.0, 2.0], 1.0)
    """
    groups = batch // m
    if sampling == "with":
        places = torch.randint(num_examples, (repeats, groups, m), generator=rng, device=rng.device)
        counts = torch.zeros((repeats, groups, num_examples), dtype=torch.float64, device=rng.device)
        return counts.scatter_add_(-1, places, torch.ones_like(places, dtype=torch.float64))
    u = torch.rand((repeats, num_examples), generator=rng, device=rng.device, dtype=torch.float64)
    group_KN = (u * num_examples / m).long() if sampling == "bernoulli" else u.argsort(-1).argsort(-1) // m
    return (group_KN[:, None, :] == torch.arange(groups, device=rng.device)[:, None]).double()


def check_batch(sampling: str, *, num_examples: int, batch: int) -> None:
    """Refuse an unknown scheme and a batch that cannot be drawn."""
    if sampling not in get_args(Sampling):
        raise UsageError(f"sampling = {sampling!r} is not known. {did_you_mean(sampling, get_args(Sampling))}")
    if not is_whole(batch):
        raise UsageError(f"batch = {batch!r}: a batch has a whole number of examples, 1 or more.")
    if batch > num_examples and sampling != "with":
        raise UsageError(
            f"batch = {batch}, but there are only {num_examples} examples: give a batch of at most {num_examples}, "
            "or sampling='with' to draw examples more than once."
        )
