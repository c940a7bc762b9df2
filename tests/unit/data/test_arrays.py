"""Arrays in an .npz file."""

from pathlib import Path

import numpy as np
import pytest
import torch

from evenly.data.formats.locate import Missing
from evenly.data.own.arrays import arrays
from evenly.errors import DataError

X = np.random.default_rng(0).normal(size=(6, 5))
Y = np.array([3, 1, 3, 1, 3, 1])


def saved(tmp_path: Path, **content: np.ndarray) -> Path:
    np.savez(tmp_path / "mine.npz", **content)
    return tmp_path / "mine.npz"


def test_all_splits_and_attributes_are_found_by_their_endings(tmp_path: Path) -> None:
    path = saved(
        tmp_path,
        inputs=X,
        labels=Y,
        inputs_test=X[:2],
        labels_test=Y[:2],
        x_validation=X[2:3],
        y_validation=Y[2:3],
        attribute_place=np.array(["sea", "land", "sea", "sea", "sea", "sea"]),
        attribute_place_test=np.array(["air", "sea"]),
        attribute_place_validation=np.array(["sea"]),
        attribute_age=np.arange(6),
    )
    splits = arrays(path)
    assert splits.name == "mine.npz"
    assert list(splits) == ["train", "validation", "test"]
    assert torch.equal(splits.train.inputs, torch.from_numpy(X).float())
    assert splits.classes == ("1", "3")
    assert splits["test"].labels.tolist() == [1, 0]
    assert splits.train.values["place"] == ("air", "land", "sea")
    assert splits["test"].attribute("place").tolist() == [0, 2]
    assert splits.train.attribute("age").tolist() == list(range(6))


def test_the_names_of_keras_are_understood(tmp_path: Path) -> None:
    images = np.arange(2 * 28 * 28, dtype=np.uint32).astype(np.uint8).reshape(2, 28, 28)
    splits = arrays(saved(tmp_path, x_train=images, y_train=Y[:2], x_test=images, y_test=Y[:2]))
    assert splits.train.shape == (1, 28, 28)
    assert torch.equal(splits["test"].inputs[:, 0], torch.from_numpy(images))


def test_the_endings_of_folders_and_capitals_are_understood(tmp_path: Path) -> None:
    named = {"X_training": X, "y_training": Y, "X_val": X[:4], "y_val": Y[:4], "X_testing": X[:2], "y_testing": Y[:2]}
    splits = arrays(saved(tmp_path, **named, attribute_a_training=Y, attribute_a_val=Y[:4]))
    assert {split: len(part) for split, part in splits.items()} == {"train": 6, "validation": 4, "test": 2}
    assert splits["validation"].attribute("a").tolist() == Y[:4].tolist()
    assert not splits.remarks


def test_an_attribute_may_be_called_as_a_split_is(tmp_path: Path) -> None:
    splits = arrays(saved(tmp_path, x=X, y=Y, attribute_test=Y, attribute_is_val=Y))
    assert list(splits) == ["train"]
    assert list(splits.train.attributes) == ["is_val", "test"]


def test_arrays_that_are_not_read_are_named_in_a_remark(tmp_path: Path) -> None:
    splits = arrays(saved(tmp_path, x=X, y=Y, x_extra=X, weights=Y, classes=np.array(list("abcd"))))
    (remark,) = splits.remarks
    assert remark.startswith("mine.npz: the arrays 'x_extra', 'weights' are not read: expected are inputs, labels")


def test_images_with_channels_last_become_channels_first(tmp_path: Path) -> None:
    images = np.random.default_rng(0).integers(0, 256, (4, 8, 6, 3), dtype=np.uint8)
    train = arrays(saved(tmp_path, x=images, y=Y[:4])).train
    assert torch.equal(train.inputs, torch.from_numpy(images).permute(0, 3, 1, 2))
    assert train.inputs.is_contiguous()
    assert arrays(saved(tmp_path, x=images.transpose(0, 3, 1, 2), y=Y[:4])).train.shape == (3, 8, 6)
    assert arrays(saved(tmp_path, x=images / 255, y=Y[:4])).train.shape == (3, 8, 6)


def test_classes_name_labels_and_bound_them(tmp_path: Path) -> None:
    names = np.array(["a", "b", "c", "d"])
    assert arrays(saved(tmp_path, x=X, y=Y, classes=names)).train.labels.tolist() == Y.tolist()
    with pytest.raises(DataError, match="label 3 of example 0 is out of range: 3 classes"):
        arrays(saved(tmp_path, x=X, y=Y, classes=names[:3]))


def test_label_names_may_be_longer_in_another_split(tmp_path: Path) -> None:
    splits = arrays(saved(tmp_path, x=X[:2], y=np.array(["a", "elephant"]), x_test=X[:1], y_test=np.array(["a"])))
    assert splits["test"].labels.tolist() == [0]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"x": X}, "no array 'labels' or 'y'. It holds: x"),
        ({"y": Y}, "no array 'inputs' or 'x'. It holds: y. Save it under that name"),
        ({"x": X, "y": Y, "x_test": X}, "no array 'labels_test' or 'y_test'"),
        ({"x": X, "y": Y / 2}, "train labels are float64 .* bin continuous targets"),
        ({"x": X, "y": Y.astype(float)}, r"train labels are float64 .* Save labels\.astype\(int\)\.$"),
        ({"x": X[:1], "y": Y[:1].astype(float)}, r"Save labels\.astype\(int\)\.$"),
        ({"x": X, "y": Y[None] / 1}, r"of shape \(1, 6\), .* Save labels\.reshape\(-1\)\.astype\(int\)\.$"),
        ({"x": X, "y": np.eye(6, dtype=int)}, r"of shape \(6, 6\), .*argmax"),
        ({"x": X.astype(str), "y": Y}, "the inputs are <U32, expected numbers"),
        ({"x": X[:, 0], "y": Y}, r"the inputs have shape \(6,\)"),
        ({"x": X, "y": Y[:4]}, "inputs 6, labels 4"),
        ({"x": X, "y": Y, "x_test": X[:1], "y_test": Y[:1] + 4}, "class '7' of test has no training example"),
        ({"x": X, "y": Y, "attribute_a": X[:, 0]}, "'attribute_a' must hold one whole number"),
        ({"x": X, "inputs": X, "y": Y}, "both 'x' and 'inputs' would be the train inputs. Keep one"),
        ({"x": X, "x_train": X, "y": Y}, "both 'x' and 'x_train' would be the train inputs"),
        ({"x": X, "y": Y, "y_training": Y}, "both 'y' and 'y_training' would be the train labels"),
        (
            {"x": X, "y": Y, "x_val": X, "y_val": Y, "y_dev": Y},
            "both 'y_val' and 'y_dev' would be the validation labels",
        ),
        ({"x": X, "y": Y.astype("S")}, r"train labels are \|S\d+ .* Save labels\.astype\(str\)\.$"),
        ({"x": X, "y": Y, "x_test": X, "y_test": Y.astype(str)}, "train labels are numbers and the test labels text"),
        ({"x": X, "y": np.where(Y[0] == Y, "dog", "")}, r"the train label of example \d is empty"),
        ({"x": X, "y": Y, "y_val": Y}, "no array 'inputs_validation' or 'x_validation'"),
        ({"x": X, "y": Y, "attribute_a_test": Y}, "no array 'inputs_test' or 'x_test'"),
    ],
)
def test_unfit_arrays_are_told(tmp_path: Path, content: dict[str, np.ndarray], message: str) -> None:
    with pytest.raises(DataError, match=message):
        arrays(saved(tmp_path, **content))


def test_object_arrays_are_never_unpickled(tmp_path: Path) -> None:
    victim = tmp_path / "ran"

    class Touch:
        def __reduce__(self) -> tuple[object, tuple[str, str]]:
            return open, (str(victim), "w")

    path = saved(tmp_path, x=np.array([Touch()], dtype=object), y=Y[:1])
    with pytest.raises(DataError, match=r"'x' is an array of Python objects.*it was not opened"):
        arrays(path)
    assert not victim.exists()


def test_file_that_is_no_npz_or_is_cut_short_is_told(tmp_path: Path) -> None:
    path = saved(tmp_path, x=X, y=Y)
    whole = path.read_bytes()
    for content in (b"", b"hello", whole[: len(whole) // 2]):
        path.write_bytes(content)
        with pytest.raises(DataError, match=f"is not an .npz file, or is truncated .{len(content)} bytes"):
            arrays(path)
    path.write_bytes(whole.replace(X[2].tobytes(), X[3].tobytes()))
    with pytest.raises(DataError, match="'x' cannot be read: Bad CRC"):
        arrays(path)
    with pytest.raises(Missing, match=r"none.npz"):
        arrays(tmp_path / "none.npz")


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.uint8])
def test_images_with_their_channels_last_are_turned_round_whatever_their_kind(tmp_path: Path, kind: type) -> None:
    images = np.arange(6 * 8 * 7 * 3).reshape(6, 8, 7, 3).astype(kind)
    np.savez(tmp_path / "x.npz", x=images, y=np.arange(6) % 2)
    train = arrays(tmp_path / "x.npz").train
    assert train.shape == (3, 8, 7)
    assert np.array_equal(
        train.gather([1])[0].numpy(), images[1].transpose(2, 0, 1).astype(train.gather([1]).numpy().dtype)
    )
