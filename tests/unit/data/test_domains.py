"""DomainBed's folders of domains and classes, and the fixed way they are split."""

from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from evenly.data.formats.domains import fixed_split, office_home, pacs, vlcs
from evenly.errors import DataError, UsageError

DOMAINS = ("art_painting", "cartoon", "photo", "sketch")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for domain in DOMAINS:
        for name in ("dog", "elephant"):
            folder = tmp_path / "PACS" / domain / name
            folder.mkdir(parents=True)
            for number in range(10):
                Image.new("RGB", (8, 8)).save(folder / f"pic_{number}.png")
    return tmp_path


def files(splits: object, *names: str) -> set[str]:
    return {name for split in names for name in splits[split].inputs.names}  # type: ignore[index]


def test_all_domains_together_are_cut_80_10_10_in_each_domain(root: Path) -> None:
    splits = pacs(root=root)
    assert {split: len(part) for split, part in splits.items()} == {"train": 64, "validation": 8, "test": 8}
    for domain in range(4):
        assert (splits.train.attribute("domain") == domain).sum() == 16
    assert len(files(splits, "train", "validation", "test")) == 80


def test_held_out_domain_appears_nowhere_else(root: Path) -> None:
    splits = pacs(root=root, target="photo")
    assert list(splits) == ["train", "validation", "test", "target_train", "target_test"]
    assert {split: len(part) for split, part in splits.items()} == {
        "train": 48,
        "validation": 6,
        "test": 6,
        "target_train": 16,
        "target_test": 4,
    }
    assert all(name.startswith("photo/") for name in files(splits, "target_train", "target_test"))
    assert not any(name.startswith("photo/") for name in files(splits, "train", "validation", "test"))


def test_label_domain_and_group_follow_the_folders(root: Path) -> None:
    train = pacs(root=root, target="photo").train
    for name, label, domain, group in zip(
        train.inputs.names, train.labels, train.attribute("domain"), train.attribute("group"), strict=True
    ):
        domain_name, class_name, _ = name.split("/")
        assert (train.classes[label], train.values["domain"][domain]) == (class_name, domain_name)
        assert train.values["group"][group] == f"{class_name}, {domain_name}"


def test_split_of_one_domain_does_not_depend_on_the_target(root: Path) -> None:
    alone, held = pacs(root=root), pacs(root=root, target="photo")
    sketches = {name for name in files(alone, "train") if name.startswith("sketch")}
    assert sketches == {name for name in files(held, "train") if name.startswith("sketch")}


def test_fixed_split_is_a_function_of_names_not_of_order() -> None:
    names = [f"{i}.png" for i in range(40)]
    shares = {"train": 0.8, "test": 0.2}
    forward = dict(zip(names, fixed_split("x", names, shares), strict=True))
    backward = dict(zip(names[::-1], fixed_split("x", names[::-1], shares), strict=True))
    assert forward == backward
    assert list(forward.values()) != list(fixed_split("y", names, shares))
    assert list(forward.values()) != ["train"] * 32 + ["test"] * 8


def test_unknown_target_is_a_usage_error_with_the_nearest(root: Path) -> None:
    with pytest.raises(UsageError, match=r"no domain 'sketches' to hold out. Did you mean 'sketch'"):
        pacs(root=root, target="sketches")


def test_domain_without_a_class_is_named(root: Path) -> None:
    (root / "PACS/photo/dog").rename(root / "PACS/photo/.dog")
    with pytest.raises(DataError, match="photo: has no folder for class 'dog'"):
        pacs(root=root)


@pytest.mark.parametrize(
    ("load", "folder", "domains"),
    [
        (vlcs, "VLCS", ("Caltech101", "LabelMe", "SUN09", "VOC2007")),
        (office_home, "office_home", ("Art", "Clipart", "Product", "Real World")),
        (office_home, "OfficeHome", ("Art", "Clipart", "Product", "Real World")),
    ],
)
def test_vlcs_and_office_home_resize_images_of_all_sizes(
    tmp_path: Path, load: Callable[..., object], folder: str, domains: tuple[str, ...]
) -> None:
    for number, domain in enumerate(domains):
        place = tmp_path / folder / domain / "bird"
        place.mkdir(parents=True)
        for i in range(5):
            Image.new("RGB", (10 + number, 8 + i)).save(place / f"{i}.jpg")
    splits = load(root=tmp_path, target=domains[-1], size=16)
    assert splits.train.gather(range(len(splits.train))).shape == (12, 3, 16, 16)  # type: ignore[attr-defined]
    assert splits.train.values["domain"] == domains  # type: ignore[attr-defined]


def test_real_pacs_has_9991_images_in_7_classes(published: Callable[[str], Path]) -> None:
    splits = pacs(root=published("PACS"), target="sketch")
    assert sum(map(len, splits.values())) == 9991
    assert splits.classes == ("dog", "elephant", "giraffe", "guitar", "horse", "house", "person")
    assert len(splits["target_train"]) + len(splits["target_test"]) == 3929
    assert splits.train.gather([0, 100, 1000]).shape[1] == 3
