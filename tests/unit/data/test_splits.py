"""The parts of a data set: what is missing is named, and what tells them from others is their content."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

from evenly.data import Labelled, Splits, load
from evenly.errors import DataError, UsageError


def part(first: float = 0.0) -> Labelled:
    return Labelled(torch.full((2, 3), first), torch.tensor([0, 1]), ("a", "b"))


def test_an_unknown_split_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no split 'tests'. Did you mean 'test'"):
        Splits("d", {"train": part(), "test": part()})["tests"]
    with pytest.raises(DataError, match="no 'train' split"):
        Splits("d", {"test": part()})


@pytest.mark.parametrize("names", [{"classes": (0, 1)}, {"values": {"group": (0, 1)}}], ids=["classes", "values"])
def test_names_that_are_numbers_are_refused(names: dict[str, object]) -> None:
    fields = {"classes": ("a", "b"), "attributes": {"group": torch.tensor([0, 1])}} | names
    with pytest.raises(DataError, match="the name 0 is not text"):
        Splits("d", {"train": Labelled(torch.zeros(2, 3), torch.tensor([0, 1]), **fields)})


@pytest.mark.parametrize("name", ["NaN", "Infinity", "-Infinity"])
def test_a_class_whose_name_a_record_would_read_as_a_number_is_refused(name: str) -> None:
    part = Labelled(torch.zeros(2, 3), torch.tensor([0, 1]), ("ok", name))
    with pytest.raises(DataError, match=f"tiny: the class '{name}' would be read.*Rename the class"):
        Splits("tiny", {"train": part})


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ("caf\u00e9", "are both called 'caf\u00e9'"),
        ("cafe\u0301", r"look alike, 'caf\\xe9' and 'cafe\\u0301'"),
        ("caf\u00e9 ", r"look alike, 'caf\\xe9' and 'caf\\xe9 '"),
    ],
    ids=["the same", "an accent of its own", "a space"],
)
def test_two_classes_of_one_name_are_refused(second: str, said: str, tmp_path: Path) -> None:
    names = ("caf\u00e9", second)
    with pytest.raises(DataError, match=f"tiny: classes 0 and 1 {said}. Rename one"):
        Splits("tiny", {"train": Labelled(torch.zeros(2, 3), torch.tensor([0, 1]), names)})
    np.savez(tmp_path / "mine.npz", inputs=np.zeros((2, 3)), labels=np.array([0, 1]), classes=np.array(names))
    with pytest.raises(DataError, match=r"mine\.npz: classes 0 and 1"):
        load(str(tmp_path / "mine.npz"))


def test_two_class_folders_that_look_alike_are_refused(tmp_path: Path) -> None:
    for folder in ("cafe\u0301", "caf\u00e9"):
        (tmp_path / "places" / folder).mkdir(parents=True)
        Image.new("RGB", (8, 8)).save(tmp_path / "places" / folder / "1.png")
    with pytest.raises(DataError, match=r"places: classes 0 and 1 look alike"):
        load(str(tmp_path / "places"))


def test_letters_of_two_sizes_are_two_classes() -> None:
    assert Splits("d", {"train": Labelled(torch.zeros(2, 3), torch.tensor([0, 1]), ("a", "A"))}).num_classes == 2


def test_the_fingerprint_is_that_of_all_splits_and_their_names() -> None:
    both = [Splits("d", {"train": part(), "test": part(1.0)}), Splits("other", {"train": part(), "test": part(1.0)})]
    assert both[0].fingerprint == both[1].fingerprint
    changed = [
        Splits("d", {"train": part()}),
        Splits("d", {"train": part(), "test": part(2.0)}),
        Splits("d", {"train": part(1.0), "test": part()}),
        Splits("d", {"train": part(), "validation": part(1.0)}),
    ]
    assert len({both[0].fingerprint, *(each.fingerprint for each in changed)}) == 5


def test_splits_that_are_added_replace_those_of_their_name() -> None:
    joined = Splits("d", {"train": part()}, remarks=["one is broken"], drawn_from="a die") | {"test": part(1.0)}
    assert (list(joined), joined["test"].split) == (["train", "test"], "test")
    assert (joined.remarks, joined.drawn_from) == (("one is broken",), "a die")


@pytest.mark.parametrize(
    ("classes", "words"), [(("b", "a"), r"class 0 is 'a' in train and 'b' in test"), (("a", "b", "c"), r"test has 3")]
)
def test_splits_that_number_their_classes_differently_are_refused(classes: tuple[str, ...], words: str) -> None:
    train, test = (Labelled(torch.zeros(2, 3), torch.tensor([0, 1]), names) for names in (("a", "b"), classes))
    with pytest.raises(DataError, match=words):
        Splits("tiny", {"train": train, "test": test})
    with pytest.raises(DataError, match=words):
        Splits("tiny", {"train": train}) | {"test": test}


def test_parts_of_another_kind_are_refused_with_what_makes_them_fit() -> None:
    pairs = TensorDataset(torch.zeros(2, 3), torch.tensor([0, 1]))
    with pytest.raises(UsageError, match=r"'train' is a TensorDataset, not a Labelled: .*foreign\(dataset\)"):
        Splits("mine", {"train": pairs})
    with pytest.raises(UsageError, match=r'a Labelled is not splits by name. Give Splits\("mine", {"train": …}\)'):
        Splits("mine", Labelled(torch.zeros(2, 3), torch.tensor([0, 1]), ("a", "b")))
