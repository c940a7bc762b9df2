"""A sampler over a multiset: every epoch shows each copy once, in a new order, each process its own share."""

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.utils.data import Sampler

from evenly.rng import generator


class MultisetSampler(Sampler[int]):
    """Positions with repeats, shuffled by (seed, epoch) and dealt to processes as `DistributedSampler` does.

    Call `set_epoch` before each epoch, as Lightning and Accelerate do by themselves. The place among the processes is
    that of `torch.distributed` unless it is given.

    >>> sampler = MultisetSampler(torch.tensor([0, 1, 1]), seed=0)
    >>> sorted(sampler), len(sampler)
    ([0, 1, 1], 3)
    """

    def __init__(
        self,
        positions: Tensor,
        *,
        seed: int = 0,
        shuffle: bool = True,
        rank: int | None = None,
        num_replicas: int | None = None,
    ) -> None:
        spread = torch.distributed.is_available() and torch.distributed.is_initialized()
        self.rank = rank if rank is not None else torch.distributed.get_rank() if spread else 0
        self.num_replicas = num_replicas or (torch.distributed.get_world_size() if spread else 1)
        self.positions, self.seed, self.shuffle, self.epoch = positions, seed, shuffle, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch, and with it the order."""
        self.epoch = epoch

    def __iter__(self) -> Iterator[int]:
        order = self.positions
        if self.shuffle:
            numbers = generator(self.seed, "sampler", self.epoch)
            order = order[torch.randperm(len(order), generator=numbers)]
        total = len(self) * self.num_replicas
        order = order.repeat(-(-total // max(len(order), 1)))[:total]
        yield from order[self.rank :: self.num_replicas].tolist()

    def __len__(self) -> int:
        return -(-len(self.positions) // self.num_replicas)
