"""Other people's map-style data sets."""

from collections.abc import Iterator

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset, Subset, TensorDataset

from evenly.data.labelled import Lazy
from evenly.data.own.foreign import foreign
from evenly.errors import DataError, UsageError


class Counted(Dataset):
    """Remembers what was asked of it."""

    classes = ("cat", "dog")

    def __init__(self, make: object = lambda i: torch.full((2,), float(i)), num: int = 5) -> None:
        self.make, self.num, self.asked = make, num, []

    def __len__(self) -> int:
        return self.num

    def __getitem__(self, i: int) -> object:
        self.asked.append(i)
        return self.make(i), i % 2


class Targets(Counted):
    @property
    def targets(self) -> list[int]:
        return [i % 2 for i in range(self.num)]


def test_nothing_is_read_before_it_is_asked_for() -> None:
    source = Targets()
    data = foreign(source)
    assert source.asked == []
    assert data.classes == ("cat", "dog")
    assert data.labels.tolist() == [0, 1, 0, 1, 0]
    assert data.gather([3, 1]).tolist() == [[3.0, 3.0], [1.0, 1.0]]
    assert set(source.asked) <= {0, 1, 3}  # the first one tells the shape


def test_labels_come_from_the_argument_first() -> None:
    assert foreign(Targets(), labels=[1, 1, 1, 0, 0]).labels.tolist() == [1, 1, 1, 0, 0]
    assert foreign(Counted(), labels=np.array([1, 1, 1, 0, 0])).labels.tolist() == [1, 1, 1, 0, 0]


@pytest.mark.parametrize("kind", [np.bool_, np.uint8, np.uint16, np.uint32, np.uint64])
def test_labels_may_be_whole_numbers_of_any_kind(kind: type) -> None:
    data = foreign(TensorDataset(torch.zeros(5, 2)), labels=np.array([1, 1, 1, 0, 0]).astype(kind))
    assert data.labels.tolist() == [1, 1, 1, 0, 0]
    assert data.classes == ("0", "1")


def test_subsets_of_subsets_find_labels_and_classes() -> None:
    data = foreign(Subset(Subset(Targets(), [4, 3, 2]), [1, 2]))
    assert data.labels.tolist() == [1, 0]
    assert data.classes == ("cat", "dog")
    assert data.gather([0])[0, 0] == 3


def test_subset_keeps_index_and_inputs_together() -> None:
    data = foreign(Targets())
    assert isinstance(data.inputs, Lazy)
    part = data.subset([4, 0])
    assert part.index.tolist() == [4, 0]
    assert part.gather([0])[0, 0] == 4
    assert part.fingerprint != data.subset([0, 4]).fingerprint
    assert len(data.subset([])) == 0
    assert data.subset([]).shape == (2,)


def test_pil_images_and_arrays_become_tensors() -> None:
    colour = foreign(Targets(lambda i: Image.new("RGB", (3, 2), (i, 7, 9))))
    assert colour.gather([2])[0, :, 0, 0].tolist() == [2, 7, 9]
    assert colour.shape == (3, 2, 3)
    assert foreign(Targets(lambda i: Image.new("L", (3, 2), i))).shape == (1, 2, 3)
    assert foreign(Targets(lambda i: np.full((4,), i))).gather([3]).tolist() == [[3, 3, 3, 3]]


def test_dictionaries_are_read_by_key() -> None:
    class Rows(Dataset):
        labels = (0, 1)

        def __len__(self) -> int:
            return 2

        def __getitem__(self, i: int) -> dict[str, object]:
            return {"pixels": torch.tensor([i]), "label": i}

    assert foreign(Rows(), key="pixels").gather([1]).tolist() == [[1]]
    with pytest.raises(UsageError, match=r"has the keys pixels, label, none of them 0.*key="):
        foreign(Rows()).gather([1])


def test_workers_read_it() -> None:
    data = foreign(TensorDataset(torch.arange(6.0)[:, None], torch.tensor([0, 1] * 3)))
    loaded = torch.cat([x for x, _ in DataLoader(data, batch_size=4, num_workers=1)])
    assert loaded.flatten().tolist() == [0, 1, 2, 3, 4, 5]


class Stream(IterableDataset):
    def __iter__(self) -> Iterator[int]:
        return iter([1])


# Pillow would cut off all above 255 of both.
DEEP, FLOAT = (lambda i, mode=mode: Image.new(mode, (3, 2), 1000) for mode in ("I;16", "F"))


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: foreign(Counted()), DataError, r"no labels found. Looked at labels=, .targets and .labels"),
        (lambda: foreign(Stream()), UsageError, "Stream cannot be indexed"),
        (lambda: foreign(Counted(), labels=[0.5] * 5), DataError, "float32 .*Bin a continuous target"),
        (lambda: foreign(Counted(), labels=[0, 1]), DataError, "2 labels for 5 items"),
        (lambda: foreign(Counted(), labels=[]), DataError, "labels"),
        (lambda: foreign(Counted(num=0), labels=[]), DataError, "has no items"),
        (lambda: foreign(Counted(), labels=[0, 1, 2, 0, 1]), DataError, "label 2 of example 2 is out of range"),
        (lambda: foreign(Targets(lambda i: "text")).gather([0]), DataError, "gives a str as its input"),
        (lambda: foreign(Targets(torch.zeros)).gather([1, 2]), DataError, r"item 2 has shape \(2,\), another has"),
        (lambda: foreign(Counted(), labels=torch.zeros(5, dtype=torch.complex64)), DataError, "complex64 of shape"),
        (
            lambda: foreign(Targets(DEEP)).gather([1]),
            DataError,
            r"item \d of Targets has more than 8 bits per pixel \(mo",
        ),
        (lambda: foreign(Targets(FLOAT)).gather([1]), DataError, r"more than 8 bits per pixel \(mode F\); scale it"),
    ],
)
def test_unfit_data_sets_are_told(make: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


def test_images_of_a_data_set_with_channels_last_are_turned_round() -> None:
    images = torch.rand(4, 8, 7, 3)
    data = foreign(TensorDataset(images, torch.arange(4) % 2))
    assert data.shape == (3, 8, 7)
    assert torch.equal(data.gather([2])[0], images[2].permute(2, 0, 1))


def test_an_item_that_is_not_finite_is_named_before_training() -> None:
    inputs = torch.rand(20, 4)
    inputs[13, 2] = torch.nan
    with pytest.raises(DataError, match="item 13 of TensorDataset holds NaN or infinity"):
        _ = foreign(TensorDataset(inputs, torch.arange(20) % 2)).fingerprint


class Pictures(Dataset):
    """Four items, with what people call labels and classes."""

    def __init__(self, **named: object) -> None:
        for name, value in named.items():
            setattr(self, name, value)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, i: int) -> Tensor:
        return torch.full((2,), float(i))


@pytest.mark.parametrize("words", [["cat", "dog", "cat", "dog"], np.array(["cat", "dog", "cat", "dog"])])
def test_labels_that_are_words_are_refused_with_the_line_that_numbers_them(words: object) -> None:
    for call in (lambda: foreign(Pictures(), labels=words), lambda: foreign(Subset(Pictures(targets=words), [0, 1]))):
        with pytest.raises(DataError, match=r"labels are .*cat.*names\.index"):
            call()


def test_methods_and_numbers_called_labels_and_classes_are_not_taken_for_them() -> None:
    with pytest.raises(DataError, match="no labels found"):
        foreign(Pictures(labels=lambda: [0, 1, 0, 1]))
    assert foreign(Pictures(targets=[0, 1, 0, 1], classes=2)).classes == ("0", "1")
    with pytest.raises(UsageError, match="classes=3, expected the name of each class"):
        foreign(Pictures(targets=[0, 1, 0, 1]), classes=3)
