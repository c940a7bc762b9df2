"""Batches of labelled data, in a reproducible order and with reproducible augmentation.

Order is a pure function of (seed, epoch), augmentation of (seed, epoch, index, copy). Training that stops in the
middle of an epoch and resumes at batch `start` sees exactly the same batches as without the stop, for any number of
workers.

Shapes: N examples, M places in the multiset (an example repeated twice has two), K of them this process's remaining
ones, L transformed together, B in a batch.
"""

import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from evenly import rng
from evenly.data.augment import Augmentation
from evenly.data.batch_arguments import check_kinds, example_weights, positions_in, whole_number
from evenly.data.decoding import Decoder
from evenly.data.draws import Draws
from evenly.data.labelled import Labelled, Lazy, scale_pixels
from evenly.data.targeted import Targeted
from evenly.device import pins, prefetch, upload
from evenly.errors import UsageError


class Batch(NamedTuple):
    """The examples of one step; all but inputs and labels stay on the CPU, where bookkeeping happens.

    `position` is each example's place in the data, `index` its own number, `copy` the number of its repeat. `whole` is
    the size of the batch of which this process has a share. `weight`, if examples have one, is on the labels' device.
    """

    inputs: Tensor
    labels: Tensor
    index: Tensor  # type: ignore[assignment]  # hides tuple.index, which nobody wants of a batch
    copy: Tensor
    position: Tensor
    whole: int
    weight: Tensor | None = None


def order(num: int, *, seed: int, epoch: int) -> Tensor:
    """The permutation of 0..num−1 in which `epoch` visits its examples.

    The ranks of SplitMix64 words: unlike a generator's shuffle it is the same in every release of torch.

    >>> order(5, seed=0, epoch=1).sort().values.tolist()
    [0, 1, 2, 3, 4]
    >>> torch.equal(order(100, seed=0, epoch=1), order(100, seed=0, epoch=2))
    False
    """
    # Two rounds: nearby counters under nearby keys must not give nearby words.
    return rng.mix(rng.mix(torch.arange(num)) ^ rng.key(seed, "order", epoch)).argsort()


def occurrences(index: Tensor) -> Tensor:
    """The number of earlier occurrences of each entry: 0 for the first of its kind, 1 for the second.

    >>> occurrences(torch.tensor([7, 3, 7, 7, 3])).tolist()
    [0, 0, 1, 2, 1]
    """
    values, where = index.sort(stable=True)
    place = torch.arange(len(index))
    fresh = torch.ones(len(index), dtype=torch.bool)
    fresh[1:] = values[1:] != values[:-1]
    first = torch.where(fresh, place, 0).cummax(0).values
    return torch.empty_like(place).scatter_(0, where, place - first)


class Batches:
    """One data set in batches, epoch after epoch; worker processes live as long as this object.

    Parameters
    ----------
    data
        Examples; images as uint8. Tensors are cut in this process, lazy inputs decoded by `workers` processes. Inputs
        other than bytes become float32.
    batch_size, drop_last
        Examples per batch; whether a smaller last batch is left out.
    seed
        Decides order and augmentation, together with the epoch.
    indices
        Positions in `data`, with repeats where an example shall be seen more than once; all once by default.
        `copy` numbers the repeats of an example by their place here, not by the order they are drawn in.
    shuffle
        Whether each epoch has its own order; otherwise the order is that of `indices`.
    augment
        Applied on the device of the batch; without it images become float32 in [0, 1].
    targeted
        More augmentation for some of the examples, after `augment`.
    weights
        A number from 0 on for every example of `data`, which its batches carry.
    device
        The device of the batches; by default that of the data.
    workers
        Processes that decode lazy inputs; results are the same for any number.
    share
        (rank, size): take only the examples rank, rank + size, … of every batch, for training on many devices.

    Examples
    --------
    >>> data = Labelled(torch.arange(6.0)[:, None], torch.zeros(6, dtype=torch.int64), ("one",))
    >>> loader = Batches(data, batch_size=4, seed=0, indices=[0, 1, 1, 5], shuffle=False)
    >>> [(b.index.tolist(), b.copy.tolist()) for b in loader.epoch(0)]
    [([0, 1, 1, 5], [0, 0, 1, 0])]
    """

    def __init__(
        self,
        data: Labelled,
        *,
        batch_size: int,
        seed: int,
        indices: Tensor | Sequence[int] | None = None,
        shuffle: bool = True,
        augment: Augmentation | None = None,
        targeted: Targeted | None = None,
        weights: Tensor | Sequence[float] | None = None,
        device: torch.device | str | None = None,
        drop_last: bool = False,
        workers: int = 0,
        share: tuple[int, int] = (0, 1),
    ) -> None:
        check_kinds(data, augment)
        self.batch_size, self.seed = whole_number("batch_size", batch_size, least=1), whole_number("seed", seed)
        self.data, self.shuffle, self.augment = data, shuffle, augment
        self.drop_last, self.workers = drop_last, workers
        self.rank, self.size = share
        self.device = data.labels.device if device is None else torch.device(device)
        self._position_M = positions_in(data, indices)
        self._index_M = data.index.cpu()[self._position_M]
        self._copy_M = occurrences(self._index_M)
        weight_N = example_weights(data, weights)
        self._weight_M = None if weight_N is None else weight_N[self._position_M]
        self.targeted = targeted
        if targeted is not None:
            targeted.check(data, augment)
        self._check()
        self._decoder = (
            Decoder(data.inputs, workers=workers, pin_memory=pins(self.device))
            if isinstance(data.inputs, Lazy)
            else None
        )

    def __len__(self) -> int:
        """Batches in an epoch."""
        whole, rest = divmod(len(self._position_M), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    @property
    def examples(self) -> int:
        """Examples in an epoch, repeats counted, over all shares."""
        num = len(self._position_M)
        return num - num % self.batch_size if self.drop_last else num

    def epoch(self, epoch: int, *, start: int = 0) -> Iterator[Batch]:
        """The batches of `epoch` from number `start` on; nothing is read for those before."""
        number = whole_number("epoch", epoch, least=0)
        if not 0 <= start <= len(self):
            raise UsageError(f"batches: start {start} is not among the {len(self)} batches of an epoch.")
        return self._batches(number, start)

    def _batches(self, epoch: int, start: int) -> Iterator[Batch]:
        place_K, lengths, wholes = self._shares(epoch, start)
        position_K, index_K, copy_K = (facts_M[place_K] for facts_M in (self._position_M, self._index_M, self._copy_M))
        labels_N = self.data.labels
        label_K = upload(labels_N.index_select(0, upload(position_K, labels_N.device)), self.device)
        weight_K = None if self._weight_M is None else upload(self._weight_M[place_K], self.device)
        finish = scale_pixels if self.augment is None else self.augment.finish
        # Small images are transformed some batches at a time, since calling operators is then half of the work, and
        # their random numbers, being few, are drawn further ahead; a batch becomes float, four times as large, alone.
        together = self._together()
        groups = [slice(first, first + together) for first in range(0, len(lengths), together)]
        spans = list(itertools.pairwise([0, *itertools.accumulate(sum(lengths[group]) for group in groups)]))
        begin, draws = 0, Draws(self.seed, epoch, index_K[:_AHEAD], copy_K[:_AHEAD])
        inputs = prefetch(self._inputs([position_K[first:last] for first, last in spans]), self.device)
        for x_L, group, (first, last) in zip(inputs, groups, spans, strict=True):
            if last - begin > len(draws):
                begin, ahead = first, slice(first, max(last, first + _AHEAD))
                draws = Draws(self.seed, epoch, index_K[ahead], copy_K[ahead])
            if self.augment is not None:
                x_L = self.augment.transform(x_L, draws.part(first - begin, last - begin))
            if self.targeted is not None:
                x_L = self.targeted(x_L, position_K[first:last], draws.part(first - begin, last - begin))
            facts = (fact_K[first:last] for fact_K in (label_K, index_K, copy_K, position_K))
            x_Bs, *facts_Bs = (torch.split(tensor, lengths[group]) for tensor in (x_L, *facts))
            weight_Bs = (
                itertools.repeat(None) if weight_K is None else torch.split(weight_K[first:last], lengths[group])
            )
            yield from map(Batch, map(finish, x_Bs), *facts_Bs, wholes[group], weight_Bs)

    def _shares(self, epoch: int, start: int) -> tuple[Tensor, list[int], list[int]]:
        """The places of this process in the epoch, how many of them each batch has, and the sizes of whole batches."""
        num, size = len(self._position_M), self.batch_size
        place_K = order(num, seed=self.seed, epoch=epoch) if self.shuffle else torch.arange(num)
        place_K = place_K[start * size : len(self) * size]
        firsts = range(0, len(place_K), size)
        wholes = [min(size, len(place_K) - first) for first in firsts]
        if self.size == 1:
            return place_K, wholes, wholes
        shares = [place_K[first : first + size][self.rank :: self.size] for first in firsts]
        return torch.cat([place_K[:0], *shares]), [len(share) for share in shares], wholes

    def _together(self) -> int:
        """Batches whose images are transformed at once: as many as the processor's cache holds."""
        inputs = self.data.inputs
        if not isinstance(inputs, Tensor):
            return 1
        return max(1, _AT_ONCE // max(1, self.batch_size * inputs[:1].nbytes))

    def _inputs(self, positions: Sequence[Tensor]) -> Iterator[Tensor]:
        # Before they go to a device, which may have no float64.
        return map(_bytes_or_float32, self._stored_inputs(positions))

    def _stored_inputs(self, positions: Sequence[Tensor]) -> Iterator[Tensor]:
        if self._decoder is not None:
            return self._decoder.read(positions)
        inputs = self.data.inputs
        assert isinstance(inputs, Tensor)
        if not inputs.is_cpu and positions:  # an epoch's positions go to the device once
            there = upload(torch.cat(list(positions)), inputs.device)
            positions = torch.split(there, [len(each) for each in positions])
        # index_select copies whole examples; advanced indexing would look at every pixel.
        return (inputs.index_select(0, position_B) for position_B in positions)

    def _check(self) -> None:
        name, num = f"{self.data.name} {self.data.split}", len(self._position_M)
        if self.workers < 0:
            raise UsageError(f"batches: workers must be 0 or more, not {self.workers}.")
        if not 0 <= self.rank < self.size <= self.batch_size:
            raise UsageError(
                f"batches: share ({self.rank}, {self.size}) of a batch of {self.batch_size} is not possible: the rank "
                "must be below the size, and the size no larger than the batch."
            )
        if self.drop_last and num < self.batch_size:
            raise UsageError(
                f"batches: {name} has {num} examples, fewer than one batch of {self.batch_size}, and drop_last leaves "
                f"nothing. Use batch_size ≤ {num} or drop_last=False."
            )


def batches(
    data: Labelled,
    *,
    batch_size: int,
    seed: int,
    epoch: int,
    indices: Tensor | Sequence[int] | None = None,
    shuffle: bool = True,
    augment: Augmentation | None = None,
    device: torch.device | str | None = None,
    drop_last: bool = False,
    workers: int = 0,
    start: int = 0,
) -> Iterator[Batch]:
    """The batches of one epoch from number `start` on; see `Batches`, which keeps its workers between epochs.

    >>> data = Labelled(torch.arange(5.0)[:, None], torch.zeros(5, dtype=torch.int64), ("one",))
    >>> [len(batch.inputs) for batch in batches(data, batch_size=2, seed=0, epoch=0)]
    [2, 2, 1]
    """
    loader = Batches(
        data,
        batch_size=batch_size,
        seed=seed,
        indices=indices,
        shuffle=shuffle,
        augment=augment,
        device=device,
        drop_last=drop_last,
        workers=workers,
    )
    return loader.epoch(epoch, start=start)


_AT_ONCE = 1 << 22  # bytes
_AHEAD = 4096  # examples


def _bytes_or_float32(x: Tensor) -> Tensor:
    return x if x.dtype == torch.uint8 else x.to(torch.float32)
