"""Figure 9: the maps of figure 6 during training, on the toy (CelebA and Waterbirds are with figure 6)."""

from evenly.papers.experiment import Experiment, Measured
from evenly.papers.springer2024 import toy_importance
from evenly.papers.springer2024.fig6 import ERRATA, map_charts, map_claims
from evenly.papers.springer2024.toy_importance import EPOCHS
from evenly.report.chart import Chart


def chart(measured: Measured) -> list[Chart]:
    """LSAM's network at the first and the last of the epochs; figure 6 has one between."""
    return map_charts(measured.series["weights"], (EPOCHS[0], EPOCHS[-1]))


EXPERIMENT = Experiment(
    key="springer2024/fig9",
    title="Median importance during training, toy (figure 9)",
    claim="Throughout training, LSAM moves importance to examples that the hard feature fits badly.",
    plan=toy_importance.plan,
    primary=tuple(f"hard, epoch {epoch}" for epoch in EPOCHS),
    claims=tuple(claim for epoch in EPOCHS for claim in map_claims(epoch)),
    scales=toy_importance.SCALES,
    charts=chart,
    errata=ERRATA,
)
