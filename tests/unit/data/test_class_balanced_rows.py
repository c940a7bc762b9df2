"""A few examples, as many of each class as can be."""

import torch

from evenly.data.class_balanced_rows import evenly_over

LABELS = torch.tensor([0] * 5000 + [1] * 30 + [2] * 5000)


def test_a_rare_class_gives_all_it_has_and_the_others_share_the_rest() -> None:
    rows = evenly_over(LABELS, 630, rng=torch.Generator().manual_seed(0))
    assert LABELS[rows].bincount().tolist() == [300, 30, 300]
    assert torch.equal(rows, rows.unique())


def test_few_examples_are_all_there_and_nothing_is_drawn_for_them() -> None:
    rng = torch.Generator().manual_seed(0)
    before = rng.get_state()
    assert evenly_over(LABELS[:7], 7, rng=rng).tolist() == list(range(7))
    assert torch.equal(rng.get_state(), before)


def test_no_class_is_preferred_where_there_is_no_room_for_one_of_each() -> None:
    """One place for ten classes: over many draws, every class has it now and then, and every example its turn."""
    labels = torch.arange(20) % 10
    chosen = [int(evenly_over(labels, 1, rng=torch.Generator().manual_seed(seed))) for seed in range(1000)]
    counts = torch.tensor(chosen).bincount(minlength=20)
    assert int(counts.min()) > 20  # 50 are expected of each, with a standard deviation of 7
    assert int(counts.max()) < 80
