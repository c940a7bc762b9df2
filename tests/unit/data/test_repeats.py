"""A manifest that lists how often an example is shown."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from evenly.data import load
from evenly.data.augment import Augmentation
from evenly.data.batches import batches
from evenly.data.own.manifests import manifest
from evenly.errors import DataError, UsageError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for number in range(4):
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(tmp_path / f"{number}.png")
    return tmp_path


def write(root: Path, *rows: str, header: str = "path,label,repeat") -> Path:
    path = root / "up.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_a_row_is_there_as_often_as_it_says_after_all_others_and_with_a_number_of_its_own(root: Path) -> None:
    train = manifest(write(root, "0.png,cat,1", "1.png,dog,3", "2.png,dog,2.0", "3.png,cat,1")).train
    assert train.inputs.names == tuple(f"{i}.png" for i in (0, 1, 2, 3, 1, 2, 1))
    assert [train.classes[label] for label in train.labels.tolist()] == [
        "cat",
        "dog",
        "dog",
        "cat",
        "dog",
        "dog",
        "dog",
    ]
    assert train.index.tolist() == list(range(7)), "a separation tells examples apart by their numbers"


def test_copies_are_augmented_each_on_its_own(root: Path) -> None:
    train = manifest(write(root, "0.png,cat,8", "1.png,dog,1")).train
    augment = Augmentation.parse(["pad-crop:4"])
    (batch,) = batches(train, batch_size=9, seed=0, epoch=0, augment=augment, shuffle=False)
    copies = [batch.inputs[i] for i in range(9) if i != 1]
    assert len({copy.numpy().tobytes() for copy in copies}) > 4
    plain = train.gather([0, 2])
    assert torch.equal(plain[0], plain[1])


@pytest.mark.parametrize("cell", ["0", "-1", "1.5", "two", "", "nan", "inf"])
def test_what_is_no_number_of_times_is_refused_with_its_line(root: Path, cell: str) -> None:
    path = write(root, "0.png,cat,1", "", f"1.png,dog,{cell}")
    with pytest.raises(DataError, match=rf"up\.csv, line 4: 'repeat' is '{cell}'.*remove its row.*repeat_column="):
        manifest(path)


def test_a_column_that_means_something_else_can_be_left_alone(root: Path) -> None:
    train = manifest(write(root, "0.png,cat,0", "1.png,dog,7"), repeat_column="none").train
    assert len(train) == 2
    assert train.attribute("repeat").tolist() == [0, 7]


def test_examples_to_measure_on_are_not_repeated(root: Path) -> None:
    path = write(root, "0.png,cat,train,2", "1.png,cat,test,2", header="path,label,split,repeat")
    with pytest.raises(DataError, match=r"line 3: 'repeat' is 2 in the split test.*what is measured"):
        manifest(path)


def test_nothing_is_held_out_whose_copies_are_trained_on(root: Path) -> None:
    path = write(root, "0.png,cat,2", "1.png,cat,1", "2.png,dog,1", "3.png,dog,2")
    with pytest.raises(UsageError, match=r"up\.csv lists training examples more than once.*column `split`"):
        load(path, validation=0.5)
    once = write(root, "0.png,cat,1", "1.png,cat,1", "2.png,dog,1", "3.png,dog,1")
    assert len(load(once, validation=0.5)["validation"]) == 2


def test_numbers_stay_when_a_broken_image_and_its_copies_are_left_out(root: Path) -> None:
    path = write(root, "0.png,cat,2", "1.png,dog,2", "2.png,dog,1")
    assert manifest(path).train.index.tolist() == [0, 1, 2, 3, 4]
    assert manifest(path).remarks == ("2 of the 5 training examples are copies, by `repeat`.",)
    (root / "0.png").write_bytes(b"broken")
    splits = manifest(path, skip_broken=True)
    assert splits.train.index.tolist() == [1, 2, 4]
    assert splits.train.inputs.names == ("1.png", "2.png", "1.png")
    assert splits.remarks[0].startswith("1 broken image was left out")
