"""Data with the truth known: alpha, conflict, noise and size of the stacked and toy data sets."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from evenly.data import Splits, load
from evenly.errors import UsageError

FOLDERS = {"fmnist-mnist": ("MNIST", "FashionMNIST"), "cifar-mnist": ("MNIST", "cifar-10-batches-bin")}

# As they were before the options existed: a data set that nobody asked to change is the same to the last bit.
RECORDED = (
    ("digit-dominoes", 0, {}, "5661db80773abeb8"),
    ("digit-dominoes", 3, {}, "2b1218b9f17055dd"),
    ("digit-dominoes", 3, {"alpha": 0.6}, "a0715cc9bbcf22f7"),
    ("fmnist-mnist", 0, {}, "5be33e3c12929fa9"),
    ("cifar-mnist", 3, {}, "f964d4ac0702fca7"),
)
# Of data that are drawn as numbers the last bits depend on the processor. So: the sum of the training inputs, the
# sum of their sizes, and a whole number of its labels and order.
DRAWN = (
    ("spirals", {}, -35.274701, 965.518815, 6089),
    ("spirals", {"label_noise": 0.1, "dropout_noise": 0.2}, -42.697075, 753.537951, 6089),
    ("patches", {}, -19.385967, 113166.880426, 240511),
    ("patches", {"alpha": 0.7, "num_train": 200}, -17.260559, 2043.851572, 4916),
)


@pytest.fixture
def made(published: Callable[[str], Path]) -> Callable[..., Splits]:
    """`load`, with the share of wrong labels under the name that the data set gives it; or a skip."""

    def make(name: str, *, noise: float | None = None, **options: Any) -> Splits:
        for folder in FOLDERS.get(name, ()):
            published(folder)
        if noise is not None:
            options["mislabelled" if name == "patches" else "noise"] = noise
        return load(name, **options)

    return make


@pytest.mark.parametrize(("name", "seed", "options", "fingerprint"), RECORDED)
def test_data_that_nobody_asked_to_change_have_the_recorded_fingerprint(
    name: str, seed: int, options: dict[str, Any], fingerprint: str, made: Callable[..., Splits]
) -> None:
    assert _recorded(made(name, seed=seed, **options)) == fingerprint


@pytest.mark.parametrize(("name", "options", "total", "size", "labels"), DRAWN)
def test_drawn_data_that_nobody_asked_to_change_are_as_recorded(
    name: str, options: dict[str, Any], total: float, size: float, labels: int
) -> None:
    train = load(name, seed=3, **options).train
    inputs = train.gather(range(len(train))).double()
    assert float(inputs.sum()) == pytest.approx(total, abs=1e-3)
    assert float(inputs.abs().sum()) == pytest.approx(size, rel=1e-6)
    assert int((train.labels * (train.index % 97)).sum()) == labels


def _recorded(splits: Splits) -> str:
    """The digest that the fingerprints were recorded by: classes, shapes, labels, order and inputs of every split."""
    parts = []
    for split, part in splits.items():
        digest = hashlib.blake2b(digest_size=8)
        digest.update(repr((part.classes, part.shape, len(part))).encode())
        for tensor in (part.labels, part.index, part.inputs):
            digest.update(tensor.contiguous().numpy().tobytes())
        parts.append((split, digest.hexdigest()))
    return hashlib.blake2b(repr(parts).encode(), digest_size=8).hexdigest()


@pytest.mark.parametrize(
    ("name", "size"), [("digit-dominoes", 800), ("fmnist-mnist", 1_000), ("spirals", 250), ("patches", 1_000)]
)
def test_shares_are_as_asked_for_and_noise_is_in_training_only(
    name: str, size: int, made: Callable[..., Splits]
) -> None:
    splits = made(name, alpha=0.6, conflict=0.15, noise=0.1, size=size)
    train, test = splits.train, splits["test"]
    assert len(train) == size
    by_class = train.attributes["hard"].bincount()
    assert by_class.max() - by_class.min() <= 1
    five_sigma = 5 * (0.25 / size) ** 0.5
    assert float(train.attributes["easy_agrees"].double().mean()) == pytest.approx(0.6, abs=five_sigma)
    assert float(train.attributes["easy_present"].double().mean()) == pytest.approx(0.75, abs=five_sigma)
    wrong = train.labels != train.attributes["hard"]
    assert torch.equal(wrong, train.attributes["label_noisy"] == 1)
    assert int(wrong.sum()) == round(0.1 * size)
    for split in set(splits) - {"train"}:
        assert torch.equal(splits[split].labels, splits[split].attributes["hard"])
    assert float(test.attributes["easy_agrees"].double().mean()) == pytest.approx(0.6, abs=0.15)


@pytest.mark.parametrize("name", ["digit-dominoes", "cifar-mnist"])
def test_upper_pictures_are_what_the_attributes_say(name: str, made: Callable[..., Splits]) -> None:
    plain = made(name, alpha=1.0) if name == "digit-dominoes" else made(name)
    splits = made(name, alpha=0.6, conflict=0.2)
    half = splits.train.shape[1] // 2
    for split in ("train", "test"):
        here, there = splits[split], plain[split]
        present, agrees = here.attributes["easy_present"] == 1, here.attributes["easy_agrees"] == 1
        upper, before = here.inputs[:, :, :half].flatten(1), there.inputs[:, :, :half].flatten(1)
        assert torch.equal((upper == 0).all(1), ~present)
        assert torch.equal(upper[agrees], before[agrees])
        assert torch.equal(here.inputs[:, :, half:], there.inputs[:, :, half:])
        # A contradicting picture is one of the same split that stands on another class elsewhere.
        classes = {}
        for row, label in zip(before, there.labels.tolist(), strict=True):
            classes[row.numpy().tobytes()] = label
        lying = (present & ~agrees).nonzero().flatten().tolist()
        seen = [(classes.get(upper[row].numpy().tobytes()), row) for row in lying]
        known = [(label, row) for label, row in seen if label is not None]
        assert len(known) > 0.5 * len(lying)
        for label, row in known:
            assert label == int(here.attributes["easy"][row]) != int(here.labels[row])


def test_the_features_of_toy_data_are_what_the_attributes_say() -> None:
    spirals = load("spirals", alpha=0.5, conflict=0.3, num_train=2_000).train
    sign = spirals.inputs[:, 0].sign()
    expected = torch.where(spirals.attributes["easy_present"] == 1, 2 * spirals.attributes["easy"] - 1, 0)
    assert torch.equal(sign, expected.float())
    patches = load("patches", alpha=0.5, conflict=0.3, num_train=500, num_test=10, noise=0.0).train
    along = (patches.inputs @ patches.planted["easy"]).sum(1)
    expected = torch.where(patches.attributes["easy_present"] == 1, 2 * patches.attributes["easy"] - 1, 0)
    torch.testing.assert_close(along, expected.float(), atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", ["digit-dominoes", "cifar-mnist", "spirals", "patches"])
def test_balanced_and_groups_hold_every_relation_equally_often(name: str, made: Callable[..., Splits]) -> None:
    splits = made(name, conflict=0.1, **({"alpha": 0.8} if name in ("digit-dominoes", "patches") else {}))
    balanced, groups = splits["balanced"], splits["groups"]
    assert bool((balanced.attributes["easy_present"] == 1).all())
    assert float(balanced.attributes["easy_agrees"].double().mean()) == pytest.approx(1 / 2, abs=0.01)
    assert float(groups.attributes["easy_present"].double().mean()) == pytest.approx(2 / 3, abs=0.001)
    assert float(groups.attributes["easy_agrees"].double().mean()) == pytest.approx(1 / 3, abs=0.001)
    names = [groups.values["group"][group] for group in groups.attributes["group"].unique().tolist()]
    assert len(names) == 6
    assert sum(name.startswith("nothing on ") for name in names) == 2


def test_a_smaller_share_is_part_of_a_larger_one_and_nothing_else_changes() -> None:
    few, many = (load("digit-dominoes", noise=noise).train for noise in (0.05, 0.2))
    assert torch.equal(few.inputs, many.inputs)
    assert bool((many.attributes["label_noisy"] >= few.attributes["label_noisy"]).all())
    few, many = (load("spirals", conflict=conflict).train for conflict in (0.05, 0.2))
    assert bool((many.attributes["easy_agrees"] <= few.attributes["easy_agrees"]).all())
    same = few.attributes["easy_agrees"] == many.attributes["easy_agrees"]
    assert torch.equal(few.inputs[same], many.inputs[same])
    small, large = (set(load("digit-dominoes", size=size).train.index.tolist()) for size in (100, 300))
    assert small < large


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("digit-dominoes", {"conflict": 0.3}, r"alpha = 0\.8 and conflict = 0\.3: together more than 1.*alpha ≤ 0\.7"),
        ("spirals", {"alpha": 1.2}, r"alpha = 1\.2 is the share of examples whose easy feature agrees"),
        ("spirals", {"conflict": -0.1}, r"conflict = -0\.1 is the share .* contradicts the label"),
        ("spirals", {"noise": 0.5}, r"noise = 0\.5: labels of 2 classes .* below 0\.5"),
        ("patches", {"mislabelled": 0.6}, r"mislabelled = 0\.6: labels of 2 classes"),
        ("digit-dominoes", {"size": 1}, r"size = 1 is the number of training examples"),
        ("digit-dominoes", {"size": 99_999}, r"size = 99999: there are 862 training examples to draw from"),
        ("spirals", {"size": 301}, r"size = 301: there are 300 training examples to draw from"),
        ("spirals", {"alpha": "most"}, r"alpha: expected a number or null, not 'most'\. For example: alpha=0\.5"),
    ],
)
def test_what_cannot_be_planted_is_refused_in_words(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        load(name, **options)


@pytest.mark.parametrize(("name", "options"), [("digit-dominoes", {}), ("patches", {"num_train": 90, "num_test": 60})])
def test_a_size_of_all_examples_adds_test_splits_and_changes_no_other(name: str, options: dict[str, int]) -> None:
    usual = load(name, seed=3, **options)
    more = load(name, seed=3, **options, size=len(usual.train))
    assert {"balanced", "groups"} <= set(more)
    for split, part in usual.items():
        assert torch.equal(part.inputs, more[split].inputs)
        assert torch.equal(part.labels, more[split].labels)
    agrees, present = (more["groups"].attributes[each] for each in ("easy_agrees", "easy_present"))
    assert [int(rows.sum()) * 3 for rows in (agrees, present - agrees, 1 - present)] == [len(more["groups"])] * 3
