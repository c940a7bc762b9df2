"""Figure 1 of Chang & Khanna (2025): where training diverges over batch size and coherence, and three boundaries."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenly.report.palette import SERIES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Array = NDArray[Any]


def figure(
    methods: Sequence[str],
    batches: Sequence[int],
    sigmas: Sequence[int],
    *,
    lr: float,
    diverged: Array,
    criterion_lr: Array,
    mean_square_lr: Array,
    exponent: Array,
) -> "Figure":
    """A panel per method, with the axes of the paper; arrays are methods × batches × sigmas.

    Dark cells diverged. The lines are where the published criterion, the exact mean-square threshold and the
    almost-sure (Lyapunov) boundary lie at this learning rate.

    >>> grid = np.array([[[0.1, 0.2], [0.8, 0.9]]])
    >>> drawing = figure(["SGD"], [1, 2], [1, 2], lr=0.5, diverged=grid < 0.5, criterion_lr=grid,
    ...               mean_square_lr=grid, exponent=0.5 - grid)
    >>> [(axes.get_xlabel(), axes.get_ylabel()) for axes in drawing.axes]
    [('batch size B', 'coherence σ')]
    """
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    drawing = Figure(figsize=(0.6 + 3.4 * len(methods), 3.9), layout="constrained")
    lines: tuple[tuple[str, Array, str, Any], ...] = (
        ("published criterion", criterion_lr - lr, SERIES[1], "dashed"),
        ("mean square, exact", mean_square_lr - lr, SERIES[0], "solid"),
        ("almost sure, exact", -exponent, SERIES[2], "dotted"),
    )
    panels = drawing.subplots(1, len(methods), squeeze=False, sharey=True)[0]
    for number, (axes, method) in enumerate(zip(panels, methods, strict=True)):
        axes.pcolormesh(batches, sigmas, diverged[number].T, cmap="Greys", vmin=0, vmax=1.6, shading="nearest")
        for _, height, colour, style in lines:
            values = np.nan_to_num(height[number], posinf=1e3, neginf=-1e3)
            if values.min() < 0 < values.max():
                style_of = {"colors": [colour], "linestyles": [style], "linewidths": 1.8}
                axes.contour(batches, sigmas, values.T, levels=[0.0], **style_of)
        axes.set_title(method, fontsize=10)
        axes.set_xlabel("batch size B")
    panels[0].set_ylabel("coherence σ")
    handles = [Line2D([], [], color=colour, linestyle=style, label=name) for name, _, colour, style in lines]
    drawing.legend(handles=handles, loc="outside lower center", ncols=3, fontsize=8, frameon=False)
    drawing.suptitle(f"diverged (grey) at learning rate {lr:g}", fontsize=10)
    return drawing
