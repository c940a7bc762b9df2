"""Cells of a manifest that Python alone would read as numbers, and manifests that would fill the memory."""

import tracemalloc
from pathlib import Path

import pytest
import torch
from PIL import Image

from evenly.data.own.manifests import manifest
from evenly.errors import DataError, UsageError
from evenly.resampling.multiset import expand


@pytest.fixture
def root(tmp_path: Path) -> Path:
    Image.new("RGB", (8, 8)).save(tmp_path / "1.png")
    return tmp_path


def rows(root: Path, *lines: str, header: str = "path,label") -> Path:
    path = root / "m.csv"
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        (["007", "7"], ("007", "7")),
        (["1_0", "10"], ("10", "1_0")),
        (["10", "9"], ("9", "10")),
        (["١", "1"], ("1", "١")),
        (["18446744073709551615", "1"], ("1", "18446744073709551615")),
        (["9" * 5000, "1"], ("1", "9" * 5000)),
        (["+7", "7"], ("+7", "7")),
    ],
)
def test_labels_that_are_written_differently_stay_apart(
    root: Path, labels: list[str], classes: tuple[str, ...]
) -> None:
    assert manifest(rows(root, *(f"1.png,{label}" for label in labels))).classes == classes


def test_an_attribute_beyond_64_bits_is_text(root: Path) -> None:
    path = rows(root, "1.png,a,18446744073709551615", "1.png,b,2", header="path,label,code")
    train = manifest(path).train
    assert train.values["code"] == ("18446744073709551615", "2")
    assert train.attribute("code").tolist() == [0, 1]


@pytest.mark.parametrize("cell", ["1e30", "1_0", "٢", "99999999999999999999", "1e1", "+2", "0x2"])
def test_a_number_of_times_is_written_in_plain_digits(root: Path, cell: str) -> None:
    with pytest.raises(DataError, match=r"m\.csv, line 2: 'repeat' is"):
        manifest(rows(root, f"1.png,a,{cell}", header="path,label,repeat"))


def test_more_copies_than_memory_holds_are_refused_at_their_line(root: Path) -> None:
    path = rows(root, "1.png,a,1", "1.png,b,1000000000000", header="path,label,repeat")
    with pytest.raises(DataError, match=r"line 3: 'repeat' is 1000000000000: with it 2 rows stand for 1,000,000"):
        manifest(path)
    with pytest.raises(UsageError, match="1,000,000,000,001 copies of 2 examples"):
        expand(torch.tensor([1, 10**12]))


def test_very_many_copies_of_one_row_are_made_at_once(root: Path) -> None:
    train = manifest(rows(root, "1.png,a,1", "1.png,b,500000", header="path,label,repeat")).train
    assert len(train) == 500_001
    assert train.labels[:3].tolist() == [0, 1, 1]


def test_a_row_without_an_end_is_refused_before_it_fills_memory(root: Path) -> None:
    with pytest.raises(DataError, match=r"m\.csv: line 2: the row is longer than 1,048,576 characters"):
        manifest(rows(root, "1.png," + "x" * 3_000_000))


def test_a_manifest_takes_memory_in_proportion_to_its_text(root: Path) -> None:
    path = rows(
        root,
        *(f"1.png,class {i % 50},{i},{i / 7:.6f},{1 + i % 2}" for i in range(40_000)),
        header="path,label,id,loss,repeat",
    )
    tracemalloc.start()
    try:
        splits = manifest(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(splits.train) == 60_000
    assert peak < 4 * path.stat().st_size  # Python's own objects for every cell took fourteen times as much
