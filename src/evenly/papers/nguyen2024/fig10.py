"""Figure 10: USEFUL at other batch sizes, learning rates and upsampling factors."""

from evenly.papers.charts import OVER_SEEDS, Panel
from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment
from evenly.papers.nguyen2024.comparisons import READ_OFF, plan_of, scales, useful_lowers
from evenly.papers.nguyen2024.recipes import Case

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
        Claim(
            f"factor {factor}",
            f"USEFUL lowers the test error of SGD with a factor of {factor}",
            f"factor {factor}.useful.error < batch 128.original.error",
        )
        for factor in LARGER_FACTORS
    ),
    *(
        Claim(
            f"2 before {factor}",
            f"a factor of 2 has a lower test error than {factor}",
            f"batch 128.useful.error < factor {factor}.useful.error",
        )
        for factor in LARGER_FACTORS
    ),
)


_PANELS = {
    "Batch size": {"128": "batch 128", "256": "batch 256", "512": "batch 512"},
    "Learning rate": {"1×": "batch 128", "2×": "lr 0.2", "4×": "lr 0.4"},
    "Upsampling factor": {"2": "batch 128", "3": "factor 3", "4": "factor 4", "5": "factor 5"},
}
CHARTS = tuple(
    Panel(
        title,
        "test error (%)",
        {
            shown: {label: f"{case}.{method}.error" for label, case in cases.items()}
            for method, shown in (("original", "SGD"), ("useful", "SGD + USEFUL"))
        },
        f"Test error by {title.lower()}: {OVER_SEEDS}.",
        x=title.lower(),
    )
    for title, cases in _PANELS.items()
)

EXPERIMENT = Experiment(
    "nguyen2024/fig10",
    "Figure 10: batch size, learning rate, upsampling factor",
    "USEFUL lowers the test error at every batch size, learning rate and factor, and a factor of 2 is best.",
    plan_of(*CASES),
    CLAIMS,
    scales(*CASES),
    CHARTS,
    (
        READ_OFF,
        "Learning rates of 0.1, 0.2 and 0.4 at full size; at small ones once, twice and four times the usual one.",
    ),
    primary=tuple(claim.name for claim in CLAIMS),
)
