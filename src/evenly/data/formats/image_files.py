"""Images that stay in their files until they are read.

Shapes: N images, C channels, H × W pixels.
"""

import contextlib
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError
from torch import Tensor

from evenly.data.contents import digests
from evenly.errors import DataError, EvenlyError, UsageError
from evenly.files.names import Names
from evenly.files.numpy_files import ALLOWANCE
from evenly.files.regular import open_regular
from evenly.progress import Bar

# The formats that are decoded, whatever a file's name: others of Pillow's start programs or are not for photos.
FORMATS = ("JPEG", "PNG", "BMP", "DIB", "GIF", "WEBP", "TIFF", "PPM")
LARGEST_SIDE = 4096  # without `size` all images keep the size of the first; a larger one must be requested
_BYTES_PER_PIXEL = 4  # of a decoded image, whatever its mode
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
VERIFY = "`evenly data verify` lists all that is wrong with a folder at once."
Size = int | tuple[int, int]


class Broken(NamedTuple):
    """An image file that does not decode, and why."""

    path: Path
    reason: str


@dataclass(frozen=True, eq=False)
class ImageFiles:
    """Image files decoded on demand to uint8 C×H×W, all of one size (a `Lazy`).

    A batch is decoded by as many threads as torch may use: all cores in the main process, one in a worker of a
    `DataLoader`. Orientation tags are not applied and transparency is dropped, as torchvision's readers do.

    Parameters
    ----------
    root, names
        The folder, and the files relative to it.
    size
        Height and width, as `open_images` chose them.
    resize
        Whether images of another size are resized (bilinear, antialiased); if not, they are an error.
    mode
        `RGB` or `L`, three channels or one.
    dropped
        Broken files that were left out when this was made (see `evenly.data.formats.listing.dropped`).

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> Image.new("RGB", (6, 4), "red").save(folder / "a.png")
    >>> files = open_images(folder, ["a.png"])
    >>> files.shape, files.read([0])[0, :, 0, 0].tolist()
    ((3, 4, 6), [255, 0, 0])
    """

    root: Path
    names: Names
    size: tuple[int, int]
    resize: bool = False
    mode: Literal["RGB", "L"] = "RGB"
    dropped: tuple[Broken, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def shape(self) -> tuple[int, ...]:
        """C×H×W."""
        return (len(self.mode), *self.size)

    def read(self, positions: Sequence[int]) -> Tensor:
        """The images at `positions`, decoded and stacked: uint8 N×C×H×W."""
        try:
            images = np.empty((len(positions), *self.shape), np.uint8)
        except (MemoryError, ValueError) as error:
            raise UsageError(
                f"{len(positions):,} images of {'×'.join(map(str, self.shape))} do not fit in memory: give a smaller "
                "size=, or smaller batches."
            ) from error
        threads = min(torch.get_num_threads(), len(positions))
        if threads <= 1:
            for target, position in zip(images, positions, strict=True):
                self._decode_into(target, position)
        else:
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(self._decode_into, images, positions))
        return torch.from_numpy(images)

    def select(self, positions: Sequence[int]) -> "ImageFiles":
        """The files at `positions`."""
        return replace(self, names=self.names.select(positions))

    def identity(self) -> Iterator[bytes]:
        """Each file's name and content, and how it is decoded."""
        yield repr((self.shape, self.resize)).encode()
        for name, digest in zip(self.names, digests(self.root, self.names), strict=True):
            yield os.fsencode(name) + b"\0" + digest.encode() + b"\0"

    def _decode_into(self, target_CHW: NDArray[np.uint8], position: int) -> None:
        path = self.root / self.names[position]
        height, width = self.size
        image = decode(path, self.mode)
        if image.size != (width, height):
            if not self.resize:
                raise DataError(
                    f"{path} is {image.height}×{image.width} pixels where the first image is {height}×{width}. "
                    f"Give a size to resize all images to: --set size=[{height},{width}], in Python "
                    f"size=({height}, {width}). {VERIFY}"
                )
            image = image.resize((width, height), Image.Resampling.BILINEAR)
        pixels = np.asarray(image)
        target_CHW[...] = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)


def open_images(
    root: Path,
    names: Sequence[str],
    *,
    size: Size | None = None,
    mode: Literal["RGB", "L"] = "RGB",
    dropped: Sequence[Broken] = (),
) -> ImageFiles:
    """`ImageFiles` over `names`, resized to `size`; without one, all must have the size of the first.

    >>> open_images(Path("x"), ["a.png"], size=32).shape
    (3, 32, 32)
    """
    if size is not None:
        if not isinstance(size, int) and len(size) != 2:
            raise UsageError(f"size={size!r}: give one number, or height and width, such as size=[64, 96].")
        height_width = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
        if min(height_width) < 1:
            raise UsageError(f"size={size!r}: height and width must be at least 1 pixel.")
    elif names:
        height_width = _size_of(Path(root) / names[0])
        if max(height_width) > LARGEST_SIDE:
            height, width = height_width
            raise DataError(
                f"{Path(root) / names[0]} is {height}×{width} pixels, and all images are kept in the size of the "
                "first. Give a size to resize them to: --set size=224, in Python size=224."
            )
    else:
        raise DataError(f"{root}: no images, so their size is unknown.")
    kept = names if isinstance(names, Names) else Names(names)
    return ImageFiles(Path(root), kept, height_width, size is not None, mode, tuple(dropped))


def decode(path: Path, mode: Literal["RGB", "L"] = "RGB") -> Image.Image:
    """The image at `path`, fully decoded as `mode`; a `DataError` that names the file if it cannot be.

    >>> decode(Path("none.png"))
    Traceback (most recent call last):
    evenly.errors.DataError: none.png: no such image file. ...
    """
    try:
        with opened_image(path) as image:
            if image.mode.startswith(("I", "F")):
                raise DataError(
                    f"{path}: has more than 8 bits per pixel (mode {image.mode}); only 8-bit images are read. "
                    "Convert it to 8 bits, or give the data as .npz arrays."
                )
            # Pillow warns when transparency is dropped from a palette image in one step.
            whole = image.convert("RGBA") if "transparency" in image.info else image
            return whole.convert(mode)
    except EvenlyError:
        raise
    except Exception as error:  # Pillow's parsers raise whatever damaged bytes lead them to
        raise DataError(
            f"{path}: does not decode as an image ({reason_of(error)}). Replace it, or leave such files out with "
            f"--skip-broken, in Python skip_broken=True. {VERIFY}"
        ) from error


@contextlib.contextmanager
def opened_image(path: Path) -> Iterator[Image.Image]:
    """An image whose header has been read and is plausible for the size of its file; not decoded yet."""
    if not path.exists():
        raise DataError(f"{path}: no such image file. Was it moved since it was listed?")
    with open_regular(path) as file, Image.open(file, formats=FORMATS) as image:
        # A damaged file must be detected before it takes more than an allowance and twice its size of memory.
        most = (2 * path.stat().st_size + ALLOWANCE) // _BYTES_PER_PIXEL
        if image.width * image.height > most:
            raise _TooLarge(
                f"{image.height}×{image.width} pixels are more than a file of its size is trusted with ({most:,}); "
                "make it smaller"
            )
        yield image


class _TooLarge(Exception):
    """A header that promises more pixels than the file can be trusted with."""


def scan(paths: Sequence[Path]) -> list[Broken]:
    """The files among `paths` that do not decode, each with the reason, found by a pool of threads.

    JPEGs are decoded at an eighth of their size, which still reads every byte.

    >>> import tempfile
    >>> bad = Path(tempfile.mkdtemp()) / "bad.png"
    >>> _ = bad.write_bytes(b"not an image")
    >>> [(path.name, reason) for path, reason in scan([bad])]
    [('bad.png', 'not in an image format that is known')]
    """
    broken = []
    with ThreadPoolExecutor(max(torch.get_num_threads(), 1)) as pool, Bar("checking images", total=len(paths)) as bar:
        for path, reason in zip(paths, pool.map(_fault, paths), strict=True):
            if reason is not None:
                broken.append(Broken(path, reason))
            bar.advance()
    return broken


def misfits(files: ImageFiles) -> list[Broken]:
    """The files that are not of the size of the first, where they are not resized; only headers are read.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for width in (4, 5):
    ...     Image.new("L", (width, 4)).save(folder / f"{width}.png")
    >>> [(path.name, reason) for path, reason in misfits(open_images(folder, ["4.png", "5.png"]))]
    [('5.png', '4×5')]
    """
    if files.resize:
        return []
    paths = [files.root / name for name in files.names]
    with ThreadPoolExecutor(max(torch.get_num_threads(), 1)) as pool:
        sizes = pool.map(_size_of, paths)
        return [
            Broken(path, f"{size[0]}×{size[1]}") for path, size in zip(paths, sizes, strict=True) if size != files.size
        ]


def _fault(path: Path) -> str | None:
    try:
        with opened_image(path) as image:
            image.draft("RGB", (1, 1))
            image.load()
    except Exception as error:  # as in `decode`
        return reason_of(error)
    return f"more than 8 bits per pixel (mode {image.mode})" if image.mode.startswith(("I", "F")) else None


def reason_of(error: Exception) -> str:
    """Why an image does not decode, in words."""
    if isinstance(error, UnidentifiedImageError):  # its own words repeat the path
        return "not in an image format that is known"
    if isinstance(error, MemoryError):
        return "it does not fit in memory"
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return "its header promises more pixels than images have; make it smaller"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _size_of(path: Path) -> tuple[int, int]:
    """Height and width from the header alone."""
    try:
        with opened_image(path) as image:
            return image.height, image.width
    except Exception:  # the same failure again, with the error of `decode`
        whole = decode(path)
        return whole.height, whole.width
