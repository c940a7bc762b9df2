"""Arrays that a run keeps, as `.npz` files that name the run they belong to.

A zip archive has a checksum for each of its members; the archive's comment says which run wrote it.
"""

import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import DataError
from evenly.files.numpy_files import read_npz
from evenly.records.run import Run

_MARK = "evenly run "


def write_arrays(run: Run, name: str, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write the arrays to the artefact `name` of a run, compressed, whole or not at all, and never as a pickle."""
    with run.replacing(name) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        # Not numpy.savez_compressed, which cannot write an array that is called `file`.
        for key, array in arrays.items():
            with archive.open(f"{key}.npy", "w") as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)
        archive.comment = f"{_MARK}{_identity(run)}".encode()


def read_arrays(run: Run, name: str, *, advice: str) -> dict[str, NDArray[Any]]:
    """The arrays that `write_arrays` wrote for this run; the file of another run is refused."""
    path = run.file(name)
    arrays = read_npz(path, advice=advice)
    with zipfile.ZipFile(path) as archive:
        mark = archive.comment.decode(errors="replace")
    # A file of evenly 0.1 has no comment: nothing is known against it.
    if mark.startswith(_MARK) and mark.removeprefix(_MARK) != _identity(run):
        raise DataError(f"{path} was written by run {mark.removeprefix(_MARK)}, not by run {_identity(run)}. {advice}")
    return arrays


def _identity(run: Run) -> str:
    """What names a run whatever its folder is called now."""
    return str(run.identity["id"]) if run.identity is not None else run.id
