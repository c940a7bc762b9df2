"""Arrays beside a run: every flipped bit of their content and another run's file are refused."""

import shutil
import zipfile

import numpy as np
import pytest

from evenly.errors import DataError
from evenly.recipe import Recipe, from_mapping
from evenly.records.arrays import read_arrays, write_arrays
from evenly.training.train import train

SMALL = {"data": {"name": "parity", "options": {"dim": 5}}, "model": {"name": "mlp"}, "epochs": 1, "batch_size": 50}


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """Two runs that differ in their seed."""
    runs = tmp_path_factory.mktemp("runs")
    return [train(from_mapping(Recipe, {**SMALL, "seed": seed}), runs=runs, device="cpu", pace=0) for seed in (0, 1)]


def test_what_is_written_is_read_also_under_a_name_that_numpy_refuses(two):
    arrays = {"file": np.arange(3), "test.index": np.array(["a", "b"])}
    write_arrays(two[0], "some.npz", arrays)
    there = read_arrays(two[0], "some.npz", advice="")
    assert {name: values.tolist() for name, values in there.items()} == {"file": [0, 1, 2], "test.index": ["a", "b"]}
    with np.load(two[0].file("some.npz")) as plain:  # any reader of .npz files reads it
        assert plain["test.index"].tolist() == ["a", "b"]


def test_predictions_of_another_run_are_refused(two):
    mine, other = two
    kept = mine.file("predictions.npz").read_bytes()
    shutil.copy(other.file("predictions.npz"), mine.file("predictions.npz"))
    with pytest.raises(DataError, match=f"was written by run {other.identity['id']}, not by run {mine.identity['id']}"):
        read_arrays(mine, "predictions.npz", advice="")
    mine.file("predictions.npz").write_bytes(kept)
    assert read_arrays(mine, "predictions.npz", advice="")


def test_a_file_without_a_name_is_taken_as_one_of_evenly_0_1(two):
    np.savez(two[0].file("old.npz"), x=np.zeros(2))
    assert list(read_arrays(two[0], "old.npz", advice="")) == ["x"]


def test_a_flipped_bit_in_an_array_is_refused(two):
    write_arrays(two[0], "flip.npz", {"x": np.random.default_rng(0).integers(0, 255, 500, dtype=np.uint8)})
    path = two[0].file("flip.npz")
    with zipfile.ZipFile(path) as archive:
        (member,) = archive.infolist()
    content = bytearray(path.read_bytes())
    content[member.header_offset + 30 + len(member.filename) + member.compress_size // 2] ^= 1
    path.write_bytes(content)
    with pytest.raises(DataError, match="cannot be read"):
        read_arrays(two[0], "flip.npz", advice="")
