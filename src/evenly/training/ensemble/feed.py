"""What every member sees at every step: its own order through its own data, or all of them at once.

Order is a pure function of (seed, epoch), so any step may be asked for.

Shapes: K members, D data sets, N examples of each, B in a batch, S seeds.
"""

from collections.abc import Sequence
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


class Feed:
    """Data sets stacked, which member uses which, and the seeds of their orders.

    `weights_KN` says how often each example counts; None is once. `batch_size` None is all examples at every step.
    What is kept between calls only saves work: `batch(step)` is a function of the step.
    """

    def __init__(
        self,
        inputs_DN: Tensor,
        targets_DN: Tensor,
        *,
        which_K: Tensor,
        seeds: list[int],
        batch_size: int | None,
        weights_KN: Tensor | None = None,
    ) -> None:
        self.inputs_DN, self.targets_DN = inputs_DN, targets_DN
        self.which_K, self.seeds, self.batch_size, self.weights_KN = which_K, seeds, batch_size, weights_KN
        self.num_examples = inputs_DN.shape[1]
        self.steps_per_epoch = 1 if batch_size is None else -(-self.num_examples // batch_size)
        size = batch_size or self.num_examples
        step = len(seeds) * size * inputs_DN[0, 0].numel() * inputs_DN.element_size()
        self._steps_at_once = max(1, _AT_ONCE // max(1, step))
        self._kept: dict[tuple[int, int], list[Batch]] = {}
        self._order: dict[int, Tensor] = {}

    def rows(self, rows: slice) -> "Feed":
        """The feed of some of the members."""
        return Feed(
            self.inputs_DN,
            self.targets_DN,
            which_K=self.which_K[rows],
            seeds=self.seeds[rows],
            batch_size=self.batch_size,
            weights_KN=None if self.weights_KN is None else self.weights_KN[rows],
        )

    def whole(self) -> Batch:
        """All examples of every member, in their own order; shared data are not copied."""
        share = _share(self.weights_KN, self.num_examples)
        return Batch(self._members(self.inputs_DN), self._members(self.targets_DN), share)

    def batch(self, step: int) -> Batch:
        """What every member sees at that step."""
        epoch, number = divmod(step, self.steps_per_epoch)
        # Full batches are all the same; small ones are gathered for many steps together.
        key = (0, 0) if self.batch_size is None else (epoch, number // self._steps_at_once)
        if key not in self._kept:
            self._kept = {key: [self.whole()] if self.batch_size is None else self._gathered(*key, self.batch_size)}
        return self._kept[key][number % self._steps_at_once]

    def _gathered(self, epoch: int, block: int, size: int) -> list[Batch]:
        if epoch not in self._order:
            order_KN = orders(self.num_examples, seeds=self.seeds, epoch=epoch)
            self._order = {epoch: order_KN.to(self.inputs_DN.device)}
        many = size * self._steps_at_once
        order_KL = self._order[epoch][:, block * many : (block + 1) * many]
        place_KL = order_KL + (self.which_K * self.num_examples)[:, None]
        x_KL, y_KL = _gather(self.inputs_DN, place_KL), _gather(self.targets_DN, place_KL)
        w_KL = None if self.weights_KN is None else self.weights_KN.gather(1, order_KL)
        found = []
        for first in range(0, place_KL.shape[1], size):
            x_KB, y_KB = x_KL[:, first : first + size], y_KL[:, first : first + size]
            w_KB = None if w_KL is None else w_KL[:, first : first + size]
            found.append(Batch(x_KB, y_KB, _share(w_KB, x_KB.shape[1])))
        return found

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
    # A batch in which nothing counts has no mean: it moves nothing, where 0/0 would end the member.
    return (weights_KB / weights_KB.sum(1, keepdim=True).clamp_min(torch.finfo(weights_KB.dtype).tiny)).unsqueeze(2)
