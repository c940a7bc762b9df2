"""STL-10's column-major planes and labels from 1."""

from pathlib import Path

import numpy as np
import pytest
import torch

from evenly.data.formats.stl10 import stl10
from evenly.errors import DataError


@pytest.fixture
def written(tmp_path: Path) -> tuple[Path, np.ndarray]:
    folder = tmp_path / "stl10_binary"
    folder.mkdir()
    images = np.random.default_rng(0).integers(0, 256, (4, 3, 96, 96), dtype=np.uint8)
    for split in ("train", "test"):
        # As published: a plane is stored column by column, which is its transpose row by row.
        (folder / f"{split}_X.bin").write_bytes(images.transpose(0, 1, 3, 2).tobytes())
        (folder / f"{split}_y.bin").write_bytes(bytes([1, 10, 5, 1]))
    return tmp_path, images


def test_images_are_upright_and_labels_count_from_0(written: tuple[Path, np.ndarray]) -> None:
    root, images = written
    splits = stl10(root=root)
    assert torch.equal(splits.train.inputs, torch.from_numpy(images))
    assert splits.train.inputs.is_contiguous()
    assert splits["test"].labels.tolist() == [0, 9, 4, 0]
    assert splits.classes[9] == "truck"


def test_truncated_images_are_named_with_sizes(written: tuple[Path, np.ndarray]) -> None:
    path = written[0] / "stl10_binary" / "test_X.bin"
    path.write_bytes(path.read_bytes()[:-5])
    with pytest.raises(DataError, match=r"test_X.bin: truncated: expected 110,592 bytes .* 110,587 were found"):
        stl10(root=written[0])


def test_label_0_is_out_of_range(written: tuple[Path, np.ndarray]) -> None:
    (written[0] / "stl10_binary" / "train_y.bin").write_bytes(bytes([1, 0, 5, 1]))
    with pytest.raises(DataError, match="label 0 of example 1 is out of range, STL-10 has classes 1 to 10"):
        stl10(root=written[0])
