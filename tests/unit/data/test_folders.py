"""A folder per class, with and without splits above."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from PIL import Image

from evenly.data import load
from evenly.data.formats.listing import list_dropped
from evenly.data.formats.locate import Missing
from evenly.data.held_out import with_validation
from evenly.data.own.folders import folder
from evenly.errors import DataError


def tree(root: Path, names: Sequence[str]) -> Path:
    for number, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (number, 0, 0)).save(path)
    return root


def test_classes_are_sorted_and_everything_is_train(tmp_path: Path) -> None:
    splits = folder(tree(tmp_path, ["dog/b.png", "dog/a.png", "cat/deep/er/x.png"]))
    assert list(splits) == ["train"]
    assert splits.classes == ("cat", "dog")
    assert splits.train.inputs.names == ("cat/deep/er/x.png", "dog/a.png", "dog/b.png")
    assert splits.train.labels.tolist() == [0, 1, 1]
    assert splits.train.gather([0, 1, 2])[:, 0, 0, 0].tolist() == [2, 1, 0]


@pytest.mark.parametrize("validation", ["val", "valid", "validation", "Val"])
def test_splits_are_recognised_under_their_usual_names(tmp_path: Path, validation: str) -> None:
    names = ["train/a/1.png", "train/b/1.png", f"{validation}/a/1.png", "test/b/1.png"]
    splits = folder(tree(tmp_path, names))
    assert list(splits) == ["train", "validation", "test"]
    assert splits["validation"].labels.tolist() == [0]
    assert splits["test"].labels.tolist() == [1]
    assert splits["test"].gather([0])[0, 0, 0, 0] == 3


def test_a_class_may_be_called_train(tmp_path: Path) -> None:
    splits = folder(tree(tmp_path, ["bus/1.png", "train/1.png", "tram/1.png"]))
    assert splits.classes == ("bus", "train", "tram")


def test_links_to_folders_are_followed_and_lead_nowhere_twice(tmp_path: Path) -> None:
    root = tree(tmp_path / "pets", ["cat/1.png", "cat/real/2.png", "dog/1.png"])
    tree(tmp_path / "more", ["3.png", "deep/4.png"])
    (root / "cat" / "linked").symlink_to(tmp_path / "more")
    (root / "cat" / "again").symlink_to(root / "cat" / "real")
    (root / "cat" / "itself").symlink_to(root / "cat")
    (root / "cat" / "all").symlink_to(root)
    (root / "cow").symlink_to(root / "dog")
    (tmp_path / "more" / "deep" / "back").symlink_to(tmp_path / "more")
    read = folder(root).train
    expected = ("cat/1.png", "cat/linked/3.png", "cat/linked/deep/4.png", "cat/real/2.png", "cow/1.png", "dog/1.png")
    assert read.inputs.names == expected
    assert read.classes == ("cat", "cow", "dog")


def test_a_file_that_is_trained_on_and_tested_with_is_named(tmp_path: Path) -> None:
    root = tree(tmp_path / "pets", ["train/cat/1.png", "train/cat/2.png", "train/dog/1.png", "test/dog/1.png"])
    assert folder(root).remarks == ()
    (root / "test" / "cat").mkdir()
    (root / "test" / "cat" / "7.png").symlink_to(root / "train" / "cat" / "1.png")
    (remark,) = folder(root).remarks
    assert remark.startswith("1 file of 'test' is trained on too ('test/cat/7.png'): its error is that of examples")
    assert load(root).remarks == (remark,)


def test_hidden_and_other_files_are_passed_over(tmp_path: Path) -> None:
    tree(tmp_path, ["a/1.png", "a/.2.png", ".b/1.png"])
    (tmp_path / "a" / "notes.txt").write_text("no image")
    assert folder(tmp_path).train.inputs.names == ("a/1.png",)


def test_images_that_belong_to_no_class_are_named(tmp_path: Path) -> None:
    tree(tmp_path, ["a/1.png", ".b/1.png", "loose.png", ".hidden.png"])
    (tmp_path / ".git").mkdir()
    assert folder(tmp_path).remarks == (
        f"{tmp_path}: images in the hidden folder '.b' are not read. Rename it if it is a class.",
        f"{tmp_path}: 1 image is beside the class folders and has no class: 'loose.png'. Move it into one to use it.",
    )


def test_images_in_formats_that_are_not_read_are_named(tmp_path: Path) -> None:
    tree(tmp_path, ["a/1.png", "b/1.png"])
    for name in ("b/2.HEIC", "b/deep.heic", "a/notes.txt"):
        (tmp_path / name).write_bytes(b"")
    assert folder(tmp_path).remarks == (
        f"{tmp_path}: 2 images are in a format that is not read: 'b/2.HEIC', 'b/deep.heic'. Convert them to JPEG or "
        "PNG to use them.",
    )


def test_a_hidden_folder_that_may_not_be_read_is_no_obstacle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(tmp_path, ["a/1.png", ".Trashes/1.png"])
    real = os.scandir

    def scandir(path: os.PathLike[str]) -> object:
        if os.fspath(path).endswith(".Trashes"):
            raise PermissionError(13, "Permission denied", os.fspath(path))
        return real(path)

    monkeypatch.setattr(os, "scandir", scandir)
    assert folder(tmp_path).remarks == ()


def test_hidden_class_of_a_split_is_named(tmp_path: Path) -> None:
    (remark,) = folder(tree(tmp_path, ["train/a/1.png", "train/.b/1.png", "test/a/1.png"])).remarks
    assert "'.b'" in remark
    assert str(tmp_path / "train") in remark


def test_class_only_in_the_test_split_is_named(tmp_path: Path) -> None:
    tree(tmp_path, ["train/a/1.png", "test/a/1.png", "test/ghost/1.png"])
    with pytest.raises(DataError, match="class 'ghost' has no training example"):
        folder(tmp_path)


def test_empty_class_folder_is_named(tmp_path: Path) -> None:
    tree(tmp_path, ["a/1.png", "b/1.png"])
    (tmp_path / "hollow").mkdir()
    with pytest.raises(DataError, match="no images in class folder 'hollow'"):
        folder(tmp_path)


def test_no_images_and_no_class_folders_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no class folder. Expected one folder per class"):
        folder(tmp_path)
    Image.new("RGB", (2, 2)).save(tmp_path / "loose.png")
    with pytest.raises(DataError, match="there is no class folder"):
        folder(tmp_path)
    (tmp_path / "a").mkdir()
    with pytest.raises(DataError, match=r"no images were found in its 1 folders \('a'\).*\.png"):
        folder(tmp_path)


def test_folder_beside_the_splits_and_two_names_for_one_split_are_refused(tmp_path: Path) -> None:
    tree(tmp_path, ["train/a/1.png", "val/a/1.png", "extra/a/1.png"])
    with pytest.raises(DataError, match="'extra' beside 'train' is not a split"):
        folder(tmp_path)
    (tmp_path / "extra").rename(tmp_path / "valid")
    with pytest.raises(DataError, match="both 'val' and 'valid' would be the split validation"):
        folder(tmp_path)


def test_missing_folder_says_where_it_looked(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="nowhere"):
        folder(tmp_path / "nowhere")


def test_broken_image_stops_reading_unless_it_is_skipped_and_listed(tmp_path: Path) -> None:
    tree(tmp_path, ["a/1.png", "a/2.png", "b/1.png"])
    (tmp_path / "a/1.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"a/1.png: does not decode"):
        folder(tmp_path)
    splits = folder(tmp_path, skip_broken=True)
    assert splits.train.index.tolist() == [1, 2]
    assert splits.train.labels.tolist() == [0, 1]
    assert splits.remarks == ("1 broken image was left out: a/1.png (not in an image format that is known).",)
    assert (splits | {"more": splits.train}).remarks == splits.remarks
    assert with_validation(splits, share=0.5).remarks == splits.remarks
    assert folder(tree(tmp_path / "whole", ["a/1.png"])).remarks == ()
    [(path, reason)] = list_dropped(splits)
    assert (path, reason) == (tmp_path / "a/1.png", "not in an image format that is known")


def test_nothing_left_after_skipping_is_an_error(tmp_path: Path) -> None:
    tree(tmp_path, ["a/1.png"])
    (tmp_path / "a/1.png").write_bytes(b"broken")
    with pytest.raises(DataError, match=r"none of the 1 images decodes. The first, 1.png"):
        folder(tmp_path, skip_broken=True)


def test_a_class_whose_name_no_record_can_hold_is_refused_and_files_may_have_any_name(tmp_path: Path) -> None:
    for name in (b"a", b"\xff\xfe"):
        folder = os.fsdecode(os.fsencode(tmp_path) + b"/" + name)
        os.mkdir(folder)
        for number in range(5):
            Image.new("L", (4, 4), number).save(os.path.join(folder, f"{number}.png"))
    with pytest.raises(DataError, match=r"the name '\\udcff\\udcfe' is not UTF-8. Rename the class"):
        load(tmp_path)
    os.rename(folder, tmp_path / "b")
    os.rename(tmp_path / "b" / "0.png", os.fsencode(tmp_path) + b"/b/\xff.png")
    assert len(load(tmp_path, held_out=0).train) == 10


@contextmanager
def as_an_ordinary_user() -> Iterator[None]:
    """Root reads every folder, whatever its rights."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(os.name == "nt", reason="rights are others on Windows")
@pytest.mark.parametrize("closed", ["cat", "cat/deep", "."])
def test_a_folder_that_cannot_be_read_is_named_and_not_taken_for_empty(closed: str) -> None:
    with tempfile.TemporaryDirectory() as name:  # pytest's own folders are closed to other users
        root = tree(Path(name) / "photos", ["cat/1.png", "cat/deep/2.png", "dog/1.png"])
        Path(name).chmod(0o755)
        (root / closed).chmod(0o000)
        try:
            with (
                as_an_ordinary_user(),
                pytest.raises(DataError, match=r"cannot be read \(Permission denied\)") as found,
            ):
                folder(root)
            assert str(found.value).startswith(f"{root / closed}: ")
        finally:
            (root / closed).chmod(0o755)


@pytest.mark.parametrize("splits", [("test", "val"), ("train_set", "test_set"), ("Training Images", "Test Images")])
def test_folders_that_are_called_like_splits_are_not_taken_for_classes(tmp_path: Path, splits: tuple[str, ...]) -> None:
    tree(tmp_path, [f"{split}/{kind}/1.png" for split in splits for kind in ("cat", "dog")])
    with pytest.raises(
        DataError, match=rf"'{min(splits)}'.*would be classes.*Rename them to train, validation and test"
    ):
        folder(tmp_path)


def test_folders_that_all_hold_the_same_folders_are_remarked_on(tmp_path: Path) -> None:
    splits = folder(
        tree(tmp_path, [f"{domain}/{kind}/1.png" for domain in ("photo", "sketch") for kind in ("cat", "dog")])
    )
    assert splits.classes == ("photo", "sketch")
    (remark,) = splits.remarks
    assert "the classes are 'photo', 'sketch'" in remark
    assert "'cat', 'dog'" in remark
    tree(tmp_path, ["photo/bird/1.png"])
    assert folder(tmp_path).remarks == ()  # nested as people like
    (tmp_path / "photo" / "bird" / "1.png").rename(tmp_path / "photo" / "1.png")
    (tmp_path / "photo" / "bird").rmdir()
    assert folder(tmp_path).remarks == ()
