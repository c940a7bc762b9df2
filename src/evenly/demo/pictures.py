"""Pictures of the demo's examples by class: patches as small heat maps, digits as they are."""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from evenly.demo.findings import Plain
from evenly.report.blocks import Picture, Shelf
from evenly.report.experiments.gallery import data_uri

Pixels = NDArray[np.uint8]


def shelves(examples: Sequence[Plain], picture: Callable[[Plain], Pixels], *, what: str) -> list[Shelf]:
    """A shelf for every class, what was called easy above what was called hard; `picture` makes pixels of one."""
    shelves = []
    for label in dict.fromkeys(example["label"] for example in examples):
        rows = {}
        for hard, row in ((False, "called easy"), (True, "called hard")):
            own = [example for example in examples if example["label"] == label and example["hard"] == hard]
            rows[row] = [
                Picture(
                    f"loss {example['loss']:.2f}" + (", easy part missing" if example["lacking"] else ""),
                    f"{what} of class {label}, {row}" + (", without its easy part" if example["lacking"] else ""),
                    data_uri(_channels_last(picture(example)), exact=True),
                )
                for example in own
            ]
        shelves.append(Shelf(f"class {label}".replace("-", "−"), rows))
    return shelves


def heat(example: Plain) -> Pixels:
    """Blue below zero, vermilion above, white at zero; ±1 is full."""
    value = np.clip(np.asarray(example["patches"], float), -1, 1)[..., None]
    ends = np.where(value < 0, (0, 112, 186), (217, 72, 15))
    size = np.abs(value) ** 0.6  # the difficult feature should be seen beside the easy one
    return np.repeat((255 * (1 - size) + ends * size).astype(np.uint8), 4, axis=0)


def grey(example: Plain) -> Pixels:
    """The pixels as they are."""
    return np.asarray(example["pixels"], np.uint8)


def _channels_last(pixels: Pixels) -> Pixels:
    return pixels[..., None] if pixels.ndim == 2 else pixels
