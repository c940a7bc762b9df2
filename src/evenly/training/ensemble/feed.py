"""The batch of every member at every step: its own order through its own data, or all examples at once.

The order is a pure function of (seed, epoch), so the batch of any step can be computed, and a member sees the same
examples whoever trains beside it. Noise on inputs is drawn for a block of steps at once, and blocks are shorter where
more members train together: noise is reproducible for the same members, but not between ensembles of different sizes.

Shapes: K members, D data sets, N examples of each, B in a batch, S seeds.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from evenly import rng

_AT_ONCE = 2**25  # bytes gathered at once: gathering for every step would cost as much as one of its layers


class Batch(NamedTuple):
    """Inputs and targets, K × B × …, and each example's share in the mean: a number, or K × B × 1."""

    inputs: Tensor
    targets: Tensor
    share: Tensor | float


class Feed:
    """Data sets stacked, which member uses which, and the seeds of their orders.

    `weights_KN` says how often each example counts; None is once. `batch_size` None is all examples at every step.
    `copies_KN` says how often each example is shown in an epoch of its member: epochs are then of different lengths,
    and batches go on from one to the next, so that all members take whole batches and equal steps. `noise_KN` is the
    σ of Gaussian noise on each example, drawn anew every time it is shown and clamped to [0, 1]; its stream is keyed by
    the seed of the member, the epoch and the block of steps, whose length follows from the number of members.
    State between calls is only a cache: `batch(step)` is a function of the step.
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
        copies_KN: Tensor | None = None,
        noise_KN: Tensor | None = None,
    ) -> None:
        self.inputs_DN, self.targets_DN = inputs_DN, targets_DN
        self.copies_KN, self.noise_KN = copies_KN, noise_KN
        self.which_K, self.seeds, self.batch_size, self.weights_KN = which_K, seeds, batch_size, weights_KN
        self.num_examples = inputs_DN.shape[1]
        self.steps_per_epoch = 1 if batch_size is None else -(-self.num_examples // batch_size)
        size = batch_size or self.num_examples
        step = len(seeds) * size * inputs_DN[0, 0].numel() * inputs_DN.element_size()
        self._steps_at_once = max(1, _AT_ONCE // max(1, step))
        if copies_KN is not None:  # gathering ahead may cross epochs
            self._steps_at_once = min(self._steps_at_once, self.steps_per_epoch)
        self._kept: dict[tuple[int, int], list[Batch]] = {}
        self._order: dict[int, Tensor] = {}

    def rows(self, rows: slice) -> "Feed":
        """The feed of a range of members."""
        return Feed(
            self.inputs_DN,
            self.targets_DN,
            which_K=self.which_K[rows],
            seeds=self.seeds[rows],
            batch_size=self.batch_size,
            weights_KN=None if self.weights_KN is None else self.weights_KN[rows],
            copies_KN=None if self.copies_KN is None else self.copies_KN[rows],
            noise_KN=None if self.noise_KN is None else self.noise_KN[rows],
        )

    def whole(self) -> Batch:
        """All examples of every member, in their own order; shared data are not copied."""
        share = _share(self.weights_KN, self.num_examples)
        return Batch(self._members(self.inputs_DN), self._members(self.targets_DN), share)

    def batch(self, step: int) -> Batch:
        """The batch of every member at that step."""
        # Where epochs differ in length, steps are counted through; otherwise each epoch has its own order.
        epoch, number = (0, step) if self.copies_KN is not None else divmod(step, self.steps_per_epoch)
        # Full batches are all the same; small ones are gathered for many steps at once.
        key = (0, 0) if self.batch_size is None else (epoch, number // self._steps_at_once)
        if key not in self._kept:
            self._kept = {key: [self.whole()] if self.batch_size is None else self._gather(*key, self.batch_size)}
        return self._kept[key][number % self._steps_at_once]

    def _gather(self, epoch: int, block: int, size: int) -> list[Batch]:
        many = size * self._steps_at_once
        if self.copies_KN is not None:
            order_KL = self._stream(block * many, (block + 1) * many)
        else:
            if epoch not in self._order:
                order_KN = orders(self.num_examples, seeds=self.seeds, epoch=epoch)
                self._order = {epoch: order_KN.to(self.inputs_DN.device)}
            order_KL = self._order[epoch][:, block * many : (block + 1) * many]
        place_KL = order_KL + (self.which_K * self.num_examples)[:, None]
        x_KL, y_KL = _gather(self.inputs_DN, place_KL), _gather(self.targets_DN, place_KL)
        if self.noise_KN is not None:
            x_KL = self._noisy(x_KL, self.noise_KN.gather(1, order_KL), place=(epoch, block))
        w_KL = None if self.weights_KN is None else self.weights_KN.gather(1, order_KL)
        batches = []
        for first in range(0, place_KL.shape[1], size):
            x_KB, y_KB = x_KL[:, first : first + size], y_KL[:, first : first + size]
            w_KB = None if w_KL is None else w_KL[:, first : first + size]
            batches.append(Batch(x_KB, y_KB, _share(w_KB, x_KB.shape[1])))
        return batches

    def _stream(self, first: int, last: int) -> Tensor:
        """Which examples every member is shown at these places, counted over its epochs, K × (last − first)."""
        assert self.copies_KN is not None
        rows = []
        for seed, copies_N in zip(self.seeds, self.copies_KN.cpu(), strict=True):
            shown_M = torch.arange(self.num_examples).repeat_interleave(copies_N)
            epochs = range(first // len(shown_M), -(-last // len(shown_M)))
            orders_M = torch.cat([shown_M[orders(len(shown_M), seeds=[seed], epoch=epoch)[0]] for epoch in epochs])
            rows.append(orders_M[first - epochs.start * len(shown_M) :][: last - first])
        return torch.stack(rows).to(self.inputs_DN.device)

    def _noisy(self, x_KL: Tensor, sigma_KL: Tensor, *, place: tuple[int, int]) -> Tensor:
        """The inputs, with noise added for the members that have it; `place` is the epoch and the block of steps."""
        for member in (sigma_KL > 0).any(1).nonzero()[:, 0].tolist():
            drawn = rng.generator(self.seeds[member], "ensemble noise", *place)
            shape = x_KL[member].shape
            noise_L = (
                torch.randn(shape, generator=drawn).to(x_KL).mul_(sigma_KL[member].view(-1, *[1] * (len(shape) - 1)))
            )
            # Examples without noise stay bit-identical.
            x_KL[member] = torch.where(noise_L == 0, x_KL[member], (x_KL[member] + noise_L).clamp_(0, 1))
        return x_KL

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
    rows = sets_DN.flatten(0, 1).index_select(0, place_KL.flatten())
    return rows.view(*place_KL.shape, *sets_DN.shape[2:])


def _share(weights_KB: Tensor | None, num: int) -> Tensor | float:
    if weights_KB is None:
        return 1.0 / num
    # A batch of total weight 0 has no mean: its gradient is 0, where 0/0 would make the member nan.
    return (weights_KB / weights_KB.sum(1, keepdim=True).clamp_min(torch.finfo(weights_KB.dtype).tiny)).unsqueeze(2)
