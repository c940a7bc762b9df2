"""Figures for papers are whole: no title is cut, every whisker is seen, equal axes have equal ranges."""

from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from evenly.papers.catalogue import CATALOGUE
from evenly.report.chart import Bars, Chart, Line, Rule, extent, share_y_axes
from evenly.report.interactive import plot
from evenly.report.static import figure

LONGEST = sorted({experiment.title for experiment in CATALOGUE.values()}, key=lambda title: (len(title), title))[-6:]


def boxes(made: object) -> tuple[list[object], object]:
    canvas = FigureCanvasAgg(made)  # type: ignore[arg-type]
    canvas.draw()
    texts = [axes._left_title for axes in made.axes if axes._left_title.get_text()]  # type: ignore[attr-defined]
    texts += made.texts  # the title of all and the note
    return [text.get_window_extent(canvas.get_renderer()) for text in texts], made.bbox  # type: ignore[attr-defined]


@pytest.mark.parametrize("panels", [1, 3])
@pytest.mark.parametrize("title", [*LONGEST, "A long title of a small figure, " * 4])
def test_no_title_is_cut_or_lies_on_another(title: str, panels: int) -> None:
    chart = Chart(title, "epoch", "error (%)", [Line("SGD", [1, 2], [2, 1])], "It falls.")
    found, whole = boxes(figure([chart] * panels, title=title, note="10 seeds"))
    assert len(found) == panels + 2
    for box in found:
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1  # type: ignore[attr-defined]
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1  # type: ignore[attr-defined]
    for number, one in enumerate(found):
        assert not any(one.overlaps(other) for other in found[number + 1 :])  # type: ignore[attr-defined]


def test_whiskers_are_drawn_in_ink_over_the_bars() -> None:
    bars = Bars("error", ["plain", "USEFUL"], [3, 2], [2, 1], [4, 3])
    axes = figure(Chart("Error", "", "%", [bars], "Two bars.")).axes[0]
    whiskers = axes.collections[0]
    assert [tuple(round(255 * part) for part in hue[:3]) for hue in whiskers.get_color()] == [(0x24, 0x29, 0x2F)]
    assert whiskers.get_linewidth()[0] >= 1.2


def test_panels_with_the_same_axis_share_its_range_and_others_do_not() -> None:
    def chart(top: float, y: str = "λ") -> Chart:
        return Chart("Spectrum", "", y, [Bars("eigenvalue", ["λ1"], [top])], "One bar.")

    first, second, other = share_y_axes([chart(42.6), chart(69.6), chart(7.0, "rank")])
    assert first.y_range == second.y_range
    assert first.y_range is not None
    assert first.y_range[1] > 69.6
    assert other.y_range is None
    assert share_y_axes([chart(1.0), chart(100.0)])[0].y_range is None, "a hundredth of the height says nothing"
    panels = figure([chart(42.6), chart(69.6)]).axes
    assert panels[0].get_ylim() == panels[1].get_ylim()


def test_the_extent_of_a_chart_holds_whiskers_and_dots() -> None:
    bars = Bars("error", ["a"], [3.0], [1.0], [4.0], dots=[[0.5, 5.0]], bar=False)
    assert extent(Chart("", "", "", [bars], "One bar.")) == (0.5, 5.0)


def test_many_long_labels_stand_in_rows_and_none_lies_on_another() -> None:
    labels = [f"a cure with a long name {number}" for number in range(18)]
    bars = Bars("", labels, [1.0] * 18, [0.5] * 18, [1.5] * 18, [[0.9, 1.1]] * 18, bar=False)
    chart = Chart("Test", "", "points", [bars, Rule(y=0.0, name="plain")], "Eighteen marks.")
    made = figure([chart] * 3, title="An atlas", note="2 seeds")
    canvas = FigureCanvasAgg(made)
    canvas.draw()
    first, *others = made.axes
    boxes = [text.get_window_extent(canvas.get_renderer()) for text in first.get_yticklabels()]
    assert [text.get_text() for text in first.get_yticklabels()] == labels
    assert all(box.x0 >= 0 and not box.overlaps(below) for box, below in pairwise(boxes))
    for axes in others:
        shown = [text for text in axes.get_yticklabels() if text.get_visible()]
        assert not shown, "the panel to the left names the rows"


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("layer", ["bars", "line"])
def test_an_axis_of_errors_that_are_all_zero_has_nothing_below_zero(layer: str, rows: bool) -> None:
    names = [f"method of a long name {i}" for i in range(12 if rows else 3)]
    zeros = [0.0] * len(names)
    marks = Bars("error", names, zeros, low=zeros, high=zeros) if layer == "bars" else Line("a", [*range(3)], [0.0] * 3)
    chart = Chart("Error", "", "error %", [marks], "There are no errors.")
    assert chart.y_limits == (0, 1)
    assert plot(chart)["y"]["range"] == [0, 1]
    (axes,) = figure([chart]).axes
    assert (axes.get_xlim() if rows and layer == "bars" else axes.get_ylim()) == (0, 1)
    if rows and layer == "bars":
        assert abs(axes.get_ylim()[0] - axes.get_ylim()[1]) > 11, "a row for each method"
    points = Chart("Where", "", "", [Rule(y=0.0, name="zero"), Line("a", [0, 1], [0.0, 2.0])], "It rises.")
    assert points.y_limits is None
