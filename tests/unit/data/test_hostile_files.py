"""Files that lie, files that are not files, and cells that Python alone would read as numbers."""

import os
import socket
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from evenly.cli import main
from evenly.data import load
from evenly.data.fetch.unpack import unpack
from evenly.data.formats.image_files import decode
from evenly.data.own.manifests import manifest
from evenly.errors import DataError, UsageError
from evenly.files.numpy_files import read_npz
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


@pytest.mark.parametrize("name", ["x.npz", "m.csv", "m.parquet", "class/f.png"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "socket"])
def test_what_is_no_regular_file_is_refused_and_never_waited_for(
    tmp_path: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the names of sockets are short
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    given = "." if name == "class/f.png" else name
    assert main(["data", "verify", f"./{given}"]) == 3
    assert main(["train", f"./{given}", "--model", "mlp", "--epochs", "1"]) == 3
    said = capsys.readouterr().err
    assert "Traceback" not in said
    if kind == "pipe":
        assert f"{path.name} is a named pipe, not a regular file" in said


def test_archives_and_separations_that_are_pipes_are_not_waited_for(tmp_path: Path) -> None:
    for name in ("a.zip", "a.tar", "a.gz", "a.tar.gz"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(DataError, match="is a named pipe"):
            unpack(tmp_path / name, tmp_path / "out")


HUNGRY = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (int(sys.argv[2]), int(sys.argv[2])))
from evenly.errors import DataError
from evenly.files.numpy_files import read_npz
try:
    read_npz(sys.argv[1])
except DataError as error:
    print(error)
"""


def test_an_archive_that_promises_gigabytes_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    bomb = tmp_path / "bomb.npz"
    header = np.lib.format.header_data_from_array_1_0(np.empty(0, np.uint8)) | {"shape": (2_900_000_000,)}
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, header)
        for _ in range(300):
            member.write(bytes(1 << 20))
    assert bomb.stat().st_size < 400_000
    command = [sys.executable, "-c", HUNGRY, str(bomb), str(600 << 20)]
    said = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
    )
    assert "bomb.npz: its" in said.stdout
    assert "it was not unpacked" in said.stdout


def test_a_header_that_promises_more_than_its_member_is_named_with_it(tmp_path: Path) -> None:
    path = tmp_path / "lies.npz"
    with zipfile.ZipFile(path, "w") as archive, archive.open("x.npy", "w") as member:
        np.lib.format.write_array_header_1_0(member, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)})
        member.write(bytes(80))
    with pytest.raises(DataError, match=r"lies\.npz: 'x' cannot be read: its header promises 8,000,000,000,000 bytes"):
        read_npz(path)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("dtype", ["<f4", ">f8", "<i8", ">u2", "?", "<U3", "S2"])
def test_arrays_are_read_as_numpy_reads_them(tmp_path: Path, dtype: str, order: str) -> None:
    array = np.array([[1, 0, 1], [0, 0, 1]]).astype(dtype, order=order)
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "a.npz", x=array, empty=array[:0], single=array[0, 0])
        with np.load(tmp_path / "a.npz") as peer:
            ours = read_npz(tmp_path / "a.npz")
            for name in peer.files:
                np.testing.assert_array_equal(ours[name], peer[name])
                assert ours[name].dtype == peer[name].dtype.newbyteorder("=")


@pytest.mark.filterwarnings("ignore")
def test_images_too_large_for_their_file_are_refused_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    Image.new("1", (13000, 13000)).save(tmp_path / "c" / "1.png")
    with pytest.raises(DataError, match=r"1\.png.*make it smaller"):
        load(tmp_path)
    Image.new("L", (5000, 4000)).save(tmp_path / "c" / "1.png")
    with pytest.raises(DataError, match=r"1\.png is 4000×5000 pixels.*Give a size.*size=224"):
        load(tmp_path)
    assert load(tmp_path, size=8).train.gather([0]).shape == (1, 3, 8, 8)


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr"])
def test_images_of_every_8_bit_mode_are_read(tmp_path: Path, mode: str) -> None:
    path = tmp_path / "a.tiff"
    Image.new(mode, (5, 4)).save(path)
    assert decode(path).size == (5, 4)


def test_programs_in_the_guise_of_pictures_are_not_run(tmp_path: Path) -> None:
    path = tmp_path / "a.png"
    path.write_bytes(b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 5 5\n%%EndComments\n%%EOF\n")
    with pytest.raises(DataError, match="not in an image format that is known"):
        decode(path)


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
