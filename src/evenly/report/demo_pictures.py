"""Pictures of the demo's examples by class: patches as small heat maps, digits as they are."""

import base64
import io
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from evenly.report.demo_findings import Plain
from evenly.report.digits import told_apart
from evenly.report.page import Picture, Shelf

Pixels = NDArray[np.uint8]


def shelves(examples: Sequence[Plain], picture: Callable[[Plain], Pixels], *, what: str) -> list[Shelf]:
    """A shelf for every class, what was called easy above what was called hard; `picture` makes pixels of one."""
    shelves = []
    for label in dict.fromkeys(example["label"] for example in examples):
        rows = {}
        for hard, row in ((False, "called easy"), (True, "called hard")):
            own = [example for example in examples if example["label"] == label and example["hard"] == hard]
            losses = told_apart([example["loss"] for example in own])
            rows[row] = [
                Picture(
                    f"loss {loss}" + (", easy part missing" if example["lacking"] else ""),
                    f"{what} of class {label}, {row}" + (", without its easy part" if example["lacking"] else ""),
                    _png(picture(example)),
                )
                for example, loss in zip(own, losses, strict=True)
            ]
        shelves.append(Shelf(f"class {label}", rows))
    return shelves


def heat(example: Plain) -> Pixels:
    """Blue below zero, vermilion above, white at zero; ±1 is full."""
    value = np.clip(np.asarray(example["patches"], float), -1, 1)[..., None]
    ends = np.where(value < 0, (0, 114, 178), (213, 94, 0))
    size = np.abs(value) ** 0.6  # the difficult feature should be seen beside the easy one
    return np.repeat((255 * (1 - size) + ends * size).astype(np.uint8), 4, axis=0)


def grey(example: Plain) -> Pixels:
    """The pixels as they are."""
    return np.asarray(example["pixels"], np.uint8)


def _png(pixels: Pixels) -> str:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()
