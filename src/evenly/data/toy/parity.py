"""Chang & Khanna (2025): the ±1 cube with the parity of two coordinates as label."""

import torch

from evenly.data.labelled import Labelled
from evenly.data.splits import Splits
from evenly.data.toy.counts import require_counts
from evenly.errors import UsageError


def parity(*, rng: torch.Generator, num_train: int = 100, num_test: int = 1_000, dim: int = 100) -> Splits:
    """Inputs x uniform in {−1, +1}^d and y = x₀·x₁; class 1 is y = +1.

    >>> data = parity(rng=torch.Generator().manual_seed(0), dim=5).train
    >>> torch.equal(2 * data.labels - 1, (data.inputs[:, 0] * data.inputs[:, 1]).long())
    True
    """
    require_counts(dim, num_train=num_train, num_test=num_test)
    if dim < 2:
        raise UsageError(f"dim = {dim}: the label is the product of two coordinates, so give 2 or more.")

    def draw(num: int) -> Labelled:
        bits_ND = torch.randint(2, (num, dim), generator=rng)
        labels_N = (bits_ND[:, 0] == bits_ND[:, 1]).long()
        return Labelled(
            (2 * bits_ND - 1).float(),
            labels_N,
            ("-1", "+1"),
            attributes={"x0": bits_ND[:, 0], "x1": bits_ND[:, 1]},
            values={"x0": ("-1", "+1"), "x1": ("-1", "+1")},
        )

    return Splits("parity", {"train": draw(num_train), "test": draw(num_test)})
