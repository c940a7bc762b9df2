"""The charts that experiments declare, and the one that they get by default."""

from evenly.papers.charts import Panel, charts_of
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured, Scale
from evenly.report.chart import Bars, Rule

MEASURED = Measured({"sgd": {0: 1.0, 1: 3.0}, "sam": {0: 1.0, 1: 1.0}, "unclaimed": {0: 9.0, 1: 9.0}}, {})


def test_a_panel_draws_one_series_a_level_and_the_means_in_its_sentence():
    panel = Panel("errors", "%", {"SGD": "sgd", "SAM": "sam"}, "SGD errs {sgd:.1f}%.", level=2.0, level_name="paper")
    chart = panel.draw(MEASURED)
    bars, rule = chart.layers
    assert isinstance(bars, Bars)
    assert isinstance(rule, Rule)
    assert (tuple(bars.x), tuple(bars.y), rule.y, rule.name) == (("SGD", "SAM"), (2.0, 1.0), 2.0, "paper")
    assert chart.sentence == "SGD errs 2.0%."


def test_a_panel_draws_a_series_for_each_name():
    chart = Panel("errors", "%", {"plain": {"mean": "sgd"}, "flat": {"mean": "sam"}}, "Both.").draw(MEASURED)
    series = [(layer.name, tuple(layer.y)) for layer in chart.layers if isinstance(layer, Bars)]
    assert series == [("plain", (2.0,)), ("flat", (1.0,))]


def test_an_experiment_without_charts_shows_what_its_claims_name():
    experiment = Experiment(
        key="paper/fig1",
        title="Figure 1",
        claim="SAM errs less.",
        plan=lambda seeds: [],
        claims=(Claim("less", "SAM errs less than SGD", "sam < sgd"),),
        scales={"smoke": Scale((0, 1), 0.1)},
    )
    (chart,) = charts_of(experiment, MEASURED)
    (bars,) = chart.layers
    assert isinstance(bars, Bars)
    assert tuple(bars.x) == ("sam", "sgd")
