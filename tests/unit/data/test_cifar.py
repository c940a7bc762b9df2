"""CIFAR in both published forms, and pickles that would run code."""

import os
import pickle
import struct
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from evenly.data.formats import safe_pickle
from evenly.data.formats.cifar import cifar10, cifar100, read_binary, read_pickles
from evenly.data.formats.locate import Missing
from evenly.errors import DataError

NAMES = ["data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"]


def pixels(num: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, (num, 3072), dtype=np.uint8)


def write_binary(root: Path, num: int = 200) -> None:
    folder = root / "cifar-10-batches-bin"
    folder.mkdir()
    for seed, name in enumerate(NAMES):
        labels = np.arange(num, dtype=np.uint8)[:, None] % 10
        (folder / f"{name}.bin").write_bytes(np.concatenate([labels, pixels(num, seed)], axis=1).tobytes())


def python2_pickle(data: np.ndarray, lists: dict[bytes, list[int]]) -> bytes:
    """A batch as Python 2 wrote it in 2009: protocol 2, `str` opcodes, numpy.core, flags of dtype as numbers."""

    def string(value: bytes) -> bytes:
        return b"U" + bytes([len(value)]) + value if len(value) < 256 else b"T" + struct.pack("<i", len(value)) + value

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n" + b"cnumpy\nndarray\n" + number(0) + b"\x85" + string(b"b") + b"\x87R"
        b"(" + number(1) + number(data.shape[0]) + number(data.shape[1]) + b"\x86"
        b"cnumpy\ndtype\n" + string(b"u1") + number(0) + number(1) + b"\x87R"
        b"(" + number(3) + string(b"|") + b"NNN" + number(-1) + number(-1) + number(0) + b"tb"
        b"\x89" + string(data.tobytes()) + b"tb"
    )
    items = b"".join(string(k) + b"](" + b"".join(map(number, v)) + b"e" for k, v in lists.items())
    return b"\x80\x02}(" + string(b"data") + array + items + string(b"batch_label") + string(b"x") + b"u."


def test_binary_pixels_and_labels_are_those_that_were_written(tmp_path: Path) -> None:
    write_binary(tmp_path)
    splits = cifar10(root=tmp_path)
    assert splits.train.inputs.shape == (1000, 3, 32, 32)
    assert torch.equal(splits.train.inputs[200:400].flatten(1), torch.from_numpy(pixels(200, 1)))
    assert torch.equal(splits["test"].inputs.flatten(1), torch.from_numpy(pixels(200, 5)))
    assert torch.equal(splits.train.labels, torch.arange(200).repeat(5) % 10)


def test_loading_holds_little_more_than_one_copy(tmp_path: Path) -> None:
    write_binary(tmp_path, num=1000)
    tracemalloc.start()
    try:
        splits = cifar10(root=tmp_path)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    size = sum(part.inputs.nbytes for part in splits.values())
    assert size < peak < 1.2 * size


def test_the_python_version_of_2009_gives_the_same_data_as_the_binary(tmp_path: Path) -> None:
    write_binary(tmp_path, num=20)
    binary = cifar10(root=tmp_path)
    other = tmp_path / "other"
    folder = other / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    for seed, name in enumerate(NAMES):
        labels = [i % 10 for i in range(20)]
        (folder / name).write_bytes(python2_pickle(pixels(20, seed), {b"labels": labels}))
    assert cifar10(root=other).fingerprint == binary.fingerprint


def test_pickles_saved_again_by_python_3_are_read(tmp_path: Path) -> None:
    for protocol in (2, 4, 5):
        for data, labels in ((b"data", b"labels"), ("data", "labels")):
            path = tmp_path / "batch"
            path.write_bytes(pickle.dumps({data: pixels(4, 0), labels: [3, 1, 4, 1]}, protocol=protocol))
            images, found = read_pickles([path], keys=["labels"])
            assert np.array_equal(images.reshape(4, -1), pixels(4, 0))
            assert found[:, 0].tolist() == [3, 1, 4, 1]


def test_real_cifar10_survives_the_way_through_a_pickle(published: Callable[[str], Path], tmp_path: Path) -> None:
    path = published("cifar-10-batches-bin") / "cifar-10-batches-bin" / "test_batch.bin"
    images, labels = read_binary([path], num_labels=1)
    copy = tmp_path / "test_batch"
    copy.write_bytes(python2_pickle(images.reshape(len(images), -1), {b"labels": labels[:, 0].tolist()}))
    again, labels_again = read_pickles([copy], keys=["labels"])
    assert np.array_equal(images, again)
    assert np.array_equal(labels, labels_again)


def test_real_cifar10_has_5000_a_class_and_begins_with_a_frog(published: Callable[[str], Path]) -> None:
    splits = cifar10(root=published("cifar-10-batches-bin"))
    assert splits.train.labels.bincount().tolist() == [5000] * 10
    assert splits["test"].labels.bincount().tolist() == [1000] * 10
    assert splits.classes[splits.train.labels[0]] == "frog"
    means = splits.train.inputs.float().mean(dim=(0, 2, 3)).div(255).tolist()
    assert means == pytest.approx([0.4914, 0.4822, 0.4465], abs=1e-4)


def test_cifar100_binary_and_python_agree_and_keep_superclasses(tmp_path: Path) -> None:
    coarse_names = [f"coarse{i}" for i in range(20)]
    fine_names = [f"fine{i}" for i in range(100)]
    binary, python = tmp_path / "b" / "cifar-100-binary", tmp_path / "p" / "cifar-100-python"
    for folder in (binary, python):
        folder.mkdir(parents=True)
    (binary / "coarse_label_names.txt").write_text("\n".join(coarse_names) + "\n")
    (binary / "fine_label_names.txt").write_text("\n".join(fine_names) + "\n")
    names = {b"coarse_label_names": coarse_names, b"fine_label_names": fine_names}
    (python / "meta").write_bytes(pickle.dumps(names, protocol=2))
    for seed, split in enumerate(("train", "test")):
        fine = np.array([99, 0, 57], np.uint8)
        coarse = np.array([19, 0, 3], np.uint8)
        data = pixels(3, seed)
        (binary / f"{split}.bin").write_bytes(np.concatenate([coarse[:, None], fine[:, None], data], axis=1).tobytes())
        lists = {b"fine_labels": fine.tolist(), b"coarse_labels": coarse.tolist()}
        (python / split).write_bytes(python2_pickle(data, lists))
    one, two = cifar100(root=tmp_path / "b"), cifar100(root=tmp_path / "p")
    assert one.train.labels.tolist() == [99, 0, 57]
    assert one.train.attribute("superclass").tolist() == [19, 0, 3]
    assert one.train.values["superclass"][19] == "coarse19"
    assert one.fingerprint == two.fingerprint
    assert torch.equal(two.train.attribute("superclass"), one.train.attribute("superclass"))


def test_truncated_binary_is_named_with_sizes(tmp_path: Path) -> None:
    write_binary(tmp_path, num=10)
    path = tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(DataError, match=r"data_batch_3.bin: truncated: 30,729 bytes .*30,730 would be"):
        cifar10(root=tmp_path)


def test_missing_batch_is_named(tmp_path: Path) -> None:
    write_binary(tmp_path, num=10)
    (tmp_path / "cifar-10-batches-bin" / "data_batch_3.bin").unlink()
    with pytest.raises(Missing, match=r"data_batch_3.bin"):
        cifar10(root=tmp_path)


def test_label_out_of_range_is_named(tmp_path: Path) -> None:
    write_binary(tmp_path, num=10)
    path = tmp_path / "cifar-10-batches-bin" / "test_batch.bin"
    content = bytearray(path.read_bytes())
    content[3073 * 4] = 77
    path.write_bytes(content)
    with pytest.raises(DataError, match="label 77 of test example 4 is out of range, classes are 0 to 9"):
        cifar10(root=tmp_path)


class Touch:
    """Unpickled by an ordinary unpickler, this runs a command."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[str]]:
        return os.system, (f"touch '{self.path}'",)


def test_pickle_that_would_run_a_command_is_refused_and_runs_nothing(tmp_path: Path) -> None:
    victim, path = tmp_path / "ran", tmp_path / "batch"
    content = pickle.dumps({b"data": Touch(victim), b"labels": []})
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"tries to import (posix|nt)\.system.*It was not executed") as caught:
        read_pickles([path], keys=["labels"])
    assert not victim.exists()
    assert caught.value.exit_code == 3
    pickle.loads(content)  # the danger is real: an ordinary unpickler does run it
    assert victim.exists()


@pytest.mark.parametrize(
    "content",
    [
        b"cbuiltins\neval\n(S'1'\ntR.",
        b"cnumpy\nload\n(S'x'\ntR.",
        b"\x80\x04\x8c\x05numpy\x8c\x0dndarray.dumps\x93.",
        b"cnumpy.core.multiarray\nscalar\n.",
    ],
)
def test_every_import_but_the_array_ones_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "p"
    path.write_bytes(content)
    with pytest.raises(DataError, match="tries to import"):
        safe_pickle.load(path)


@pytest.mark.parametrize(
    "value", [np.array([len], dtype=object), np.array(["a"]), np.zeros(1, dtype=[("a", "u1")])], ids=str
)
def test_arrays_of_anything_but_numbers_are_refused(tmp_path: Path, value: np.ndarray) -> None:
    path = tmp_path / "p"
    path.write_bytes(pickle.dumps(value, protocol=2))
    with pytest.raises(DataError):
        safe_pickle.load(path)


def test_forged_flags_of_a_dtype_do_not_reach_numpy(tmp_path: Path) -> None:
    # Flags that mark bytes as Python objects would have numpy follow them as addresses.
    forged = python2_pickle(pixels(2, 0), {}).replace(
        b"NNN" + b"J\xff\xff\xff\xff" * 2 + b"J\0\0\0\0", b"NNN" + b"J\x3f\0\0\0" * 3
    )
    assert forged != python2_pickle(pixels(2, 0), {})
    path = tmp_path / "p"
    path.write_bytes(forged)
    data = safe_pickle.load(path)[b"data"]
    assert not data.dtype.hasobject
    assert np.array_equal(data, pixels(2, 0))


@pytest.mark.parametrize("kind", ["<f4", ">i2", "|b1", "<u8"])
@pytest.mark.parametrize("protocol", [2, 5])
def test_arrays_of_any_number_and_order_survive(tmp_path: Path, kind: str, protocol: int) -> None:
    path = tmp_path / "p"
    for value in (
        np.arange(12).reshape(3, 4).astype(kind),
        np.asfortranarray(np.arange(12).reshape(3, 4).astype(kind)),
    ):
        path.write_bytes(pickle.dumps([value], protocol=protocol))
        [again] = safe_pickle.load(path)
        assert again.dtype.newbyteorder("=") == value.dtype.newbyteorder("=")
        assert np.array_equal(again, value)


def test_codecs_other_than_latin1_are_out_of_reach(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(b"\x80\x02c_codecs\nencode\nX\x01\0\0\0aX\x05\0\0\0rot13\x86R.")
    with pytest.raises(DataError, match="rot13"):
        safe_pickle.load(path)


def test_truncated_pickle_is_told_with_its_size(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(pickle.dumps({b"data": pixels(3, 0)})[:500])
    with pytest.raises(DataError, match=r"not a readable pickle .* 500 bytes were found"):
        safe_pickle.load(path)


def test_damaged_pickle_that_asks_for_all_memory_is_told(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(b"\x80\x04\x8e" + struct.pack("<Q", 2**60) + b"x.")  # bytes of a length no machine can hold
    with pytest.raises(DataError, match=r"not a readable pickle .*but only 2 remain"):
        safe_pickle.load(path)


def test_pickle_without_the_expected_entries_lists_its_own(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(pickle.dumps({"images": 1}))
    with pytest.raises(DataError, match="no entry 'data'; its entries: images"):
        read_pickles([path], keys=["labels"])
    path.write_bytes(pickle.dumps({"data": pixels(3, 0)[:, :-1], "labels": [1, 2, 3]}))
    with pytest.raises(DataError, match=r"uint8 of shape \(3, 3071\), expected uint8 of shape \(N, 3072\)"):
        read_pickles([path], keys=["labels"])
    path.write_bytes(pickle.dumps({"data": pixels(3, 0), "labels": [1, 2]}))
    with pytest.raises(DataError, match="not a list of 3 integers"):
        read_pickles([path], keys=["labels"])
