"""Tables 1 to 6: what is compared, what the paper found, and how near we must come. Errors are in percent."""

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment
from evenly.papers.nguyen2024.recipes import Case, plan_of, scales

CHARTS = "nguyen2024.charts_runs"
LEAST = 0.1  # points of test error that two runs of one recipe may differ by
NETWORK = {"cifar10": "preact-resnet18", "cifar100": "preact-resnet34"}
# CIFAR-10 goes unnamed: at the small size other data stand in for it.
TITLES = {"cifar10": "", "cifar100": ", CIFAR-100"}
EQUAL_STEPS = (
    "USEFUL takes more steps than plain training (as many more as it upsamples): random upsampling is the control "
    "for them, and `evenly useful --controls steps` another.",
)


def below(
    name: str,
    says: str,
    value: str,
    against: str,
    *,
    numbers: tuple[float, float] | None = None,
    margin: float | None = None,
) -> Claim:
    """A claim that one number is below another, with the paper's two; ours may be half their difference off."""
    if numbers is None:
        return Claim(name, says, value, "less", against)
    if margin is None:
        margin = max(LEAST, abs(numbers[0] - numbers[1]) / 2)
    return Claim(name, says, value, "less", against, *numbers, margin)


def _key(table: str, data: str) -> str:
    return f"nguyen2024/{table}" + ("" if data == "cifar10" else f"-{data}")


def _selection(table: str, data: str, ascent: str, numbers: tuple[float, float, float]) -> Experiment:
    """Tables 2 and 3: original data, random upsampling and USEFUL, by SGD or by SAM."""
    name = "sgd" if ascent == "none" else ascent
    case = Case(name, data, NETWORK[data], ascent, ("original", "random"))
    original, random, useful = numbers
    return Experiment(
        key=_key(table, data),
        title=f"Table {table[-1]}: how examples are chosen, {name.upper()}{TITLES[data]}",
        claim=f"USEFUL lowers the test error of {name.upper()}, and random upsampling of as many examples does not.",
        plan=plan_of(case),
        claims=(
            below(
                "useful",
                f"{name.upper()} on USEFUL's data has a lower test error than on the original data",
                f"{name}.useful.error",
                f"{name}.original.error",
                numbers=(useful, original),
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
        charts=f"{CHARTS}:methods",
        errata=EQUAL_STEPS,
    )


def _upweighting(data: str, numbers: tuple[float, float, float, float]) -> Experiment:
    cases = [Case(n, data, NETWORK[data], a, ("upweight",)) for n, a in (("sgd", "none"), ("sam", "sam"))]
    pairs = {"sgd": (numbers[1], numbers[0]), "sam": (numbers[3], numbers[2])}
    return Experiment(
        key=_key("table5", data),
        title=f"Table 5: shown twice or counted twice{TITLES[data]}",
        claim="Showing the hard examples twice is better than doubling their loss.",
        plan=plan_of(*cases),
        claims=tuple(
            below(
                name,
                f"with {name.upper()}, upsampling has a lower test error than upweighting the same examples",
                f"{name}.useful.error",
                f"{name}.upweight.error",
                numbers=pair,
            )
            for name, pair in pairs.items()
        ),
        scales=scales(*cases),
        charts=f"{CHARTS}:methods",
        errata=(
            "The paper does not say whether the doubled losses are divided by their weights; here they are not, so "
            "that upweighting also takes larger steps.",
        ),
    )


def _partition(data: str, numbers: tuple[float, float, float]) -> Experiment:
    case = Case("sgd", data, NETWORK[data], "none", ("quantile", "misclassified"))
    quantile, misclassified, useful = numbers
    return Experiment(
        key=_key("table6", data),
        title=f"Table 6: how the hard examples are found{TITLES[data]}",
        claim="Clusters of early outputs choose better examples than a quantile of the loss or misclassification.",
        plan=plan_of(case),
        claims=tuple(
            below(
                other,
                f"SGD on the clusters' examples has a lower test error than on those of {other}",
                "sgd.useful.error",
                f"sgd.{other}.error",
                numbers=(useful, theirs),
            )
            for other, theirs in (("quantile", quantile), ("misclassified", misclassified))
        ),
        scales=scales(case),
        charts=f"{CHARTS}:methods",
        errata=(
            "The text defines the quantile by training errors above the median; an error is 0 or 1, so the loss is "
            "meant and used.",
        ),
    )


MEASURED = (Case("sgd", measured=True), Case("sam", ascent="sam", measured=True))
_TABLE_1 = Experiment(
    key="nguyen2024/table1",
    title="Table 1: sharpness at the end of training",
    claim="USEFUL and SAM end in flatter minima than SGD.",
    plan=plan_of(*MEASURED),
    claims=(
        below(
            "useful",
            "λmax is smaller after SGD on USEFUL's data than after SGD",
            "sgd.useful.lambda_max",
            "sgd.original.lambda_max",
            numbers=(41.8, 53.8),
        ),
        below(
            "sam",
            "λmax is smaller after SAM than after SGD",
            "sam.original.lambda_max",
            "sgd.original.lambda_max",
            numbers=(12.4, 53.8),
            margin=15.0,
        ),
        below(
            "bulk",
            "λmax/λ5 is smaller after SGD on USEFUL's data than after SGD",
            "sgd.useful.lambda_ratio_5",
            "sgd.original.lambda_ratio_5",
            numbers=(1.5, 3.8),
        ),
        below(
            "bulk of SAM",
            "λmax/λ5 is smaller after SAM than after SGD",
            "sam.original.lambda_ratio_5",
            "sgd.original.lambda_ratio_5",
            numbers=(2.4, 3.8),
        ),
    ),
    scales=scales(*MEASURED),
    charts=f"{CHARTS}:sharpness",
    errata=("The paper gives one number for each method, without spread or the number of seeds.",),
)

_SAM_FAMILY = tuple(
    Case(f"{ascent}{'+ta' if trivial else ''}", ascent=ascent, trivial=trivial)
    for trivial in (False, True)
    for ascent in ("sam", "asam")
)
_TABLE_4_NUMBERS = {"sam": (4.04, 4.23), "asam": (4.09, 4.33), "sam+ta": (3.49, 4.06), "asam+ta": (3.46, 3.93)}
_TABLE_4 = Experiment(
    key="nguyen2024/table4",
    title="Table 4: SAM and ASAM, with and without TrivialAugment",
    claim="USEFUL lowers the test error of SAM and of ASAM, also with TrivialAugment.",
    plan=plan_of(*_SAM_FAMILY),
    claims=tuple(
        below(
            name,
            f"{name.upper()} on USEFUL's data has a lower test error than on the original data",
            f"{name}.useful.error",
            f"{name}.original.error",
            numbers=numbers,
        )
        for name, numbers in _TABLE_4_NUMBERS.items()
    ),
    scales=scales(*_SAM_FAMILY),
    charts=f"{CHARTS}:methods",
)

EXPERIMENTS = (
    _TABLE_1,
    _selection("table2", "cifar10", "none", (5.07, 5.14, 4.79)),
    _selection("table2", "cifar100", "none", (24.06, 24.30, 22.58)),
    _selection("table3", "cifar10", "sam", (4.23, 4.17, 4.04)),
    _selection("table3", "cifar100", "sam", (21.25, 21.11, 20.66)),
    _TABLE_4,
    _upweighting("cifar10", (5.33, 4.79, 4.28, 4.04)),
    _upweighting("cifar100", (26.70, 22.58, 21.75, 20.66)),
    _partition("cifar10", (5.27, 4.98, 4.79)),
    _partition("cifar100", (23.49, 23.86, 22.58)),
)
