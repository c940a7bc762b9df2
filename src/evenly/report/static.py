"""Charts as figures for papers: matplotlib, in the colours and style of the page."""

import math
import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evenly import atomic
from evenly.errors import UsageError
from evenly.report import panel
from evenly.report.chart import Chart, share_y_axes
from evenly.report.line_breaks import wrap
from evenly.report.marks import FAINT_INK, INK

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TITLE = 12  # points


def figure(charts: Chart | Sequence[Chart], *, columns: int | None = None, title: str = "", note: str = "") -> "Figure":
    """The charts as panels of one figure, which `save` writes; `note`, such as the number of seeds, stands below.

    Titles wrap at the width of their panel. Panels with the same y axis share its range.

    >>> from evenly.report.chart import Line
    >>> chart = Chart("Error", "epoch", "%", [Line("SGD", [1, 2, 3], [9, 5, None])], "The error falls.")
    >>> len(figure([chart, chart, chart], columns=2).axes)
    3
    """
    from matplotlib.figure import Figure

    charts = [charts] if isinstance(charts, Chart) else share_y_axes(charts)
    if not charts:
        raise UsageError("there is no chart to draw: give at least one.")
    columns = columns or (len(charts) if len(charts) <= 3 else math.ceil(len(charts) ** 0.5))
    num_rows = math.ceil(len(charts) / columns)
    lines = wrap(title, points=TITLE, inches=panel.WIDTH * columns - 0.3)
    head = 0.02 * TITLE * len(lines) if title else 0.0
    foot = 0.22 if note else 0.0
    height = max(map(panel.height, charts)) * num_rows + head + foot
    drawing = Figure(figsize=(panel.WIDTH * columns, height), layout="constrained")
    drawing.get_layout_engine().set(rect=(0, foot / height, 1, 1 - foot / height))  # type: ignore[union-attr, call-arg]  # the constrained layout
    if title:
        drawing.suptitle("\n".join(lines), fontsize=TITLE, color=INK)
    if note:
        drawing.text(0.99, 0.02 / height, note, fontsize=8, color=FAINT_INK, ha="right", va="bottom")
    for number, chart in enumerate(charts):
        axes = drawing.add_subplot(num_rows, columns, number + 1)
        panel.draw(axes, chart)
        if panel.is_in_rows(chart) and number % columns and charts[number - 1].labels("x") == chart.labels("x"):
            axes.tick_params(labelleft=False)  # the panel to the left names them
    return drawing


def save(figure: "Figure", path: str | os.PathLike[str], *, dpi: int = 150) -> None:
    """Write the figure whole or not at all, in the format its suffix names; the same figure is the same bytes."""
    import matplotlib

    suffix = os.path.splitext(path)[1].lstrip(".").lower() or "png"
    known = figure.canvas.get_supported_filetypes()
    if suffix not in known:
        raise UsageError(f"cannot draw a .{suffix} file: {path}. Known: {', '.join(sorted(known))}.")
    # Time stamps and random names of marks would make every file different.
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "ps": {}, "eps": {}}
    with (
        atomic.replacing(path) as file,
        matplotlib.rc_context({"svg.hashsalt": "evenly"}),
        warnings.catch_warnings(),
    ):
        # A letter of a class name that the font lacks is drawn as a box, which needs no warning.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from", category=UserWarning)
        figure.savefig(file, dpi=dpi, format=suffix, metadata=undated.get(suffix))
