"""Batches: order, repeats, resuming, workers, and what is refused."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from evenly.data.augment import Augmentation
from evenly.data.batches import Batch, Batches, batches, occurrences, order
from evenly.data.labelled import Labelled
from evenly.errors import DataError, UsageError

AUGMENT = Augmentation.parse(["pad-crop:2", "mirror", "trivial"])


@dataclass
class Files:
    """Lazy inputs that live in memory; one position may be damaged."""

    pixels: Tensor
    damaged: int = -1

    def __len__(self) -> int:
        return len(self.pixels)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.pixels.shape[1:])

    def read(self, positions: Sequence[int]) -> Tensor:
        if self.damaged in positions:
            raise DataError(f"image {self.damaged} does not decode")
        return self.pixels[list(positions)]

    def select(self, positions: Sequence[int]) -> "Files":
        return Files(self.pixels[list(positions)])

    def identity(self) -> Iterator[bytes]:
        yield self.pixels.numpy().tobytes()


def labelled(num: int = 50, *, lazy: bool = False, damaged: int = -1) -> Labelled:
    draw = torch.Generator().manual_seed(1)
    pixels = torch.randint(0, 256, (num, 3, 8, 8), dtype=torch.uint8, generator=draw)
    return Labelled(Files(pixels, damaged) if lazy else pixels, torch.arange(num) % 5, tuple("abcde"))


def same(a: list[Batch], b: list[Batch]) -> bool:
    return len(a) == len(b) and all(
        x.whole == y.whole and all(torch.equal(s, t) for s, t in zip(x[:5], y[:5], strict=True))
        for x, y in zip(a, b, strict=True)
    )


def joined(parts: list[Batch]) -> Batch:
    tensors = (torch.cat(pieces) for pieces in zip(*(part[:5] for part in parts), strict=True))
    return Batch(*tensors, sum(part.whole for part in parts))


def test_batches_carry_the_weight_of_each_example_beside_its_label():
    data = labelled()
    weights = torch.arange(len(data)) / 7
    for start in (0, 2):
        for batch in Batches(data, batch_size=16, seed=0, indices=[*range(40), 3, 3], weights=weights).epoch(
            1, start=start
        ):
            assert batch.weight is not None
            assert torch.equal(batch.weight, weights[batch.position])
    assert next(batches(data, batch_size=16, seed=0, epoch=0)).weight is None


def test_order_is_a_permutation_that_seed_and_epoch_decide():
    assert order(1000, seed=1, epoch=2).sort().values.tolist() == list(range(1000))
    assert torch.equal(order(1000, seed=1, epoch=2), order(1000, seed=1, epoch=2))
    assert not torch.equal(order(1000, seed=1, epoch=2), order(1000, seed=1, epoch=3))
    assert not torch.equal(order(1000, seed=1, epoch=2), order(1000, seed=2, epoch=2))


def test_order_is_the_same_on_every_machine():
    assert order(10, seed=0, epoch=0).tolist() == [0, 2, 7, 8, 9, 5, 6, 4, 3, 1]


def test_order_puts_every_example_everywhere_equally_often_and_epochs_are_unrelated():
    orders = torch.stack([order(6, seed=0, epoch=epoch) for epoch in range(3000)])
    counts = torch.stack([torch.bincount(place, minlength=6) for place in orders.T]).float()
    assert (counts - 500).square().sum() / 500 < 60  # χ², 25 degrees of freedom: p < 0.0002
    followers = (orders[1:] == orders[:-1]).float().mean()
    assert abs(followers - 1 / 6) < 0.02


def test_an_epoch_shows_every_example_once_with_its_own_label_and_index():
    data = labelled().subset(torch.arange(10, 50))
    seen = joined(list(batches(data, batch_size=16, seed=0, epoch=0)))
    assert seen.index.sort().values.tolist() == list(range(10, 50))
    assert torch.equal(seen.labels, seen.index % 5)
    assert torch.equal(seen.inputs, data.inputs[seen.index - 10].float() / 255)
    assert (seen.copy == 0).all()


def test_without_shuffling_the_order_is_that_of_the_indices():
    seen = joined(list(batches(labelled(), batch_size=4, seed=0, epoch=3, indices=[9, 2, 2, 30, 1], shuffle=False)))
    assert seen.index.tolist() == [9, 2, 2, 30, 1]
    assert seen.copy.tolist() == [0, 0, 1, 0, 0]


def test_copies_are_numbered_by_place_in_the_multiset_and_augmented_differently():
    indices = [3, 7, 3, 3, 8, 7]
    for epoch in range(4):
        seen = joined(list(batches(labelled(), batch_size=2, seed=0, epoch=epoch, indices=indices, augment=AUGMENT)))
        pairs = sorted(zip(seen.index.tolist(), seen.copy.tolist(), strict=True))
        assert pairs == [(3, 0), (3, 1), (3, 2), (7, 0), (7, 1), (8, 0)]
        threes = seen.inputs[seen.index == 3]
        assert not torch.equal(threes[0], threes[1])


def test_an_example_is_augmented_alike_alone_repeated_and_in_a_subset():
    def of_index_seven(data: Labelled, **options: object) -> Tensor:
        seen = joined(list(batches(data, seed=0, epoch=1, augment=AUGMENT, **options)))
        return seen.inputs[(seen.index == 7) & (seen.copy == 0)]

    whole = of_index_seven(labelled(), batch_size=50)
    assert torch.equal(whole, of_index_seven(labelled(), batch_size=3))
    assert torch.equal(whole, of_index_seven(labelled(), batch_size=3, indices=[1, 7, 7, 5]))
    assert torch.equal(whole, of_index_seven(labelled().subset([30, 7]), batch_size=1))


def test_a_subset_that_repeats_an_example_numbers_its_copies_too():
    seen = joined(list(batches(labelled().subset([4, 4, 6]), batch_size=3, seed=0, epoch=0, shuffle=False)))
    assert seen.copy.tolist() == [0, 1, 0]


def test_occurrences_count_what_came_before():
    draw = torch.Generator().manual_seed(0)
    index = torch.randint(0, 30, (500,), generator=draw)
    expected = [index[:i].eq(value).sum().item() for i, value in enumerate(index)]
    assert occurrences(index).tolist() == expected
    assert occurrences(torch.arange(0)).tolist() == []


@pytest.mark.parametrize("lazy", [False, True])
def test_resuming_in_the_middle_of_an_epoch_gives_the_rest_of_it(lazy):
    loader = Batches(labelled(lazy=lazy), batch_size=7, seed=2, augment=AUGMENT)
    whole = list(loader.epoch(4))
    assert len(whole) == len(loader) == 8
    for start in (0, 3, 7, 8):
        assert same(list(loader.epoch(4, start=start)), whole[start:])


def test_resuming_reads_nothing_of_the_skipped_batches():
    data = labelled(lazy=True)
    skipped = next(batches(data, batch_size=10, seed=0, epoch=0)).index.tolist()
    damaged = labelled(lazy=True, damaged=skipped[0])
    assert len(list(batches(damaged, batch_size=10, seed=0, epoch=0, start=1))) == 4


def test_files_and_any_number_of_workers_give_the_batches_of_memory_and_leave_the_global_generator():
    options = {"batch_size": 8, "seed": 0, "indices": [*range(50), 3, 3], "augment": AUGMENT}
    memory = Batches(labelled(), **options)
    state = torch.get_rng_state()
    for workers in (0, 1, 2):
        files = Batches(labelled(lazy=True), workers=workers, **options)
        for epoch in (0, 1):  # the second epoch meets the same workers
            assert same(list(files.epoch(epoch)), list(memory.epoch(epoch)))
        assert same(list(files.epoch(1, start=5)), list(memory.epoch(1, start=5)))
    assert torch.equal(torch.get_rng_state(), state)


def test_an_epoch_left_early_does_not_disturb_the_next():
    files = Batches(labelled(lazy=True), batch_size=8, seed=0, workers=1)
    next(files.epoch(0))
    assert same(list(files.epoch(1)), list(Batches(labelled(), batch_size=8, seed=0).epoch(1)))


def test_two_epochs_at_once_through_the_same_workers_are_refused():
    files = Batches(labelled(lazy=True), batch_size=8, seed=0, workers=1)
    first = files.epoch(0)
    next(first)
    next(files.epoch(1))
    with pytest.raises(UsageError, match="another epoch was begun before this one ended"):
        next(first)


@pytest.mark.parametrize("workers", [0, 1])
def test_an_image_that_does_not_decode_is_reported_in_its_own_words(workers):
    with pytest.raises(DataError) as caught:
        list(batches(labelled(lazy=True, damaged=5), batch_size=8, seed=0, epoch=0, workers=workers))
    assert str(caught.value) == "image 5 does not decode"


def test_the_last_batch_is_smaller_or_dropped():
    def sizes(**options: bool) -> list[int]:
        return [len(batch.labels) for batch in batches(labelled(), batch_size=16, seed=0, epoch=0, **options)]

    assert sizes() == [16, 16, 16, 2]
    assert sizes(drop_last=True) == [16, 16, 16]


def test_batches_move_to_the_asked_device_while_bookkeeping_stays():
    data = Labelled(torch.zeros(9, 2), torch.zeros(9, dtype=torch.int64), ("one",))
    batch = next(batches(data, batch_size=4, seed=0, epoch=0, device="meta", shuffle=False))
    assert batch.inputs.device.type == batch.labels.device.type == "meta"
    assert batch.index.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size 0: give a whole number from 1 on"),
        ({"batch_size": 64, "drop_last": True}, "data train has 50 examples, fewer than one batch of 64"),
        ({"batch_size": 4, "indices": [1, 50]}, "the first is 50: positions run from 0 to 49"),
        ({"batch_size": 4, "indices": [-1]}, "the first is -1"),
        ({"batch_size": 4, "workers": -1}, "workers must be 0 or more, not -1"),
        ({"batch_size": 25, "start": 3}, "start 3 is not among the 2 batches"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_the_first_batch(options, message):
    with pytest.raises(UsageError, match=message):
        batches(labelled(), seed=0, epoch=0, **options)


def test_real_images_from_files_are_augmented_alike_by_any_number_of_workers(published):
    from evenly.data import load

    data = load("pacs", root=published("PACS")).train
    some = data.subset(range(0, 24))
    assert some.lazy
    augment = Augmentation.parse(["resized-crop:32", "mirror", "trivial"])
    options = {"batch_size": 8, "seed": 0, "epoch": 0, "augment": augment}
    assert same(list(batches(some, workers=2, **options)), list(batches(some, workers=0, **options)))


def test_shares_of_a_batch_together_are_the_batch_augmented_alike():
    for lazy in (False, True):
        data = labelled(23, lazy=lazy)
        whole = list(Batches(data, batch_size=7, seed=0, augment=AUGMENT).epoch(2))
        shares = [list(Batches(data, batch_size=7, seed=0, augment=AUGMENT, share=(r, 3)).epoch(2)) for r in range(3)]
        for number, batch in enumerate(whole):
            for rank in range(3):
                mine = shares[rank][number]
                assert mine.whole == len(batch.labels)
                assert torch.equal(mine.index, batch.index[rank::3])
                assert torch.equal(mine.inputs, batch.inputs[rank::3])


def test_position_is_where_an_example_stands_in_the_data_whatever_its_index():
    data = labelled().subset([9, 4, 30])
    seen = joined(list(batches(data, batch_size=2, seed=0, epoch=0)))
    assert torch.equal(data.index[seen.position], seen.index)
    assert torch.equal(data.labels[seen.position], seen.labels)


@pytest.mark.parametrize("share", [(2, 2), (-1, 2), (0, 9)])
def test_a_share_that_cannot_be_is_refused(share):
    with pytest.raises(UsageError, match=r"share \("):
        Batches(labelled(), batch_size=8, seed=0, share=share)
