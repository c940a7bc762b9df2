"""A chart is plain data, and is drawn alike for papers and for the page."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from evenly.errors import UsageError
from evenly.report.chart import Bars, Chart, Heat, Histogram, Line, Points, Rule
from evenly.report.interactive import plot, table
from evenly.report.palette import METHODS, SERIES
from evenly.report.static import figure, save

NAN = float("nan")


def chart(*layers: object, **more: object) -> Chart:
    return Chart("Title", "epoch", "error (%)", layers, "A sentence.", **more)  # type: ignore[arg-type]


EVERY_LAYER = chart(
    Line("line", [1, 2, 3], [3.0, NAN, 1.0], low=[2.0, None, 0.5], high=[4.0, None, 1.5], dashed=True),
    Points("points", [1, 2], [1.0, 2.0], text=["a", "b"]),
    Histogram("histogram", [0, 1, 2], [4, 5]),
    Rule(y=1.5, name="paper"),
    Rule(x=2),
)


def test_layers_of_unequal_lengths_are_refused_with_both_numbers() -> None:
    with pytest.raises(UsageError, match="low has 1 values, x has 2"):
        Line("a", [1, 2], [1, 2], low=[0])
    with pytest.raises(UsageError, match="2 counts need 3 edges, not 2"):
        Histogram("a", [0, 1], [1, 2])
    with pytest.raises(UsageError, match="z is 1×2, expected 2 rows"):
        Heat([1, 2], [1, 2], [[0, 0]])
    with pytest.raises(UsageError, match="x or y, one of them"):
        Rule(x=1, y=2)
    with pytest.raises(UsageError, match="has no sentence"):
        Chart("Title", "x", "y", [], "  ")


def test_arrays_become_plain_values() -> None:
    layer = Line("a", np.arange(3), np.array([1.0, 2.0, 3.0]))
    assert layer.x == (0, 1, 2)
    assert all(type(value) is float for value in layer.y)


def test_gaps_are_null_on_the_page() -> None:
    (line,) = plot(chart(Line("a", [1, 2, 3], [3.0, NAN, 1.0], [2.0, None, 0.5], [4.0, None, 1.5])))["layers"]
    assert line["y"] == [3.0, None, 1.0]
    assert (line["low"], line["high"]) == ([2.0, None, 0.5], [4.0, None, 1.5])


def test_every_plot_is_strict_json() -> None:
    odd = chart(Line("a", [1, 2], [math.inf, NAN]), Heat([1, 2], [1], [[NAN, math.inf]]), Rule(y=NAN, name="none"))
    json.dumps(plot(odd), allow_nan=False)
    json.dumps(plot(EVERY_LAYER), allow_nan=False)


def test_both_drawings_use_the_same_colours() -> None:
    made = chart(Line("a", [1, 2], [1, 2]), Line("USEFUL", [1, 2], [2, 1]), Line("c", [1, 2], [0, 1], colour=4))
    drawn = [line.get_color() for line in figure(made).axes[0].get_lines()]
    # USEFUL has the first colour of the series: the others take those after it.
    expected = [SERIES[1], METHODS["useful"].colour, SERIES[5]]
    assert drawn == [layer["colour"] for layer in plot(made)["layers"]] == expected


def test_the_same_chart_is_the_same_svg(tmp_path: Path) -> None:
    for name in ("a.svg", "b.svg"):
        save(figure([EVERY_LAYER, EVERY_LAYER], title="Both"), tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    save(figure(EVERY_LAYER), tmp_path / "a.pdf")
    save(figure(EVERY_LAYER), tmp_path / "a.png")


def test_bars_beside_one_another_carry_intervals_and_dots() -> None:
    one = Bars("one", ["a", "b"], [1.0, 2.0], [0.5, None], [1.5, None], dots=[[0.9, 1.1], [2.0, 2.0]])
    made = chart(one, Bars("two", ["b", "a"], [3.0, 4.0], bar=False))
    bars, means = plot(made)["layers"]
    assert (bars["low"], bars["high"], bars["dots"]) == ([0.5, None], [1.5, None], [[0.9, 1.1], [2.0, 2.0]])
    assert (means["x"], means["y"], means["bar"]) == (["b", "a"], [3.0, 4.0], False)
    assert [text.get_text() for text in figure(made).axes[0].get_xticklabels()] == ["a", "b"]


def test_rows_for_csv_have_one_set_of_columns() -> None:
    columns, rows = table(chart(Bars("one", ["a"], [1.0], dots=[[0.9, 1.1]]), Rule(y=2.0, name="paper")))
    assert columns == ["series", "x", "y", "value 1", "value 2"]
    assert rows == [("one", "a", 1.0, 0.9, 1.1), ("paper", None, 2.0, None, None)]
    columns, rows = table(chart(Heat([1, 2], ["low", "high"], [[5.0, NAN], [6.0, 7.0]], "loss")))
    assert columns == ["series", "x", "y", "value"]
    assert rows[1:3] == [("loss", 2, "low", None), ("loss", 1, "high", 6.0)]
    columns, rows = table(chart(Histogram("all", [0.0, 0.5, 1.0], [3, 4])))
    assert (columns, rows) == (["series", "low", "high", "y"], [("all", 0.0, 0.5, 3), ("all", 0.5, 1.0, 4)])


def test_heat_knows_its_limits() -> None:
    assert Heat([1, 2], [1], [[-1.0, 3.0]], diverging=True).limits == (-3.0, 3.0)
    assert Heat([1, 2], [1], [[2.0, 2.0]]).limits == (1.5, 2.5)
    assert Heat([1, 2], [1], [[None, NAN]]).limits == (-0.5, 0.5)
    assert len(figure(chart(Heat(["a", "b"], ["c", "d"], [[1, None], [NAN, 2]], "z"))).axes) == 2


def test_labels_may_stand_on_the_upright_axis_the_first_at_the_top() -> None:
    made = chart(Points("a", [0.1, 10.0], ["first", "second"]), Rule(x=1.0, name="here"), x_log=True)
    axes = figure(made).axes[0]
    heights = {text.get_text(): place for place, text in zip(axes.get_yticks(), axes.get_yticklabels(), strict=True)}
    assert heights["first"] > heights["second"]
    assert plot(made)["y"]["labels"] == ["first", "second"]


def test_a_rule_at_zero_is_left_out_of_a_logarithmic_axis() -> None:
    layers = plot(chart(Line("a", [1, 2], [1, 2]), Rule(y=0.0, name="zero"), y_log=True))["layers"]
    assert [layer["kind"] for layer in layers] == ["line"]


def test_many_panels_fill_a_grid_and_none_is_an_error() -> None:
    assert len(figure([EVERY_LAYER] * 5).axes) == 5
    with pytest.raises(UsageError, match="no chart"):
        figure([])
