"""Table 6: the hard examples found by clusters of outputs, by a quantile of the loss, or by misclassification."""

from evenly.papers.experiment import Experiment
from evenly.papers.nguyen2024.comparisons import error_charts, numeric_claim, plan_of, scales
from evenly.papers.nguyen2024.recipes import NETWORK, SUFFIX, TITLE, Case


def _experiment(data: str, *, quantile: float, misclassified: float, useful: float) -> Experiment:
    case = Case("sgd", data, NETWORK[data], "none", ("quantile", "misclassified"))
    return Experiment(
        key=f"nguyen2024/table6{SUFFIX[data]}",
        title=f"Table 6: how the hard examples are found{TITLE[data]}",
        claim="Clusters of early outputs choose better examples than a quantile of the loss or misclassification.",
        plan=plan_of(case),
        claims=tuple(
            numeric_claim(
                other,
                f"SGD has a lower test error with examples chosen by clusters than by {words}",
                f"sgd.useful.error < sgd.{other}.error",
                (useful, theirs),
            )
            for other, words, theirs in (
                ("quantile", "a quantile of the loss", quantile),
                ("misclassified", "misclassification", misclassified),
            )
        ),
        scales=scales(case),
        charts=error_charts,
        errata=(
            "The text defines the quantile by training errors above the median; an error is 0 or 1, so the loss is "
            "meant and used.",
        ),
        primary=("quantile", "misclassified"),
    )


EXPERIMENTS = (
    _experiment("cifar10", quantile=5.27, misclassified=4.98, useful=4.79),
    _experiment("cifar100", quantile=23.49, misclassified=23.86, useful=22.58),
)
