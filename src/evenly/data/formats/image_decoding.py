"""Decode an image file, or say why it does not decode."""

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple

import torch
from PIL import Image, UnidentifiedImageError

from evenly.errors import DataError, EvenlyError
from evenly.files.numpy_files import ALLOWANCE
from evenly.files.regular import open_regular
from evenly.progress import Bar

# The formats that are decoded, whatever a file's name: others of Pillow's start programs or are not for photos.
FORMATS = ("JPEG", "PNG", "BMP", "DIB", "GIF", "WEBP", "TIFF", "PPM")
VERIFY = "`evenly data verify` lists all that is wrong with a folder at once."
_BYTES_PER_PIXEL = 4  # of a decoded image, whatever its mode
_NAMED = 3  # files that a sentence names before it counts the rest


class Broken(NamedTuple):
    """An image file that does not decode, and why."""

    path: Path
    reason: str


def decode(path: Path, mode: Literal["RGB", "L"] = "RGB") -> Image.Image:
    """The image at `path`, fully decoded as `mode`; a `DataError` that names the file if it cannot be.

    >>> decode(Path("none.png"))
    Traceback (most recent call last):
    evenly.errors.DataError: none.png: no such image file. ...
    """
    try:
        with opened_image(path) as image:
            if fault := _depth_fault(image):
                raise DataError(
                    f"{path}: has {fault}; only 8-bit images are read. Convert it to 8 bits, or give the data as .npz "
                    "arrays."
                )
            return as_mode(image, mode)
    except EvenlyError:
        raise
    except Exception as error:  # Pillow's parsers raise whatever damaged bytes lead them to
        raise DataError(
            f"{path}: does not decode as an image ({reason_of(error)}). Replace it, or leave such files out with "
            f"--skip-broken, in Python skip_broken=True. {VERIFY}"
        ) from error


def as_mode(image: Image.Image, mode: Literal["RGB", "L"]) -> Image.Image:
    """The image as `mode`; a `DataError` for one of more than 8 bits, of which Pillow would cut off all above 255.

    >>> as_mode(Image.new("I;16", (1, 1), 1000), "L")
    Traceback (most recent call last):
    evenly.errors.DataError: more than 8 bits per pixel (mode I;16); scale it to 8 bits, or give an array
    """
    if fault := _depth_fault(image):
        raise DataError(f"{fault}; scale it to 8 bits, or give an array")
    # Pillow warns when transparency is dropped from a palette image in one step.
    whole = image.convert("RGBA") if "transparency" in image.info else image
    return whole.convert(mode)


def _depth_fault(image: Image.Image) -> str | None:
    return f"more than 8 bits per pixel (mode {image.mode})" if image.mode.startswith(("I", "F")) else None


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


def size_of(path: Path) -> tuple[int, int]:
    """Height and width from the header alone."""
    try:
        with opened_image(path) as image:
            return image.height, image.width
    except Exception:  # the same failure again, with the error of `decode`
        whole = decode(path)
        return whole.height, whole.width


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


def _fault(path: Path) -> str | None:
    try:
        with opened_image(path) as image:
            image.draft("RGB", (1, 1))
            image.load()
    except DataError as error:  # a sentence about the path, and then its remedy
        return str(error).removeprefix(f"{path}: ").removeprefix(f"{path} ").partition(". ")[0].rstrip(".")
    except Exception as error:  # as in `decode`
        return reason_of(error)
    return _depth_fault(image)


def scan_sizes(paths: Sequence[Path], wanted: tuple[int, int]) -> list[Broken]:
    """The files that are not of the `wanted` height and width; only headers are read."""
    with ThreadPoolExecutor(max(torch.get_num_threads(), 1)) as pool:
        sizes = pool.map(size_of, paths)
        return [Broken(path, f"{size[0]}×{size[1]}") for path, size in zip(paths, sizes, strict=True) if size != wanted]


def describe_broken(broken: Sequence[Broken], *, root: Path = Path()) -> str:
    """The first few of these images, relative to `root`, each with its reason, and how many more there are.

    >>> describe_broken([Broken(Path(f"pets/{i}.png"), "cut short") for i in range(5)], root=Path("pets"))
    '0.png (cut short), 1.png (cut short), 2.png (cut short) and 2 more'
    """
    names = [path.relative_to(root) if path.is_relative_to(root) else path for path, _ in broken[:_NAMED]]
    head = ", ".join(f"{name} ({reason})" for name, (_, reason) in zip(names, broken, strict=False))
    return f"{head} and {len(broken) - _NAMED:,} more" if len(broken) > _NAMED else head


def describe_undecodable(broken: Sequence[Broken], *, root: Path = Path()) -> str:
    """What an error says about images that do not decode.

    >>> describe_undecodable([Broken(Path("cat.png"), "cut short")])
    '1 image does not decode: cat.png (cut short). Replace such files, or leave them out with --skip-broken, ...'
    """
    count = "1 image does" if len(broken) == 1 else f"{len(broken):,} images do"
    return (
        f"{count} not decode: {describe_broken(broken, root=root)}. Replace such files, or leave them out with "
        "--skip-broken, in Python skip_broken=True."
    )


def reason_of(error: Exception) -> str:
    """Why an image does not decode, in words."""
    if isinstance(error, UnidentifiedImageError):  # its own words repeat the path
        return "not in an image format that is known"
    if isinstance(error, MemoryError):
        return "it does not fit in memory"
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return "its header promises more pixels than images have; make it smaller"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__
