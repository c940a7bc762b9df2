"""The easiest and hardest examples of every class, as pictures small enough for one file."""

import base64
import io
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.report.blocks import Gallery, Picture, Shelf
from evenly.report.digits import told_apart

Array = NDArray[Any]
EACH = 8  # at either end of a class
MOST_BYTES = 3_500_000  # of all pictures together: a page stays well below 10 MB
EXACT_BYTES = 1_000_000  # of pixels: up to here pictures are kept as they are
LOSSLESS = 40 * 40  # pixels up to which a grey picture is kept exactly in any number


def gallery(
    examples: Mapping[str, Array], names: Mapping[int, str], *, each: int = EACH, whose: str = ""
) -> Gallery | None:
    """Shelves of the `each` easiest and hardest examples of every class, with loss and prediction.

    `whose` says which run the early losses are of.

    >>> arrays = {"index": [4, 5], "label": [0, 0], "predicted": [0, 1], "loss": [0.1, 2.0], "hard": [0, 1],
    ...           "suspect": [0, 1], "text": ["fine", "odd"]}
    >>> made = gallery({name: np.array(values) for name, values in arrays.items()}, {0: "cat", 1: "dog"})
    >>> made.shelves[0].rows["hardest"][0].caption
    'loss 2, taken for dog'
    """
    labels = examples.get("label")
    if labels is None or not len(labels):
        return None
    if "pictures" in examples:
        # Channels last, as pictures are written, for all at once.
        examples = dict(examples) | {"pictures": np.ascontiguousarray(np.moveaxis(examples["pictures"], 1, -1))}
    shelves, used = [], 0
    classes = [int(label) for label in np.unique(labels)]
    for label in classes:
        rows = np.flatnonzero(labels == label)
        rows = rows[np.argsort(examples["loss"][rows], kind="stable")]
        ends = {"easiest": rows[: min(each, (len(rows) + 1) // 2)], "hardest": rows[::-1][: min(each, len(rows) // 2)]}
        made = {}
        for name, chosen in ends.items():
            losses = told_apart([float(loss) for loss in examples["loss"][chosen]])
            made[name] = [_picture(examples, int(row), names, loss) for row, loss in zip(chosen, losses, strict=True)]
        used += sum(len(picture.source) for pictures in made.values() for picture in pictures)
        if used > MOST_BYTES:
            break
        shelves.append(Shelf(names.get(label, str(label)), made))
    what = "pictures" if "pictures" in examples else "examples"
    of = f" of {whose}" if whose else ""
    caption = f"For each class the {what} with the lowest and with the highest early loss{of}."
    if examples["suspect"].any():
        caption += " Some look mislabelled: the early network is sure of another class."
    if len(shelves) < len(classes):
        caption += f" The first {len(shelves):,} of {len(classes):,} classes are shown, to keep the page small."
    return Gallery(shelves, caption)


def data_uri(picture_HWC: Array, *, exact: bool = False) -> str:
    """A picture as an address that holds it: as a fine JPEG, unless it is tiny and grey or shall be `exact`.

    >>> data_uri(np.zeros((8, 8, 1), np.uint8)).startswith("data:image/png;base64,")
    True
    """
    from markupsafe import Markup

    kind, data = ("png", _png(picture_HWC)) if exact else _compressed(picture_HWC)
    # Nothing in base64 needs escaping, and looking for it in half a megabyte takes as long as encoding it.
    return Markup(f"data:image/{kind};base64,{base64.b64encode(data).decode()}")


def _png(picture_HWC: Array) -> bytes:
    """A PNG whose pixels are stored as they are, which takes no time to speak of: compressing thousands would."""
    height, width, channels = picture_HWC.shape
    colours = 1 if channels == 1 else 3
    lines = np.zeros((height, 1 + width * colours), np.uint8)  # each begins with a zero: nothing is predicted
    lines[:, 1:] = picture_HWC[..., :colours].reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if colours == 1 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 0)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def _compressed(picture_HWC: Array) -> tuple[str, bytes]:
    """The kind of a small file of the picture, and its bytes."""
    from PIL import Image

    height, width, channels = picture_HWC.shape
    mode = "L" if channels == 1 else "RGB"
    image = Image.frombytes(mode, (width, height), np.ascontiguousarray(picture_HWC[..., :3]))
    file = io.BytesIO()
    small = width * height <= LOSSLESS
    if small and mode == "L":
        image.save(file, "PNG", compress_level=1)
        return "png", file.getvalue()
    image.save(file, "JPEG", quality=92 if small else 82, subsampling=0 if small else 2)
    return "jpeg", file.getvalue()


def _picture(examples: Mapping[str, Array], row: int, names: Mapping[int, str], loss: str) -> Picture:
    label, said = int(examples["label"][row]), int(examples["predicted"][row])
    name = names.get(label, str(label))
    caption = f"loss {loss}"
    if said != label:
        caption += f", taken for {names.get(said, said)}"
    suspect = bool(examples["suspect"][row])
    alt = f"Example {int(examples['index'][row])} of class {name}: {caption}" + (", check the label" * suspect)
    if "pictures" in examples:
        exact = examples["pictures"].nbytes <= EXACT_BYTES
        return Picture(caption, alt, source=data_uri(examples["pictures"][row], exact=exact), suspect=suspect)
    text = str(examples["text"][row]) if "text" in examples else f"example {int(examples['index'][row])}"
    return Picture(caption, alt, text=text, suspect=suspect)
