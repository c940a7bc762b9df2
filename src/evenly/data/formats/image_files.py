"""Images that stay in their files until they are read.

Shapes: N images, C channels, H × W pixels.
"""

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from evenly import memory
from evenly.data.contents import DECODES, file_states, refuse_changed
from evenly.data.formats.image_decoding import (
    VERIFY,
    Broken,
    decode,
    describe_broken,
    describe_undecodable,
    scan,
    scan_sizes,
    size_of,
)
from evenly.errors import DataError, UsageError
from evenly.files.names import Names

LARGEST_SIDE = 4096  # without `size` all images keep the size of the first; a larger one must be requested
SUFFIXES = (".jpg", ".jpeg", ".png", ".bmp", ".gif", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
Size = int | tuple[int, int]


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
        Broken files that were left out when this was made (see `evenly.data.formats.listing.list_dropped`).
    scanned
        Whether every file is known to decode.
    modified
        When each file was last written, once `contents` has looked: a file written to later is refused.

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
    scanned: bool = False
    modified: NDArray[np.int64] | None = None

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
        modified = self.modified[np.asarray(positions, np.int64)] if self.modified is not None else None
        return replace(self, names=self.names.select(positions), modified=modified)

    def identity(self) -> Iterator[bytes]:
        """Each file's name and content, and how it is decoded."""
        yield repr((self.shape, self.resize)).encode()
        for name, digest in zip(self.names, self.contents(), strict=True):
            yield os.fsencode(name) + b"\0" + digest.encode() + b"\0"

    def contents(self) -> list[str]:
        """A digest of the content of each file. Files that do not decode or have another size are refused, by name.

        Files that were read before and have not changed cost a stat. From now on, reading an image whose file was
        written to since is refused: these digests would not be of it.
        """
        needless = self.scanned and self.resize
        wanted = DECODES if self.resize else "×".join(map(str, self.size))
        states = file_states(self.root, self.names, check=None if needless else self._refuse_unusable, checked=wanted)
        object.__setattr__(self, "modified", np.fromiter((seen.modified for seen in states), np.int64, len(states)))
        return [seen.digest for seen in states]

    def _refuse_unusable(self, paths: Sequence[Path]) -> None:
        root = Path(os.path.abspath(self.root))
        if broken := [] if self.scanned else scan(paths):
            raise DataError(f"{self.root}: {describe_undecodable(broken, root=root)} {VERIFY}")
        if odd := [] if self.resize else scan_sizes(paths, self.size):
            height, width = self.size
            verb = "is" if len(odd) == 1 else "are"
            raise DataError(
                f"{self.root}: {len(odd):,} of {len(paths):,} images {verb} not {height}×{width} as the first is: "
                f"{describe_broken(odd, root=root)}. Give a size to resize all images to: "
                f"--set size=[{height},{width}], in Python size=({height}, {width}). {VERIFY}"
            )

    def _decode_into(self, target_CHW: NDArray[np.uint8], position: int) -> None:
        path = self.root / self.names[position]
        height, width = self.size
        image = decode(path, self.mode)
        if self.modified is not None:
            refuse_changed(path, int(self.modified[position]))
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


def height_and_width(size: Size) -> tuple[int, int]:
    """Both sides of a size that images are resized to.

    >>> height_and_width(32), height_and_width((64, 96))
    ((32, 32), (64, 96))
    """
    if not isinstance(size, int) and len(size) != 2:
        raise UsageError(f"size={size!r}: give one number, or height and width, such as size=[64, 96].")
    height, width = (size, size) if isinstance(size, int) else (int(size[0]), int(size[1]))
    if min(height, width) < 1:
        raise UsageError(f"size={size!r}: height and width must be at least 1 pixel.")
    memory.require(3 * height * width, f"An image of {height}×{width} (size={size!r})", "Give a smaller size.")
    return height, width


def open_images(
    root: Path,
    names: Sequence[str],
    *,
    size: Size | None = None,
    mode: Literal["RGB", "L"] = "RGB",
    dropped: Sequence[Broken] = (),
    scanned: bool = False,
) -> ImageFiles:
    """`ImageFiles` over `names`, resized to `size`; without one, all must have the size of the first.

    >>> open_images(Path("x"), ["a.png"], size=32).shape
    (3, 32, 32)
    """
    if size is not None:
        height_width = height_and_width(size)
    elif names:
        height_width = size_of(Path(root) / names[0])
        if max(height_width) > LARGEST_SIDE:
            height, width = height_width
            raise DataError(
                f"{Path(root) / names[0]} is {height}×{width} pixels, and all images are kept in the size of the "
                "first. Give a size to resize them to: --set size=224, in Python size=224."
            )
    else:
        raise DataError(f"{root}: no images, so their size is unknown.")
    kept = names if isinstance(names, Names) else Names(names)
    return ImageFiles(Path(root), kept, height_width, size is not None, mode, tuple(dropped), scanned)


def misfits(files: ImageFiles) -> list[Broken]:
    """The files that are not of the size of the first, where they are not resized; only headers are read.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> for width in (4, 5):
    ...     Image.new("L", (width, 4)).save(folder / f"{width}.png")
    >>> [(path.name, reason) for path, reason in misfits(open_images(folder, ["4.png", "5.png"]))]
    [('5.png', '4×5')]
    """
    return [] if files.resize else scan_sizes([files.root / name for name in files.names], files.size)
