"""Table 5: the hard examples shown twice, or their loss counted twice."""

from evenly.papers.experiment import Experiment
from evenly.papers.nguyen2024.comparisons import error_charts, numeric_claim, plan_of, scales
from evenly.papers.nguyen2024.recipes import NETWORK, SUFFIX, TITLE, Case


def _experiment(data: str, **numbers: tuple[float, float]) -> Experiment:
    """`numbers` are the paper's errors of USEFUL and of upweighting, by SGD and by SAM."""
    cases = [Case(n, data, NETWORK[data], a, ("upweight",)) for n, a in (("sgd", "none"), ("sam", "sam"))]
    return Experiment(
        key=f"nguyen2024/table5{SUFFIX[data]}",
        title=f"Table 5: shown twice or counted twice{TITLE[data]}",
        claim="Showing the hard examples twice is better than doubling their loss.",
        plan=plan_of(*cases),
        claims=tuple(
            numeric_claim(
                name,
                f"with {name.upper()}, upsampling has a lower test error than upweighting the same examples",
                f"{name}.useful.error < {name}.upweight.error",
                pair,
            )
            for name, pair in numbers.items()
        ),
        scales=scales(*cases),
        charts=error_charts,
        errata=(
            "The paper does not say whether the doubled losses are divided by their weights; here they are not, so "
            "that upweighting also takes larger steps.",
        ),
        primary=("sgd", "sam"),
    )


EXPERIMENTS = (
    _experiment("cifar10", sgd=(4.79, 5.33), sam=(4.04, 4.28)),
    _experiment("cifar100", sgd=(22.58, 26.70), sam=(20.66, 21.75)),
)
