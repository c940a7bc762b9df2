"""A contact sheet of a data set: pictures per class, a scatter of planar features, or rows of numbers."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenly.errors import UsageError
from evenly.report.palette import SERIES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Array = NDArray[Any]


def contact_sheet(
    examples: Mapping[str, Array],
    *,
    title: str,
    captions: Mapping[str, Sequence[str]] | None = None,
) -> "Figure":
    """A figure of some examples of every class.

    `examples` maps each class name to an array with the examples first: N×C×H×W pictures (uint8, or float in
    [0, 1]) are shown as pictures, N×4 points as two scatter plots, anything else as rows of numbers.

    >>> figure = contact_sheet({"a": np.zeros((2, 1, 8, 8), np.uint8)}, title="digits")
    >>> len(figure.axes)
    2
    """
    if not examples:
        raise UsageError("there is no class to show: give at least one.")
    first = next(iter(examples.values()))
    if first.ndim == 4:
        return _pictures(examples, title, captions or {})
    if first.ndim == 2 and first.shape[1] == 4:
        return _scatter(examples, title)
    return _rows(examples, title)


def _figure(width: float, height: float, title: str) -> "Figure":
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    figure.suptitle(title, fontsize=10)
    return figure


def _pictures(examples: Mapping[str, Array], title: str, captions: Mapping[str, Sequence[str]]) -> "Figure":
    columns = max(len(pictures) for pictures in examples.values())
    height, width = next(iter(examples.values())).shape[2:]
    figure = _figure(1.2 + 0.75 * columns, 0.4 + 0.8 * len(examples) * max(height / width, 1), title)
    grid = figure.subplots(len(examples), columns, squeeze=False)
    for row, (name, pictures) in zip(grid, examples.items(), strict=True):
        for number, axes in enumerate(row):
            _bare(axes)
            if number < len(pictures):
                axes.imshow(_displayable(pictures[number]), cmap="gray", vmin=0, vmax=1, interpolation="nearest")
                if name in captions:
                    axes.set_title(captions[name][number], fontsize=6, pad=2)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", fontsize=8)
    return figure


def _scatter(examples: Mapping[str, Array], title: str) -> "Figure":
    figure = _figure(8, 4, title)
    for axes, first, feature in zip(figure.subplots(1, 2), (0, 2), ("easy feature", "hard feature"), strict=True):
        for number, (name, points) in enumerate(examples.items()):
            axes.scatter(
                points[:, first],
                points[:, first + 1],
                s=6,
                color=SERIES[number % len(SERIES)],
                marker="ox^sDv"[number % 6],
                label=f"class {name}",
            )
        axes.set_title(feature, fontsize=9)
        axes.set_aspect("equal", adjustable="datalim")
    figure.axes[0].legend(fontsize=8)
    return figure


def _rows(examples: Mapping[str, Array], title: str) -> "Figure":
    figure = _figure(9, 0.6 + 0.25 * sum(map(len, examples.values())), title)
    grid = figure.subplots(
        len(examples), 1, squeeze=False, sharex=True, height_ratios=[max(len(x), 1) for x in examples.values()]
    )
    limit = max(float(np.abs(x).max(initial=0)) for x in examples.values()) or 1.0
    for axes, (name, values) in zip(grid[:, 0], examples.items(), strict=True):
        image = axes.imshow(values.reshape(len(values), -1), aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit)
        axes.set_ylabel(f"class {name}", fontsize=8)
        axes.set_yticks([])
    axes.set_xlabel("input coordinate", fontsize=8)
    figure.colorbar(image, ax=list(grid[:, 0]), shrink=0.8)
    return figure


def _displayable(picture_CHW: Array) -> Array:
    """Height × width (× 3) in [0, 1], as matplotlib wants it."""
    picture = picture_CHW.astype(np.float32) / 255 if picture_CHW.dtype == np.uint8 else picture_CHW
    picture = np.clip(np.moveaxis(picture, 0, -1), 0, 1)
    return picture[..., 0] if picture.shape[-1] == 1 else picture[..., :3]


def _bare(axes: "Axes") -> None:
    axes.set_xticks([])
    axes.set_yticks([])
    for spine in axes.spines.values():
        spine.set_visible(False)
