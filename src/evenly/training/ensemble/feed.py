"""What every member sees at every step: its own order through its own data, or all of them at once.

Order is a pure function of (seed, epoch), so a feed begins at any step.

Shapes: K members, D data sets, N examples of each, B in a batch, S seeds.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from evenly import rng

_AT_ONCE = 2**25  # bytes gathered together: a step's own gather would cost as much as one of its layers


class Batch(NamedTuple):
    """Inputs and targets, K × B × …, and each example's share in the mean: a number, or K × B × 1."""

    inputs: Tensor
    targets: Tensor
    share: Tensor | float


class Feed(NamedTuple):
    """Data sets stacked, which member uses which, and the seeds of their orders.

    `weights_KN` says how often each example counts; None is once. `batch_size` None is all examples at every step.
    """

    inputs_DN: Tensor
    targets_DN: Tensor
    which_K: Tensor
    seeds: list[int]
    batch_size: int | None
    weights_KN: Tensor | None = None

    @property
    def num_examples(self) -> int:
        """N."""
        return self.inputs_DN.shape[1]

    @property
    def steps_per_epoch(self) -> int:
        """Batches in an epoch; the last may be smaller."""
        return 1 if self.batch_size is None else -(-self.num_examples // self.batch_size)

    def rows(self, rows: slice) -> "Feed":
        """The feed of some of the members."""
        weights_KN = None if self.weights_KN is None else self.weights_KN[rows]
        return self._replace(which_K=self.which_K[rows], seeds=self.seeds[rows], weights_KN=weights_KN)

    def whole(self) -> Batch:
        """All examples of every member, in their own order; shared data are not copied."""
        share = _share(self.weights_KN, self.num_examples)
        return Batch(self._members(self.inputs_DN), self._members(self.targets_DN), share)

    def batches(self, start: int) -> Iterator[Batch]:
        """The batches from step `start` on, without end."""
        if self.batch_size is None:
            batch = self.whole()
            while True:
                yield batch
        epoch, done = divmod(start, self.steps_per_epoch)
        while True:
            yield from self._epoch(epoch, done, self.batch_size)
            epoch, done = epoch + 1, 0

    def _epoch(self, epoch: int, done: int, size: int) -> Iterator[Batch]:
        order_KN = orders(self.num_examples, seeds=self.seeds, epoch=epoch).to(self.inputs_DN.device)
        place_KN = order_KN + (self.which_K * self.num_examples)[:, None]
        row = len(place_KN) * self.inputs_DN[0, 0].numel() * self.inputs_DN.element_size()
        block = size * max(1, _AT_ONCE // max(1, row * size))
        for first in range(done * size, self.num_examples, block):
            place_KL = place_KN[:, first : first + block]
            x_KL, y_KL = _gather(self.inputs_DN, place_KL), _gather(self.targets_DN, place_KL)
            w_KL = None if self.weights_KN is None else self.weights_KN.gather(1, order_KN[:, first : first + block])
            for at in range(0, place_KL.shape[1], size):
                cut = slice(at, at + size)
                num = min(size, place_KL.shape[1] - at)
                yield Batch(x_KL[:, cut], y_KL[:, cut], _share(None if w_KL is None else w_KL[:, cut], num))

    def _members(self, sets_DN: Tensor) -> Tensor:
        if len(sets_DN) == 1:
            return sets_DN.expand(len(self.which_K), *sets_DN.shape[1:])
        if torch.equal(self.which_K.cpu(), torch.arange(len(sets_DN))):
            return sets_DN
        return sets_DN[self.which_K]


def orders(num: int, *, seeds: Sequence[int], epoch: int) -> Tensor:
    """`evenly.data.batches.order` for many seeds at once, a row each.

    >>> from evenly.data.batches import order
    >>> torch.equal(orders(50, seeds=[3, 5], epoch=2)[1], order(50, seed=5, epoch=2))
    True
    """
    known = {seed: place for place, seed in enumerate(dict.fromkeys(seeds))}
    keys_S = torch.tensor([rng.key(seed, "order", epoch) for seed in known])
    order_SN = rng.mix(rng.mix(torch.arange(num)) ^ keys_S[:, None]).argsort(1)
    return order_SN[torch.tensor([known[seed] for seed in seeds])]


def _gather(sets_DN: Tensor, place_KL: Tensor) -> Tensor:
    found = sets_DN.flatten(0, 1).index_select(0, place_KL.flatten())
    return found.view(*place_KL.shape, *sets_DN.shape[2:])


def _share(weights_KB: Tensor | None, num: int) -> Tensor | float:
    if weights_KB is None:
        return 1.0 / num
    return (weights_KB / weights_KB.sum(1, keepdim=True)).unsqueeze(2)
