"""Every process gets its share of the multiset, however few positions there are."""

import pytest
import torch
from torch.utils.data import DistributedSampler

from evenly.resampling.sampler import MultisetSampler


@pytest.mark.parametrize("num", [1, 2, 3, 5, 8, 9])
@pytest.mark.parametrize("processes", [1, 2, 4, 7])
def test_shares_are_those_of_torchs_sampler_and_none_is_shorter_than_it_says(num: int, processes: int) -> None:
    positions = torch.arange(num) + 5
    for rank in range(processes):
        share = MultisetSampler(positions, shuffle=False, rank=rank, num_replicas=processes)
        theirs = DistributedSampler(positions.tolist(), num_replicas=processes, rank=rank, shuffle=False)
        assert list(share) == [5 + i for i in theirs]
        assert len(list(share)) == len(share) == len(theirs)


def test_shuffled_shares_have_the_same_length_too() -> None:
    shares = [MultisetSampler(torch.tensor([5]), rank=rank, num_replicas=4) for rank in range(4)]
    assert [list(share) for share in shares] == [[5]] * 4


def test_no_positions_are_no_shares() -> None:
    share = MultisetSampler(torch.empty(0, dtype=torch.int64), rank=1, num_replicas=4)
    assert (list(share), len(share)) == ([], 0)
