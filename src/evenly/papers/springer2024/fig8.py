"""Figure 8: the Lorenz curves of figure 5 during training, on the toy (CelebA and Waterbirds are with figure 5)."""

from evenly.papers.experiment import Experiment, Measured
from evenly.papers.springer2024 import toy_importance
from evenly.papers.springer2024.fig5 import LATER, lorenz_charts, lorenz_claims
from evenly.papers.springer2024.toy import SPIRAL
from evenly.papers.springer2024.toy_importance import EPOCHS
from evenly.report.chart import Chart


def chart(measured: Measured) -> list[Chart]:
    """SGD's and LSAM's network at several epochs."""
    return lorenz_charts(measured.series["weights"], EPOCHS)


EXPERIMENT = Experiment(
    key="springer2024/fig8",
    title="Lorenz curves during training, toy (figure 8)",
    claim="Throughout training, importance is spread more evenly at LSAM's phantom weights than at the real weights of "
    "LSAM or SGD.",
    plan=toy_importance.plan,
    primary=tuple(f"{what}, epoch {epoch}" for epoch in EPOCHS for what in ("within", "beside SGD")),
    claims=tuple(claim for epoch in EPOCHS for claim in lorenz_claims(epoch)),
    scales=toy_importance.SCALES,
    charts=chart,
    errata=(*SPIRAL, LATER),
)
