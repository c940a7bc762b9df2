"""Figure 5: the L1 norm of the weights at the end of training."""

from dataclasses import replace

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Measured
from evenly.papers.nguyen2024 import table1
from evenly.papers.nguyen2024.comparisons import READ_OFF, method_chart, plan_of, scales
from evenly.papers.nguyen2024.recipes import NETWORK, SUFFIX, TITLE
from evenly.report.chart import Chart

CLAIMS = (
    Claim("useful", "USEFUL lowers the L1 norm that SGD ends with", "sgd.useful.l1 < sgd.original.l1"),
    Claim("useful of SAM", "USEFUL lowers the L1 norm that SAM ends with", "sam.useful.l1 < sam.original.l1"),
    Claim("sam", "SAM ends with a smaller L1 norm than SGD", "sam.original.l1 < sgd.original.l1"),
)


def charts(measured: Measured) -> list[Chart]:
    """The L1 norm after every way to train."""
    return [method_chart(measured, "l1", "L1 norm of the weights", "‖w‖₁")]


def _experiment(data: str) -> Experiment:
    cases = [replace(case, data=data, model=NETWORK[data]) for case in table1.CASES]
    return Experiment(
        f"nguyen2024/fig5{SUFFIX[data]}",
        f"Figure 5: L1 norm of the weights at the end of training{TITLE[data]}",
        "SAM's weights have a smaller L1 norm than SGD's, and USEFUL makes both smaller.",
        plan_of(*cases),
        CLAIMS,
        scales(*cases),
        charts,
        (
            READ_OFF,
            "USEFUL takes more steps under the same weight decay, which by itself shrinks weights: `evenly useful "
            "--controls random` shows how much.",
        ),
        primary=("useful", "useful of SAM", "sam"),
    )


EXPERIMENTS = (_experiment("cifar10"), _experiment("cifar100"))
