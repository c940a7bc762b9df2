"""Arrays are read as numpy reads them, and archives that promise more than they hold are refused."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from evenly.errors import DataError
from evenly.files.numpy_files import read_npz

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
