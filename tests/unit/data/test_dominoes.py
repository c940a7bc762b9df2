from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from sklearn.linear_model import LogisticRegression

from evenly.data import Labelled, load
from evenly.data.stacking import stack


def pictures(values: list[int], labels: list[int]) -> Labelled:
    """One-pixel-wide pictures that carry their number."""
    inputs = torch.tensor(values, dtype=torch.uint8)[:, None, None, None].expand(-1, 1, 2, 2)
    return Labelled(inputs, torch.tensor(labels), ("a", "b"))


def test_the_upper_picture_has_the_class_of_the_lower_and_each_lower_one_is_used_once() -> None:
    easy, hard = pictures([1, 2, 3], [0, 1, 1]), pictures(list(range(10, 16)), [0, 0, 0, 1, 1, 1])
    both = stack(easy, hard, balanced=False, rng=torch.Generator().manual_seed(0))
    upper, lower = both.inputs[:, 0, 0, 0], both.inputs[:, 0, 2, 0]
    assert sorted(lower.tolist()) == list(range(10, 16))
    assert torch.equal((upper > 1).long(), (lower > 12).long())
    assert torch.equal(both.labels, (lower > 12).long())
    # Three lower pictures of class b, two upper ones: both are used before either is used again.
    assert sorted(upper[both.labels == 1].tolist())[0] == 2
    assert sorted(upper[both.labels == 1].tolist())[-1] == 3


@pytest.mark.parametrize("name", ["digit-dominoes", "cifar-mnist", "fmnist-mnist"])
def test_features_agree_in_training_and_are_independent_where_we_probe(
    name: str, published: Callable[[str], Path]
) -> None:
    if name != "digit-dominoes":
        published("MNIST")
        published("cifar-10-batches-bin" if name == "cifar-mnist" else "FashionMNIST")
    splits = load(name)
    for split in ("train", "validation", "test"):
        assert torch.equal(splits[split].attributes["easy"], splits[split].attributes["hard"])
    for split in ("probe", "balanced"):
        table = splits[split].attributes["group"].bincount(minlength=splits.num_classes**2)
        by_hard = splits[split].attributes["hard"].bincount()
        assert table.reshape(splits.num_classes, -1).max(0).values.sub(by_hard / splits.num_classes).abs().max() < 1


def test_the_digit_above_is_easier_than_the_digit_below() -> None:
    splits = load("digit-dominoes", alpha=1.0)
    train, test = splits.train, splits["test"]

    def error(rows: slice) -> float:
        flat = [part.inputs[:, :, rows].flatten(1).float() / 255 for part in (train, test)]
        return 1 - LogisticRegression(max_iter=1000).fit(flat[0], train.labels).score(flat[1], test.labels)

    assert error(slice(0, 8)) == 0.0
    assert error(slice(8, 16)) > 0.02


def test_cifar_mnist_has_the_sizes_of_the_paper_and_padded_digits(published: Callable[[str], Path]) -> None:
    published("cifar-10-batches-bin")
    published("MNIST")
    splits = load("cifar-mnist")
    assert {split: len(part) for split, part in splits.items()} == {
        "train": 9_000,
        "validation": 1_000,
        "test": 2_000,
        "probe": 1_000,
        "balanced": 2_000,
    }
    x = splits.train.inputs
    assert x.shape[1:] == (3, 64, 32)
    assert x[:, :, :2].max() == 0, "two rows of padding above the digit"
    assert torch.equal(x[:, 0, :32], x[:, 2, :32]), "the digit is grey"
    assert not torch.equal(x[:, 0, 32:], x[:, 2, 32:]), "the photograph is not"


def test_the_upper_digit_is_missing_where_it_is_said_to_be_and_nowhere_we_probe() -> None:
    splits = load("digit-dominoes", alpha=0.7)
    blank = (splits.train.inputs[:, :, :8] == 0).flatten(1).all(1)
    assert torch.equal(blank, splits.train.attributes["easy_present"] == 0)
    assert 0.2 < blank.double().mean() < 0.4
    for split in ("probe", "balanced"):
        assert splits[split].attributes["easy_present"].all()


def test_no_picture_of_training_is_probed_or_tested() -> None:
    splits = load("digit-dominoes")

    def halves(split: str, rows: slice) -> set[bytes]:
        return {bytes(picture.numpy().tobytes()) for picture in splits[split].inputs[:, :, rows].contiguous()}

    for split in ("probe", "balanced", "test"):
        assert not halves("train", slice(8, 16)) & halves(split, slice(8, 16))


def test_the_pairing_depends_on_the_seed_and_the_held_out_pictures_do_not() -> None:
    one, two = load("digit-dominoes", seed=0), load("digit-dominoes", seed=1)
    assert one.fingerprint != two.fingerprint
    lower = [{p.numpy().tobytes() for p in s["test"].inputs[:, :, 8:].contiguous()} for s in (one, two)]
    assert lower[0] == lower[1]
