"""Table 1: how sharp the minimum is that SGD, SGD on USEFUL's data and SAM end in."""

from evenly.papers.experiment import Experiment, Measured
from evenly.papers.nguyen2024.comparisons import method_chart, numeric_claim, plan_of, scales
from evenly.papers.nguyen2024.recipes import Case
from evenly.report.chart import Chart

CLAIMS = (
    numeric_claim(
        "useful",
        "λmax is smaller after SGD on USEFUL's data than after SGD",
        "sgd.useful.lambda_max < sgd.original.lambda_max",
        (41.8, 53.8),
    ),
    numeric_claim(
        "sam",
        "λmax is smaller after SAM than after SGD",
        "sam.original.lambda_max < sgd.original.lambda_max",
        (12.4, 53.8),
        margin=15.0,
    ),
    numeric_claim(
        "bulk",
        "λmax/λ5 is smaller after SGD on USEFUL's data than after SGD",
        "sgd.useful.lambda_ratio_5 < sgd.original.lambda_ratio_5",
        (1.5, 3.8),
    ),
    numeric_claim(
        "bulk of SAM",
        "λmax/λ5 is smaller after SAM than after SGD",
        "sam.original.lambda_ratio_5 < sgd.original.lambda_ratio_5",
        (2.4, 3.8),
    ),
    numeric_claim(
        "smallest bulk",
        "λmax/λ5 is smallest after SGD on USEFUL's data: also below SAM's",
        "sgd.useful.lambda_ratio_5 < sam.original.lambda_ratio_5",
        (1.5, 2.4),
        after=True,
    ),
)
CASES = (Case("sgd", measured=True), Case("sam", ascent="sam", measured=True))


def charts(measured: Measured) -> list[Chart]:
    """The largest eigenvalue of the Hessian, and its ratio to the fifth."""
    return [
        method_chart(measured, "lambda_max", "Largest eigenvalue", "λmax", bar=True),
        method_chart(measured, "lambda_ratio_5", "Bulk of the spectrum", "λmax / λ5", bar=True),
    ]


EXPERIMENT = Experiment(
    key="nguyen2024/table1",
    title="Table 1: sharpness at the end of training",
    claim="USEFUL and SAM end in flatter minima than SGD.",
    plan=plan_of(*CASES),
    claims=CLAIMS,
    scales=scales(*CASES),
    charts=charts,
    errata=("The paper gives one number for each method, without spread or the number of seeds.",),
    primary=("useful", "sam"),
)
