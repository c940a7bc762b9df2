"""A few of many examples, spread evenly over the classes.

Shapes: N examples.
"""

import torch
from torch import Tensor


def evenly_over(labels_N: Tensor, most: int, *, rng: torch.Generator) -> Tensor:
    """The rows, in order, of at most `most` random examples: equally many of each class, or all of a small one.

    >>> labels = torch.tensor([0] * 8 + [1] * 2)
    >>> labels[evenly_over(labels, 4, rng=torch.Generator().manual_seed(0))].tolist()
    [0, 0, 1, 1]
    """
    if len(labels_N) <= most:
        return torch.arange(len(labels_N))
    drawn_N = torch.randperm(len(labels_N), generator=rng, device=rng.device).cpu()
    label_N, by_class_N = labels_N.cpu()[drawn_N].sort(stable=True)
    # An example's round is its place within its class: the first of each class come before the second of any. In the
    # last round, which may not have room for all, the order is random.
    turn_N = torch.empty_like(drawn_N)
    turn_N[by_class_N] = torch.arange(len(label_N)) - torch.searchsorted(label_N, label_N)
    return drawn_N[turn_N.argsort(stable=True)[:most]].sort().values
