"""CINIC-10 and Tiny-ImageNet, in small trees of the published layout."""

from pathlib import Path

import pytest
from PIL import Image

from evenly.data.formats.image_trees import cinic10, tiny_imagenet
from evenly.data.formats.listing import list_dropped
from evenly.data.formats.locate import Missing
from evenly.errors import DataError


def save(path: Path, colour: int, side: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (side, side), (colour, 0, 0)).save(path)


@pytest.fixture
def cinic(tmp_path: Path) -> Path:
    for split, base in (("train", 0), ("valid", 50), ("test", 100)):
        for label, name in enumerate(("airplane", "cat")):
            save(tmp_path / f"CINIC-10/{split}/{name}/cifar10-train-{label}.png", base + label, 32)
            save(tmp_path / f"CINIC-10/{split}/{name}/n0123_{label}.png", base + 10 + label, 32)
    return tmp_path


def test_cinic10_has_three_splits_and_says_where_an_image_came_from(cinic: Path) -> None:
    splits = cinic10(root=cinic)
    assert list(splits) == ["train", "validation", "test"]
    assert splits["validation"].labels.tolist() == [0, 0, 1, 1]
    assert splits["validation"].gather(range(4))[:, 0, 0, 0].tolist() == [50, 60, 51, 61]
    assert splits["test"].attribute("source").tolist() == [0, 1, 0, 1]
    assert sorted(i for part in splits.values() for i in part.index.tolist()) == list(range(12))


def test_broken_files_are_left_out_and_listed_and_the_others_keep_their_numbers(cinic: Path) -> None:
    before = cinic10(root=cinic)
    broken = cinic / "CINIC-10/train/airplane/n0123_0.png"
    broken.write_bytes(b"broken")
    after = cinic10(root=cinic, skip_broken=True)
    assert [b.path for b in list_dropped(after)] == [broken]
    assert after.train.index.tolist() == [i for i in before.train.index.tolist() if i != 1]
    assert after["test"].index.tolist() == before["test"].index.tolist()
    assert list_dropped(before) == []


def test_splits_with_different_classes_are_refused(cinic: Path) -> None:
    save(cinic / "CINIC-10/test/dog/1.png", 0, 32)
    with pytest.raises(DataError, match=r"train and test have different classes \('dog'\)"):
        cinic10(root=cinic)


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-imagenet-200"
    for label, number in enumerate(("n02", "n01", "n03")):
        for i in range(2):
            save(folder / f"train/{number}/images/{number}_{i}.JPEG", 10 * label, 64)
        (folder / f"train/{number}/{number}_boxes.txt").write_text("")
    for i in range(3):
        save(folder / f"val/images/val_{i}.JPEG", 200, 64)
    (folder / "wnids.txt").write_text("n02\nn01\nn03\n")
    (folder / "words.txt").write_text("n01\tcrane\nn02\tgoldfish, Carassius auratus\nn03\tcrane\nn99\tother\n")
    (folder / "val/val_annotations.txt").write_text(
        "val_0.JPEG\tn03\t0\t0\t1\t1\nval_1.JPEG\tn02\t0\t0\t1\t1\nval_2.JPEG\tn01\t0\t0\t1\t1\n"
    )
    return tmp_path


def test_tiny_imagenet_tests_on_the_published_validation_set(tiny: Path) -> None:
    splits = tiny_imagenet(root=tiny)
    assert list(splits) == ["train", "test"]
    assert splits.classes == ("goldfish", "crane (n01)", "crane (n03)")
    assert splits.train.labels.tolist() == [0, 0, 1, 1, 2, 2]
    assert splits["test"].labels.tolist() == [2, 0, 1]
    assert splits.train.gather([0, 2, 4])[:, 0, 0, 0].tolist() == pytest.approx([0, 10, 20], abs=2)


def test_annotation_of_an_unknown_class_or_a_missing_file_is_named(tiny: Path) -> None:
    annotations = tiny / "tiny-imagenet-200/val/val_annotations.txt"
    good = annotations.read_text()
    annotations.write_text(good.replace("n03", "n04"))
    with pytest.raises(DataError, match="does not name one of the classes"):
        tiny_imagenet(root=tiny)
    annotations.write_text(good.replace("val_1", "val_7"))
    with pytest.raises(DataError, match=r"names 1 file that does not exist .*val_7.JPEG"):
        tiny_imagenet(root=tiny)
    annotations.unlink()
    with pytest.raises(Missing, match="val_annotations"):
        tiny_imagenet(root=tiny)
