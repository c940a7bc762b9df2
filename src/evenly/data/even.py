"""A few of many examples, as many of each class as can be.

Shapes: N examples.
"""

import torch
from torch import Tensor


def evenly_over(labels_N: Tensor, most: int, *, rng: torch.Generator) -> Tensor:
    """The rows of at most `most` examples, drawn so that classes have equally many or all they have; in their order.

    >>> labels = torch.tensor([0] * 8 + [1] * 2)
    >>> labels[evenly_over(labels, 4, rng=torch.Generator().manual_seed(0))].tolist()
    [0, 0, 1, 1]
    """
    if len(labels_N) <= most:
        return torch.arange(len(labels_N))
    drawn_N = torch.randperm(len(labels_N), generator=rng, device=rng.device).cpu()
    label_N, by_class_N = labels_N.cpu()[drawn_N].sort(stable=True)
    # An example's turn is its place within its class: the first of each class come before the second of any, and who
    # comes in the last turn, where there is no room for all, is as drawn.
    turn_N = torch.empty_like(drawn_N)
    turn_N[by_class_N] = torch.arange(len(label_N)) - torch.searchsorted(label_N, label_N)
    return drawn_N[turn_N.argsort(stable=True)[:most]].sort().values
