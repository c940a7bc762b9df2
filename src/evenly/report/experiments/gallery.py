"""The easiest and hardest examples of every class, as pictures small enough for one file."""

import base64
import csv
import io
import struct
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenly.report.blocks import Gallery, Picture, Shelf

Array = NDArray[Any]
EACH = 8  # at either end of a class
MOST_BYTES = 3_000_000  # of all pictures of a run
MOST_LISTED = 2000  # examples in the CSV of a page; `separation.csv` beside the run has all
EXACT_BYTES = 1_000_000  # of pixels: up to here pictures are kept as they are
LOSSLESS = 40 * 40  # pixels up to which a grey picture is kept exactly in any number


def gallery(
    examples: Mapping[str, Array],
    names: Mapping[int, str],
    *,
    each: int = EACH,
    called: str = "",
    late: Mapping[int, tuple[int, float]] | None = None,
    most_bytes: int = MOST_BYTES,
) -> Gallery | None:
    """Shelves of the `each` easiest and hardest examples of every class, with loss and prediction.

    `called` names the run of the early losses; `late` has the class and the probability that the trained network
    predicts, by the index of the example.

    >>> arrays = {"index": [4, 5], "label": [0, 0], "predicted": [0, 1], "loss": [0.1, 2.0], "hard": [0, 1],
    ...           "suspect": [0, 1], "text": ["fine", "odd"]}
    >>> made = gallery({name: np.array(values) for name, values in arrays.items()}, {0: "cat", 1: "dog"})
    >>> made.shelves[0].rows["hardest"][0].caption
    'loss 2.00, taken for dog'
    """
    labels = examples.get("label")
    if labels is None or not len(labels):
        return None
    if "pictures" in examples:
        # Move channels last, as pictures are encoded, for all at once.
        examples = dict(examples) | {"pictures": np.ascontiguousarray(np.moveaxis(examples["pictures"], 1, -1))}
    shelves, used = [], 0
    classes = [int(label) for label in np.unique(labels)]
    for label in classes:
        rows = np.flatnonzero(labels == label)
        rows = rows[np.argsort(examples["loss"][rows], kind="stable")]
        ends = {"easiest": rows[: min(each, (len(rows) + 1) // 2)], "hardest": rows[::-1][: min(each, len(rows) // 2)]}
        strips = {
            name: [_picture(examples, int(row), names, late or {}) for row in chosen] for name, chosen in ends.items()
        }
        used += sum(len(picture.source) for pictures in strips.values() for picture in pictures)
        if used > most_bytes:
            break
        shelves.append(Shelf(names.get(label, str(label)), strips))
    what = "pictures" if "pictures" in examples else "examples"
    of = f" of {called}" if called else ""
    caption = f"For each class the {what} with the lowest and with the highest early loss{of}."
    caption += " Choose one to enlarge it and to see why it is hard." * ("pictures" in examples)
    if examples["suspect"].any():
        caption += " Some look mislabelled: the early network is sure of another class."
    if len(shelves) < len(classes):
        caption += f" The first {len(shelves):,} of {len(classes):,} classes are shown, to keep the page small."
    return Gallery(shelves, caption)


def hard_examples_csv(examples: Mapping[str, Array], names: Mapping[int, str], separated: str) -> str:
    """The hard and the suspect examples as CSV, from the pictures that are kept and from the text of `separation.csv`.

    >>> kept = {"index": np.array([3]), "suspect": np.array([True]), "predicted": np.array([1]), "label": np.array([0])}
    >>> rows = "index,label,hard,loss\\n3,0,1,2.5\\n4,0,0,0.1\\n"
    >>> print(hard_examples_csv(kept, {0: "cat", 1: "dog"}, rows), end="")
    index,class,loss,suspect,predicted early,file
    3,cat,2.5,yes,dog,
    """
    known = {int(index): row for row, index in enumerate(examples["index"])}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["index", "class", "loss", "suspect", "predicted early", "file"])
    hard = [row for row in csv.DictReader(io.StringIO(separated)) if row["hard"] == "1"]
    for row in sorted(hard, key=lambda row: -float(row["loss"]))[:MOST_LISTED]:
        at = known.get(int(row["index"]))
        early = names.get(int(examples["predicted"][at]), int(examples["predicted"][at])) if at is not None else ""
        suspect = "yes" if at is not None and examples["suspect"][at] else ""
        file = str(examples["files"][at]) if at is not None and "files" in examples else ""
        label = int(row["label"])
        writer.writerow([row["index"], names.get(label, label), row["loss"], suspect, early, file])
    return text.getvalue()


def data_uri(picture_HWC: Array, *, exact: bool = False) -> str:
    """A picture as a data URI: a high-quality JPEG, unless it is tiny and grey or must be `exact`.

    >>> data_uri(np.zeros((8, 8, 1), np.uint8)).startswith("data:image/png;base64,")
    True
    """
    from markupsafe import Markup

    kind, data = ("png", _png(picture_HWC)) if exact else _compress(picture_HWC)
    # Nothing in base64 needs escaping, and scanning half a megabyte takes as long as encoding it.
    return Markup(f"data:image/{kind};base64,{base64.b64encode(data).decode()}")


def _png(picture_HWC: Array) -> bytes:
    """A PNG with uncompressed pixels, since compressing thousands would take long."""
    height, width, channels = picture_HWC.shape
    colours = 1 if channels == 1 else 3
    lines = np.zeros((height, 1 + width * colours), np.uint8)  # each row begins with a zero: no filter
    lines[:, 1:] = picture_HWC[..., :colours].reshape(height, -1)
    header = struct.pack(">IIBBBBB", width, height, 8, 0 if colours == 1 else 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(lines.tobytes(), 0)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks
    )


def _compress(picture_HWC: Array) -> tuple[str, bytes]:
    """The picture as a small file: its type and its bytes."""
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


def _picture(
    examples: Mapping[str, Array], row: int, names: Mapping[int, str], late: Mapping[int, tuple[int, float]]
) -> Picture:
    def name(label: int) -> str:
        return names.get(label, str(label))

    def known(column: str) -> Any:
        return examples[column][row] if column in examples else None

    label, predicted, index = (int(examples[column][row]) for column in ("label", "predicted", "index"))
    loss, probability = float(examples["loss"][row]), known("probability")
    sure = f" ({probability:.2f})" if probability is not None else ""
    caption = f"loss {loss:.2f}" + (f", taken for {name(predicted)}{sure}" if predicted != label else "")
    suspect = bool(examples["suspect"][row])
    details = {"index": str(index)}
    if known("files") is not None:
        details["file"] = str(known("files"))
    details |= {"label": name(label), "early network": f"{name(predicted)}{sure}"}
    if index in late:
        details["trained network"] = f"{name(late[index][0])} ({late[index][1]:.2f})"
    details["early loss"] = f"{loss:.4g} nats, called {'hard' if examples['hard'][row] else 'easy'}"
    if known("nearest") is not None and int(known("nearest")) >= 0:
        details["nearest easy example"] = f"number {int(known('nearest'))}, a {name(int(known('nearest_label')))}"
    alt = f"Example {index} of class {name(label)}: {caption}" + (", check the label" * suspect)
    if "pictures" in examples:
        exact = examples["pictures"].nbytes <= EXACT_BYTES
        return Picture(
            caption, alt, source=data_uri(examples["pictures"][row], exact=exact), suspect=suspect, details=details
        )
    text = str(examples["text"][row]) if "text" in examples else f"example {index}"
    return Picture(caption, alt, text=text, suspect=suspect)
