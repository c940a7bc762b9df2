"""Table 2: SGD on the original data, on randomly upsampled data, and on USEFUL's."""

from evenly.papers.experiment import Experiment
from evenly.papers.nguyen2024.comparisons import below, error_charts, plan_of, scales
from evenly.papers.nguyen2024.recipes import Case

NETWORK = {"cifar10": "preact-resnet18", "cifar100": "preact-resnet34"}
SUFFIX = {"cifar10": "", "cifar100": "-cifar100"}
# CIFAR-10 goes unnamed: at the small size other data stand in for it.
TITLE = {"cifar10": "", "cifar100": ", CIFAR-100"}


def selection(table: str, data: str, ascent: str, *, plain: float, random: float, useful: float) -> Experiment:
    """Tables 2 and 3: the paper's three errors, by SGD or by SAM."""
    name = "sgd" if ascent == "none" else ascent
    case = Case(name, data, NETWORK[data], ascent, ("original", "random"))
    return Experiment(
        key=f"nguyen2024/{table}{SUFFIX[data]}",
        title=f"Table {table[-1]}: how examples are chosen, {name.upper()}{TITLE[data]}",
        claim=f"USEFUL lowers the test error of {name.upper()}, and random upsampling of as many examples does not.",
        plan=plan_of(case),
        claims=(
            below(
                "useful",
                f"{name.upper()} on USEFUL's data has a lower test error than on the original data",
                f"{name}.useful.error",
                f"{name}.original.error",
                numbers=(useful, plain),
            ),
            below(
                "random",
                f"{name.upper()} on USEFUL's data has a lower test error than on randomly upsampled data",
                f"{name}.useful.error",
                f"{name}.random.error",
                numbers=(useful, random),
            ),
        ),
        scales=scales(case),
        charts=error_charts,
        errata=(
            "USEFUL takes more steps than plain training (as many more as it upsamples): random upsampling is the "
            "control for them, and `evenly useful --controls steps` another.",
        ),
        primary="useful",
    )


EXPERIMENTS = (
    selection("table2", "cifar10", "none", plain=5.07, random=5.14, useful=4.79),
    selection("table2", "cifar100", "none", plain=24.06, random=24.30, useful=22.58),
)
