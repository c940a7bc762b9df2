"""How batches are divided into perturbation groups."""

import pytest
import torch

from evenly.errors import UsageError
from evenly.optim.groups import divide


@pytest.mark.parametrize(
    ("m", "ranks", "sizes", "spans"),
    [(8, 1, [8], False), (8, 2, [8], False), (16, 2, [8], True), (4, 2, [4, 4], False), (1, 1, [1] * 8, False)],
)
def test_a_group_is_a_divisor_of_what_a_rank_holds_or_all_ranks_together(
    m: int, ranks: int, sizes: list[int], spans: bool
) -> None:
    groups, spanning = divide((torch.arange(8),), m, ranks)
    assert ([len(group[0]) for group in groups], spanning) == (sizes, spans)


def test_what_is_offered_instead_is_taken() -> None:
    with pytest.raises(UsageError, match=r'take m from 1, 2, 4, 8 \(16 or "all" for all ranks\)'):
        divide((torch.arange(8),), 3, 2)
    for m in (1, 2, 4, 8, 16):
        assert divide((torch.arange(8),), m, 2)[0]
