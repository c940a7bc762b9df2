"""The idx format, written here byte by byte as its publisher describes it."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from evenly.data.formats.idx import fashion_mnist, mnist, read_idx
from evenly.data.formats.locate import Missing
from evenly.errors import DataError


def idx(array: np.ndarray) -> bytes:
    return b"\0\0\x08" + bytes([array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


def images(num: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (num, 28, 28), dtype=np.uint8)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "MNIST" / "raw"
    folder.mkdir(parents=True)
    for prefix, num in (("train", 7), ("t10k", 3)):
        (folder / f"{prefix}-images-idx3-ubyte").write_bytes(idx(images(num)))
        (folder / f"{prefix}-labels-idx1-ubyte").write_bytes(idx(np.arange(num, dtype=np.uint8)))
    return tmp_path


def test_pixels_and_labels_are_those_that_were_written(root: Path) -> None:
    splits = mnist(root=root)
    assert torch.equal(splits.train.inputs, torch.from_numpy(images(7))[:, None])
    assert splits.train.labels.tolist() == list(range(7))
    assert len(splits["test"]) == 3
    assert splits.train.inputs.dtype == torch.uint8


def test_gzipped_files_give_the_same_data(root: Path) -> None:
    plain = mnist(root=root).fingerprint
    for path in (root / "MNIST" / "raw").iterdir():
        path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    assert mnist(root=root).fingerprint == plain


def test_dotted_file_names_of_republications_are_found(root: Path) -> None:
    for path in (root / "MNIST" / "raw").iterdir():
        path.rename(path.with_name(path.name.replace("-idx", ".idx")))
    assert len(mnist(root=root).train) == 7


def test_missing_folder_says_what_and_where(tmp_path: Path) -> None:
    with pytest.raises(Missing, match="Fashion-MNIST was not found") as caught:
        fashion_mnist(root=tmp_path)
    assert tmp_path / "FashionMNIST" / "raw" in caught.value.looked_in
    assert caught.value.exit_code == 3


def test_missing_file_in_a_present_folder_is_named(root: Path) -> None:
    (root / "MNIST/raw/t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(Missing, match="t10k-labels-idx1-ubyte"):
        mnist(root=root)


def test_truncated_file_is_named_with_expected_and_found_sizes(root: Path) -> None:
    path = root / "MNIST/raw/train-images-idx3-ubyte"
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(DataError, match=r"train-images-idx3-ubyte: truncated: .* 5,504 bytes, 5,494 were found"):
        mnist(root=root)


def test_truncation_inside_gzip_is_told_by_unpacked_sizes(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(idx(images(7))[:-10]))
    with pytest.raises(DataError, match="5,504 bytes when unpacked, 5,494 were found"):
        read_idx(path)


def test_gzip_stream_cut_short_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(idx(images(7)))[:-100])
    with pytest.raises(DataError, match="truncated or damaged gzip"):
        read_idx(path)


def test_surplus_bytes_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(idx(images(1)) + b"xx")
    with pytest.raises(DataError, match=r"too long: .* 800 bytes, 802 were found"):
        read_idx(path)


def test_file_named_gz_that_is_not_gzip_is_told(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(idx(images(1)))
    with pytest.raises(DataError, match=r"named .gz but damaged or not gzip"):
        read_idx(path)


@pytest.mark.parametrize("content", [b"", b"<html>", b"\0\0\x0d\x01\0\0\0\x01\0\0\0\0", b"\0\0\x08\0"])
def test_wrong_magic_shows_the_bytes_found(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "a"
    path.write_bytes(content)
    with pytest.raises(DataError, match="not an idx file of unsigned bytes: it begins with"):
        read_idx(path)


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_header_that_promises_terabytes_reserves_no_memory(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    content = b"\0\0\x08\x03" + b"\xff" * 12 + b"abc"
    path.write_bytes(gzip.compress(content) if name.endswith("gz") else content)
    with pytest.raises(DataError, match="truncated"):
        read_idx(path)


def test_label_out_of_range_is_named(root: Path) -> None:
    (root / "MNIST/raw/train-labels-idx1-ubyte").write_bytes(idx(np.array([0, 1, 2, 11, 4, 5, 6], np.uint8)))
    with pytest.raises(DataError, match="label 11 of example 3 is out of range"):
        mnist(root=root)


def test_images_and_labels_of_different_number_do_not_belong_together(root: Path) -> None:
    (root / "MNIST/raw/train-labels-idx1-ubyte").write_bytes(idx(np.zeros(6, np.uint8)))
    with pytest.raises(DataError, match="do not belong together"):
        mnist(root=root)


def test_real_mnist_begins_with_5_0_4_1_9(published: Callable[[str], Path]) -> None:
    splits = mnist(root=published("MNIST/raw"))
    assert splits.train.labels[:5].tolist() == [5, 0, 4, 1, 9]
    assert splits.train.labels.bincount().tolist() == [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert splits["test"].labels.bincount().tolist() == [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]
    assert splits.train.shape == (1, 28, 28)
    assert splits.train.inputs.double().div(255).mean().item() == pytest.approx(0.1307, abs=1e-4)


def test_real_fashion_mnist_has_6000_a_class(published: Callable[[str], Path]) -> None:
    splits = fashion_mnist(root=published("FashionMNIST/raw"))
    assert splits.train.labels.bincount().tolist() == [6000] * 10
    assert splits.classes[splits.train.labels[0]] == "ankle boot"
    assert splits.train.inputs.double().div(255).mean().item() == pytest.approx(0.2860, abs=1e-4)
