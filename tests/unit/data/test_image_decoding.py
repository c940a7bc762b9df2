"""Images of every mode, images too large for their file, and files that only look like images."""

import os
from pathlib import Path

import pytest
from PIL import Image

from evenly.data import load
from evenly.data.formats.image_decoding import decode, scan
from evenly.errors import DataError


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


def test_the_reason_of_a_file_that_cannot_be_opened_does_not_repeat_its_path(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")
    reasons = [reason for _, reason in scan([tmp_path / "gone.png", tmp_path / "pipe.png"])]
    assert reasons == ["no such image file", "is a named pipe, not a regular file"]
