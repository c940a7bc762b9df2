"""Every diagnostic has a figure, which says what the numbers say and is absent where there are none."""

import json

import pytest

from evenly.measurements import MEASUREMENTS
from evenly.report import figures
from evenly.report.chart import Bars, Chart, Heat, Line, Points, Rule
from evenly.report.interactive import plot, table
from evenly.report.static import figure

MEASURED = {
    "epoch": 3, "easy": 0.01, "hard": 0.2, "easy_interval": [0.0, 0.02], "hard_interval": [0.1, 0.3],
    "reliance_easy": 0.4, "gini": 0.7, "phantom_gini": 0.6, "feature_rank": 8, "feature_rank_share": 0.99,
    "lambda_max": 12.0, "lambda_ratio_5": 3.0, "trace": 40.0, "eigenvalues": [12.0, 4.0],
    "density": {"grid": [0.0, 5.0, 10.0], "values": [1.0, 1e-12, 0.01]},
    "lorenz": {"share": [0.0, 0.5, 1.0], "real": [0.0, 0.1, 1.0], "phantom": [0.0, 0.2, 1.0]},
    "importance_map": {"x_edges": [0, 1, 2], "y_edges": [0, 1], "real": [[0.5, None]], "counts": [[3, 0]]},
    "layer_probes": [{"layer": "0", "features": 4, "easy": 0.0, "hard": 0.1}],
    "groups": [{"name": "a, tag=1", "error": 0.4, "interval": [0.2, 0.6], "examples": 20}],
    "mode_connectivity": {"between": ["a", "b"], "shares": [0.0, 1.0], "losses": [0.1, 0.2], "errors": [0.0, 0.0]},
    "barrier": 0.0,
}  # fmt: skip
CLASSES = [{"name": "cat", "easy": 8, "hard": 2, "loss_easy": 0.1, "loss_hard": 2.0}]
VIEW = {"x": [0, 1], "y": [0, 1], "label": [0, 1], "hard": [False, True], "index": [7, 9]}
METRICS = [
    {"epoch": e, "test.error": 0.5 / e, "train.easy.error": 0.1, "train.hard.error": 0.4, "train.easy.loss": 1.0}
    for e in (1, 2)
]
STABILITY = {
    "lr": 0.1,
    "methods": {"SGD": {"criteria": [{"name": "exact", "eta": 0.5}, {"name": "none", "eta": None}]}},
}

EVERY = {
    "training_curves": figures.training_curves({"original": [METRICS, METRICS], "useful": [METRICS]}),
    "cluster_curves": figures.cluster_curves(METRICS),
    "error_by_method": figures.error_by_method({"original": [0.1, 0.2], "useful": [0.1]}),
    "group_errors": figures.group_errors({"useful": {"land": [0.1], "sea": []}}, attribute="place"),
    "moment": figures.moment([{"epoch": 0, "error": 0.9}, {"epoch": 1, "error": 0.3}], chosen=1),
    "separation_view": figures.separation_view(VIEW),
    "cluster_sizes": figures.cluster_sizes(CLASSES),
    "cluster_losses": figures.cluster_losses(CLASSES),
    "spectrum": figures.spectrum(MEASURED),
    "over_training": figures.over_training({"a": [{"epoch": 1, "gini": 0.5}, {"epoch": 2, "gini": 0.6}]}, "gini"),
    "stability_position": figures.stability_position(STABILITY),
    "lorenz": figures.lorenz(MEASURED),
    "importance_map": figures.importance_map(MEASURED),
    "probing": figures.probing({"useful": MEASURED, "original": MEASURED}),
    "reliance": figures.reliance(MEASURED),
    "feature_rank": figures.feature_rank({"useful": [MEASURED]}),
    "numbers": figures.numbers({"useful": {"m_sharpness": 0.4, "m_sharpness_error": 0.1}}, MEASUREMENTS["m_sharpness"]),
    "layer_probes": figures.layer_probes(MEASURED),
    "worst_groups": figures.worst_groups(MEASURED),
    "mode_connectivity": figures.mode_connectivity(MEASURED),
}


@pytest.mark.parametrize("name", EVERY)
def test_every_figure_draws_on_paper_and_on_the_page(name: str) -> None:
    chart = EVERY[name]
    assert isinstance(chart, Chart)
    assert chart.sentence.endswith(".")
    figure(chart).draw_without_rendering()
    json.dumps(plot(chart), allow_nan=False)
    assert table(chart)[1]


def test_every_exported_figure_is_tried_here() -> None:
    public = {name for name, value in vars(figures).items() if callable(value) and not name.startswith("_")}
    assert public == set(EVERY)


def test_what_is_not_there_is_not_drawn() -> None:
    assert figures.training_curves({"a": [[{"epoch": 1}]]}) is None
    assert figures.error_by_method({"a": []}) is None
    assert figures.moment([]) is None
    assert figures.separation_view({}) is None


def test_a_view_of_very_many_outputs_shows_some_of_both_kinds_and_says_how_many() -> None:
    rows = range(5000)
    view = {"x": rows, "y": rows, "label": [0] * 5000, "hard": [row % 7 == 0 for row in rows], "index": rows}
    chart = figures.separation_view({name: list(values) for name, values in view.items()})
    assert chart is not None
    num = [len(layer.x) for layer in chart.layers]  # type: ignore[union-attr]
    assert sum(num) == 556
    assert min(num) > 50
    assert "The outputs of 556 training examples" in chart.sentence


def test_the_lowest_error_is_called_equal_only_where_all_are() -> None:
    told = figures.error_by_method({"plain": [0.2, 0.2], "SAM": [0.1, 0.1], "random": [0.1, 0.1]})
    alike = figures.error_by_method({"plain": [0.1, 0.1], "SAM": [0.1, 0.1]})
    assert told is not None
    assert alike is not None
    assert "lowest on average for SAM and random (10.00%)" in told.sentence
    assert "equal on average for plain and SAM (10.00%)" in alike.sentence
    assert figures.cluster_losses([{"name": "a", "loss_easy": None, "loss_hard": None}]) is None
    assert figures.over_training({"a": [{"epoch": 1, "gini": 0.5}]}, "gini") is None
    for absent in (figures.spectrum, figures.lorenz, figures.importance_map, figures.probing, figures.reliance):
        assert absent({"epoch": 3}) is None
    assert figures.stability_position({}) is None


def test_curves_are_means_over_seeds_between_lowest_and_highest() -> None:
    seeds = [[{"epoch": 1, "test.error": 0.2}], [{"epoch": 1, "test.error": 0.4}, {"epoch": 2, "test.error": 0.1}]]
    line = figures.training_curves({"useful": seeds}).layers[0]  # type: ignore[union-attr]
    assert isinstance(line, Line)
    assert [round(v, 6) for v in line.y] == [30.0, 10.0]
    assert (line.low, line.high) == ((20.0, 10.0), (40.0, 10.0))


def test_a_loss_that_is_not_a_number_leaves_a_gap_and_not_an_error() -> None:
    table = [{"epoch": 1, "train.loss": float("nan")}, {"epoch": 2, "train.loss": 1.0}]
    assert figures.training_curves({"a": [table]}, metric="train.loss").layers[0].x == (2,)  # type: ignore[union-attr]


def test_the_tail_of_the_smoothing_is_no_density() -> None:
    density, ticks = EVERY["spectrum"].layers  # type: ignore[union-attr]
    assert isinstance(density, Line)
    assert isinstance(ticks, Points)
    assert density.y == (1.0, None, 0.01)
    assert set(ticks.y) == {0.01}


def test_one_eigenvalue_of_ten_million_is_seen() -> None:
    chart = figures.spectrum({"density": {"grid": [0.0, 5.0], "values": [1.0, 1e-7]}})
    assert chart is not None
    assert chart.layers[0].y == (1.0, 1e-7)  # type: ignore[union-attr]


def test_importance_lies_at_the_middles_of_its_bins() -> None:
    heat = EVERY["importance_map"].layers[0]  # type: ignore[union-attr]
    assert isinstance(heat, Heat)
    assert (heat.x, heat.y, heat.z) == ((0.5, 1.5), (0.5,), ((0.5, None),))


def test_an_infinite_threshold_has_no_mark_and_the_learning_rate_has_a_line() -> None:
    marks, rule = EVERY["stability_position"].layers  # type: ignore[union-attr]
    assert isinstance(marks, Points)
    assert isinstance(rule, Rule)
    assert (marks.x, marks.y, rule.x) == ((0.5,), ("exact",), 0.1)


@pytest.mark.parametrize("eta", [None, float("inf")])
def test_a_criterion_without_a_finite_edge_is_named_and_not_drawn(eta: float | None) -> None:
    criteria = [{"name": "exact", "eta": 0.5}, {"name": "full batch", "eta": eta}, {"name": "zero", "eta": 0.0}]
    made = figures.stability_position({"lr": 0.1, "methods": {"SGD": {"criteria": criteria}}})
    assert made is not None
    assert made.layers[0].x == (0.5,)  # type: ignore[union-attr]
    assert "not drawn: full batch for SGD" in made.sentence
    json.dumps(plot(made), allow_nan=False)
    assert figures.stability_position({"lr": 0.1, "methods": {"SGD": {"criteria": criteria[1:]}}}) is None


def test_more_classes_than_can_be_read_are_cut_and_counted() -> None:
    classes = [{"name": str(i), "easy": 5, "hard": i % 7} for i in range(1000)]
    chart = figures.cluster_sizes(classes)
    assert chart is not None
    assert isinstance(chart.layers[0], Bars)
    assert len(chart.layers[0].x) == 60
    assert min(chart.layers[1].y) == 6  # type: ignore[union-attr, type-var]
    assert "60 of 1,000 classes" in chart.sentence


def test_errors_close_to_one_another_are_marks_and_far_ones_bars_from_zero() -> None:
    near = figures.error_by_method({"original": [0.56, 0.561], "useful": [0.53, 0.531]})
    far = figures.error_by_method({"original": [0.10, 0.11] * 2, "useful": [0.02, 0.03] * 2})
    assert near is not None
    assert far is not None
    assert isinstance(near.layers[0], Bars)
    assert isinstance(far.layers[0], Bars)
    assert not near.layers[0].bar
    assert near.y_range is not None
    assert 40 < near.y_range[0] < 53
    assert far.layers[0].bar
    assert far.y_range is not None
    assert far.y_range[0] == 0


def test_epochs_have_no_fractions_on_either_drawing() -> None:
    chart = Chart("Loss", "epoch", "loss", [Line("a", [0, 1, 2], [3.0, 2.0, 1.0])], "It falls.")
    assert plot(chart)["x"]["whole"]
    drawn = figure(chart)
    drawn.draw_without_rendering()
    assert all(tick == int(tick) for tick in drawn.axes[0].get_xticks())


def test_whiskers_end_where_errors_do_and_few_seeds_are_dots() -> None:
    chart = figures.error_by_method({"original": [0.0, 0.1], "useful": [0.9, 1.0]})
    assert chart is not None
    bars = chart.layers[0]
    assert isinstance(bars, Bars)
    assert (bars.low[0], bars.high[1]) == (0.0, 100.0)  # type: ignore[index]
    assert not bars.bar
    assert "within 0 and 100%" in chart.sentence
    probes = figures.probing({"easy": 0.01, "easy_interval": [-0.08, 0.1]})
    assert probes is not None
    assert probes.layers[0].low == (0.0,)  # type: ignore[union-attr]


def test_the_early_curve_is_said_to_be_of_the_epoch_and_not_of_its_end() -> None:
    chart = figures.moment([{"epoch": 0, "error": 0.9}, {"epoch": 1, "error": 0.472}], chosen=1)
    assert chart is not None
    assert "during which 47.2% of them were wrong" in chart.sentence
    assert "during" in chart.y
