"""Pretrained weights that are missing are named with what to do."""

from pathlib import Path

import pytest

from evenly.errors import DataError
from evenly.papers.springer2024.image_training import weights_file


def test_weights_that_are_not_there_are_named_with_what_to_do(tmp_path):
    with pytest.raises(DataError, match=r"resnet18\.pth.*torch\.save"):
        weights_file("resnet18.pth", str(tmp_path))
    (tmp_path / "resnet18.pth").touch()
    assert Path(weights_file("resnet18.pth", str(tmp_path))) == tmp_path / "resnet18.pth"
