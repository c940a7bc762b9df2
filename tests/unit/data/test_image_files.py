"""Images decoded from their files when they are asked for."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader

from evenly.data import contents
from evenly.data.formats.image_decoding import decode, scan
from evenly.data.formats.image_files import ImageFiles, open_images
from evenly.data.labelled import Labelled, Lazy
from evenly.errors import DataError, UsageError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for number in range(5):
        pixels = np.random.default_rng(number).integers(0, 256, (4, 6, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / f"{number}.png")
    return tmp_path


NAMES = [f"{number}.png" for number in range(5)]


def test_pixels_are_those_that_were_saved(folder: Path) -> None:
    files = open_images(folder, NAMES)
    assert isinstance(files, Lazy)
    expected = np.random.default_rng(3).integers(0, 256, (4, 6, 3), dtype=np.uint8).transpose(2, 0, 1)
    assert files.shape == (3, 4, 6)
    assert np.array_equal(files.read([3, 0])[0].numpy(), expected)
    assert torch.equal(files.select([4, 3]).read([1])[0], files.read([3])[0])


def test_threads_give_what_one_thread_gives(folder: Path) -> None:
    files = open_images(folder, NAMES * 5)
    single = files.read(range(25))
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        assert torch.equal(files.read(range(25)), single)
    finally:
        torch.set_num_threads(before)


def test_resizing_averages_over_the_pixels_it_covers(tmp_path: Path) -> None:
    stripes = np.zeros((64, 64), np.uint8)
    stripes[:, ::2] = 255
    Image.fromarray(stripes).save(tmp_path / "a.png")
    small = open_images(tmp_path, ["a.png"], size=(8, 16), mode="L").read([0])
    assert small.shape == (1, 1, 8, 16)
    # Without antialiasing a pixel would be one stripe, 0 or 255.
    assert ((small > 110) & (small < 145)).all()


@pytest.mark.parametrize("before", ["nothing", "resized", "leaving broken files out"])
def test_sizes_are_checked_whatever_the_files_were_checked_for_before(
    before: str, folder: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVENLY_CACHE", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setattr(contents, "_is_recent", lambda seen: False)
    contents._parse.cache_clear()
    Image.new("RGB", (7, 4)).save(folder / "2.png")
    if before == "resized":
        assert len(open_images(folder, NAMES, size=(4, 6)).contents()) == 5
    files = open_images(folder, NAMES, scanned=before == "leaving broken files out")
    for _ in range(2):
        with pytest.raises(DataError, match=r"1 of 5 images is not 4×6 as the first is: 2.png \(4×7\)"):
            files.contents()


def test_image_of_another_size_is_named_with_both_sizes(folder: Path) -> None:
    Image.new("RGB", (7, 4)).save(folder / "2.png")
    files = open_images(folder, NAMES)
    with pytest.raises(DataError, match=r"2.png is 4×7 pixels where the first image is 4×6.*size="):
        files.read([1, 2])
    assert open_images(folder, NAMES, size=4).read([1, 2]).shape == (2, 3, 4, 4)


@pytest.mark.parametrize("size", [0, (3, -1)])
def test_size_below_one_pixel_is_refused(folder: Path, size: int) -> None:
    with pytest.raises(UsageError, match="at least 1 pixel"):
        open_images(folder, NAMES, size=size)


def test_grey_palette_and_transparent_images_become_rgb(tmp_path: Path) -> None:
    Image.new("L", (2, 2), 7).save(tmp_path / "grey.png")
    Image.new("RGBA", (2, 2), (1, 2, 3, 128)).save(tmp_path / "alpha.png")
    palette = Image.new("P", (2, 2), 1)
    palette.putpalette([0, 0, 0, 9, 8, 7])
    palette.save(tmp_path / "palette.png", transparency=b"\x80\x80")
    read = open_images(tmp_path, ["grey.png", "alpha.png", "palette.png"]).read([0, 1, 2])
    assert read[:, :, 0, 0].tolist() == [[7, 7, 7], [1, 2, 3], [9, 8, 7]]


def test_sixteen_bit_image_is_refused_rather_than_clipped(tmp_path: Path) -> None:
    Image.fromarray(np.full((2, 2), 40_000, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(DataError, match="more than 8 bits per pixel"):
        decode(tmp_path / "deep.png")
    assert [b.path.name for b in scan([tmp_path / "deep.png"])] == ["deep.png"]


def test_broken_image_is_named_with_the_way_out(folder: Path) -> None:
    (folder / "1.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"1.png: does not decode as an image .*skip_broken=True.*evenly data verify"):
        open_images(folder, NAMES).read([0, 1])
    (folder / "2.png").unlink()
    with pytest.raises(DataError, match=r"2.png: no such image file"):
        open_images(folder, NAMES).read([2])
    (folder / "0.png").write_bytes(b"")
    with pytest.raises(DataError, match=r"0.png: does not decode"):
        open_images(folder, NAMES)


def test_scan_finds_truncated_files_of_every_format(tmp_path: Path) -> None:
    noise = Image.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8))
    whole, cut = [], []
    for suffix in ("jpg", "png", "bmp", "webp", "gif"):
        path = tmp_path / f"whole.{suffix}"
        noise.save(path)
        whole.append(path)
        shorter = tmp_path / f"cut.{suffix}"
        shorter.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
        cut.append(shorter)
    found = scan(whole + cut)
    assert [broken.path for broken in found] == cut
    assert all(broken.reason for broken in found)
    for path in cut:
        with pytest.raises(DataError, match=path.name):
            decode(path)


def test_identity_changes_with_names_sizes_and_decoding_but_not_with_the_place(folder: Path, tmp_path: Path) -> None:
    def digest(files: ImageFiles) -> bytes:
        return b"|".join(files.identity())

    files = open_images(folder, NAMES)
    first = digest(files)
    assert digest(open_images(folder, NAMES[::-1])) != first
    assert digest(open_images(folder, NAMES, size=3)) != first
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in NAMES:
        (elsewhere / name).write_bytes((folder / name).read_bytes())
    assert digest(open_images(elsewhere, NAMES)) == first
    with (folder / "4.png").open("ab") as file:
        file.write(b"x")
    assert digest(files) != first


def test_workers_of_a_dataloader_read_what_the_main_process_reads(folder: Path) -> None:
    data = Labelled(open_images(folder, NAMES), torch.tensor([0, 1, 0, 1, 0]), ("a", "b"))
    assert torch.equal(pickle.loads(pickle.dumps(data)).gather([2]), data.gather([2]))
    loaded = torch.cat([x for x, _ in DataLoader(data, batch_size=2, num_workers=1)])
    assert torch.equal(loaded, data.gather(range(5)).float() / 255)
