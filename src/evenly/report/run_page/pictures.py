"""The easiest and hardest examples of every class, as pictures small enough for one file."""

import base64
import io
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.report.blocks import Gallery, Picture, Shelf
from evenly.report.digits import told_apart

Array = NDArray[Any]
EACH = 8  # at either end of a class
MOST_BYTES = 3_500_000  # of all pictures together: a page stays well below 10 MB
LOSSLESS = 40 * 40  # pixels up to which a grey picture is kept exactly


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


def data_uri(picture_HWC: Array) -> str:
    """A picture as an address that holds it: exact where it is tiny and grey, else as a fine JPEG of half the size.

    >>> data_uri(np.zeros((8, 8, 1), np.uint8)).startswith("data:image/png;base64,")
    True
    """
    from PIL import Image

    height, width, channels = picture_HWC.shape
    mode = "L" if channels == 1 else "RGB"
    image = Image.frombytes(mode, (width, height), np.ascontiguousarray(picture_HWC[..., :3]))
    file = io.BytesIO()
    small = width * height <= LOSSLESS
    kind = "PNG" if small and mode == "L" else "JPEG"
    if kind == "PNG":
        image.save(file, kind, compress_level=1)
    else:
        image.save(file, kind, quality=92 if small else 82, subsampling=0 if small else 2)
    return f"data:image/{kind.lower()};base64,{base64.b64encode(file.getvalue()).decode()}"


def _picture(examples: Mapping[str, Array], row: int, names: Mapping[int, str], loss: str) -> Picture:
    label, said = int(examples["label"][row]), int(examples["predicted"][row])
    name = names.get(label, str(label))
    caption = f"loss {loss}"
    if said != label:
        caption += f", taken for {names.get(said, said)}"
    suspect = bool(examples["suspect"][row])
    alt = f"Example {int(examples['index'][row])} of class {name}: {caption}" + (", check the label" * suspect)
    if "pictures" in examples:
        return Picture(caption, alt, source=data_uri(examples["pictures"][row]), suspect=suspect)
    text = str(examples["text"][row]) if "text" in examples else f"example {int(examples['index'][row])}"
    return Picture(caption, alt, text=text, suspect=suspect)
