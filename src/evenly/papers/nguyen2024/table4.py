"""Table 4: USEFUL with SAM and ASAM, with and without TrivialAugment."""

from evenly.papers.experiment import Experiment
from evenly.papers.nguyen2024.comparisons import error_charts, numeric_claim, plan_of, scales
from evenly.papers.nguyen2024.recipes import Case

NUMBERS = {"sam": (4.04, 4.23), "asam": (4.09, 4.33), "sam+ta": (3.49, 4.06), "asam+ta": (3.46, 3.93)}
CLAIMS = tuple(
    numeric_claim(
        name,
        f"{name.upper()} on USEFUL's data has a lower test error than on the original data",
        f"{name}.useful.error < {name}.original.error",
        numbers,
    )
    for name, numbers in NUMBERS.items()
)
CASES = tuple(Case(name, ascent=name.removesuffix("+ta"), trivial=name.endswith("+ta")) for name in NUMBERS)

EXPERIMENT = Experiment(
    key="nguyen2024/table4",
    title="Table 4: SAM and ASAM, with and without TrivialAugment",
    claim="USEFUL lowers the test error of SAM and of ASAM, also with TrivialAugment.",
    plan=plan_of(*CASES),
    claims=CLAIMS,
    scales=scales(*CASES),
    charts=error_charts,
    primary=("sam", "asam", "sam+ta", "asam+ta"),
)
