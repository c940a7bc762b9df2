"""Figure 10: USEFUL at other batch sizes, learning rates and upsampling factors."""

from evenly.papers.charts import OVER_SEEDS, bars
from evenly.papers.experiment import Experiment, Measured
from evenly.papers.nguyen2024.comparisons import READ_OFF, below, plan_of, scales, useful_lowers
from evenly.papers.nguyen2024.recipes import Case
from evenly.report.chart import Chart

LARGER_FACTORS = (3, 4, 5)
SETTINGS = (
    Case("batch 128", group="factors"),
    *(Case(f"batch {128 * times}", batch_times=times) for times in (2, 4)),
    *(Case(f"lr {0.1 * times:.1f}", lr_times=times) for times in (2, 4)),
)
CASES = (
    *SETTINGS,
    *(Case(f"factor {factor}", factor=factor, controls=(), group="factors") for factor in LARGER_FACTORS),
)
CLAIMS = (
    *useful_lowers(*(case.name for case in SETTINGS)),
    *(
        below(
            f"factor {factor}",
            f"USEFUL lowers the test error of SGD with a factor of {factor}",
            f"factor {factor}.useful.error",
            "batch 128.original.error",
        )
        for factor in LARGER_FACTORS
    ),
    *(
        below(
            f"2 before {factor}",
            f"a factor of 2 has a lower test error than {factor}",
            "batch 128.useful.error",
            f"factor {factor}.useful.error",
        )
        for factor in LARGER_FACTORS
    ),
)


def charts(measured: Measured) -> list[Chart]:
    """A panel each for batch size, learning rate and upsampling factor."""
    panels = {
        "Batch size": {name.removeprefix("batch "): name for name in ("batch 128", "batch 256", "batch 512")},
        "Learning rate": {"1×": "batch 128", "2×": "lr 0.2", "4×": "lr 0.4"},
        "Upsampling factor": {"2": "batch 128", "3": "factor 3", "4": "factor 4", "5": "factor 5"},
    }
    return [
        Chart(
            title,
            title.lower(),
            "test error (%)",
            [
                bars(measured, {label: f"{case}.{method}.error" for label, case in cases.items()}, name=shown)
                for method, shown in (("original", "SGD"), ("useful", "SGD + USEFUL"))
            ],
            f"Test error by {title.lower()}: {OVER_SEEDS}.",
        )
        for title, cases in panels.items()
    ]


EXPERIMENT = Experiment(
    "nguyen2024/fig10",
    "Figure 10: batch size, learning rate, upsampling factor",
    "USEFUL lowers the test error at every batch size, learning rate and factor, and a factor of 2 is best.",
    plan_of(*CASES),
    CLAIMS,
    scales(*CASES),
    charts,
    (
        READ_OFF,
        "Learning rates of 0.1, 0.2 and 0.4 at full size; at small ones once, twice and four times the usual one.",
    ),
    primary="batch 128",
)
