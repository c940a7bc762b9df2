"""What the experiments on images share: parts, sizes and costs, claims with the paper's numbers, and charts."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from evenly.papers.charts import OVER_SEEDS, bars
from evenly.papers.claim import Claim
from evenly.papers.experiment import Context, Measured, Part, PartResult, Scale
from evenly.papers.nguyen2024.recipes import STAND_INS, Case, Settings, recipe, until
from evenly.papers.train_and_measure import train_useful
from evenly.report.chart import Chart

Work = Callable[..., PartResult]
LEAST = 0.1  # points of test error that two runs of one recipe may differ by
# The methods as they are recorded, and as they are shown.
METHODS = {
    "original": "plain",
    "random": "random",
    "steps": "equal steps",
    "upweight": "upweight",
    "quantile": "quantile",
    "misclassified": "misclassified",
    "useful": "USEFUL",
}
OUR_SAM = (
    "weight decay is in the optimizer, not in the loss, and so not in SAM's ascent",
    "BatchNorm's running statistics are not updated in SAM's second pass",
)
WITHOUT_BATCH_NORM = ("mlp", "vit-s")
AT_EPOCH = "the separating epoch is set in advance, not the best of several"
BY_RULE = "the separating epoch is where the gain in training error shrinks, set by rule, not the best of several"
MACHINERY = ("scikit-learn's digits, a perceptron 32 wide, 2 epochs: a test of the machinery, not of the claim",)
READ_OFF = "The figure's bars carry no numbers: the order is judged, not the height."
_STAND_IN_DATA = {
    "cifar10": "6,000 examples of Fashion-MNIST instead of CIFAR-10",
    "cifar100": "10,000 examples of CIFAR-100",
}
_STAND_IN_NETWORK = {
    "vit-s": "a ViT of 3 blocks, 48 wide, instead of ViT-S; 20 epochs of batches of 32 instead of 200 of 128, at the "
    "paper's learning rate of 0.01, and no augmentation",
    "": "three convolutions (114,000 parameters) instead of the paper's network; 20 epochs of batches of 32 at a "
    "learning rate of 0.05, instead of 200 of 128 at 0.1, and no augmentation",
}
# Minutes that a plain run of SGD takes on two cores: measured for smoke, small and mlp, from operations for the others.
_RUN_MINUTES = {
    "smoke": 0.005,
    "small": 0.4,
    "preact-resnet18": 5500.0,
    "preact-resnet34": 11500.0,
    "vgg19-bn": 4000.0,
    "densenet121": 28000.0,
    "vit-s": 35000.0,
    "mlp": 16.0,
}
_EXAMPLES = {"cifar10": 1.0, "cifar100": 1.0, "stl10": 0.9, "cinic10": 1.8, "tiny-imagenet": 8.0}  # in runs of CIFAR


def numeric_claim(
    name: str,
    says: str,
    relation: str,
    numbers: tuple[float, float],
    *,
    margin: float | None = None,
    after: bool = False,
) -> Claim:
    """A claim with the paper's two numbers; our difference may be off by half of theirs."""
    if margin is None:
        margin = max(LEAST, abs(numbers[0] - numbers[1]) / 2)
    return Claim(name, says, relation, *numbers, margin, after=after)


def useful_lowers(*names: str) -> tuple[Claim, ...]:
    """For each name the claim that USEFUL lowers its test error."""
    return tuple(
        Claim(name, f"USEFUL lowers the test error of {name.upper()}", f"{name}.useful.error < {name}.original.error")
        for name in names
    )


#: "SGD+USEFUL yields better performance than SAM alone" (STL-10, ViT-S, the perceptron).
BEYOND_SAM = Claim(
    "beyond SAM", "SGD on USEFUL's data has a lower test error than SAM", "sgd.useful.error < sam.original.error"
)


def plan_of(*cases: Case, work: Work = train_useful) -> Any:
    """`plan(seeds, size=…)` for these cases."""
    return partial(parts, cases=cases, work=work)


def parts(seeds: tuple[int, ...], *, cases: Sequence[Case], size: str, work: Work = train_useful) -> list[Part]:
    """A part for every case (or group of them) and seed; seeds in turn, so that what was interrupted is balanced."""
    every_part = []
    for seed in seeds:
        for case in cases:
            if not case.group:
                every_part.append(Part(f"{case.name} {seed}", work, _arguments(case, size, seed)))
        for group in dict.fromkeys(case.group for case in cases if case.group):
            each = [_arguments(case, size, seed) for case in cases if case.group == group]
            every_part.append(Part(f"{group} {seed}", train_in_turn, {"comparisons": each}))
    return every_part


def _arguments(case: Case, size: str, seed: int) -> Settings:
    arguments = {
        "recipe": recipe(case, size),
        "seed": seed,
        "name": case.name,
        "controls": list(case.controls),
        "until": until(case, size),
        "factor": case.factor,
    }
    if case.measured:
        examples = 200 if size == "smoke" else 1000
        arguments["measures"] = ["sharpness"]
        arguments["options"] = {"examples": examples, "options": {"sharpness": {"trace_probes": 0}}}
    return arguments


def train_in_turn(context: Context, *, comparisons: Sequence[Mapping[str, Any]]) -> PartResult:
    """Comparisons that share runs, one after the other, so that no two processes train the same run."""
    values: dict[str, Mapping[int, float]] = {}
    series: dict[str, Any] = {}
    for arguments in comparisons:
        result = train_useful(context, **arguments)
        values |= result.values
        series[arguments["name"]] = result.series
    return PartResult(values, series)


def scales(
    *cases: Case,
    small: bool = True,
    small_deviations: tuple[str, ...] = (),
    full_deviations: tuple[str, ...] = (),
    value: float = 0.0,
    wanted: int = 0,
) -> dict[str, Scale]:
    """The three sizes with what they need, how they deviate and what they cost; `value` is that of the full one."""
    runs = sum(case.runs for case in cases)
    data = tuple(dict.fromkeys(case.data for case in cases))
    full = sum(case.runs * _RUN_MINUTES[case.model] * _EXAMPLES[case.data] for case in cases)
    sizes = {
        "smoke": Scale(
            (0, 1), round(2 * runs * _RUN_MINUTES["smoke"], 3), {"size": "smoke"}, (), MACHINERY, stand_in=True
        )
    }
    if small and all(name in STAND_INS for name in data):
        names = tuple(dict.fromkeys(str(STAND_INS[name]["name"]) for name in data))
        sizes["small"] = Scale(
            (0, 1, 2),
            round(3 * runs * _RUN_MINUTES["small"], 1),
            {"size": "small"},
            names,
            (
                *(_STAND_IN_DATA[name] for name in data if name in _STAND_IN_DATA),
                *dict.fromkeys(_STAND_IN_NETWORK.get(case.model, _STAND_IN_NETWORK[""]) for case in cases),
                *small_deviations,
                BY_RULE,
            ),
            stand_in=True,
        )
    sizes["full"] = Scale(
        (0, 1, 2),
        float(round(3 * full)),
        {"size": "full"},
        data,
        (*full_deviations, *_full_deviations(cases)),
        levels=True,
        value=value,
        wanted=wanted,
    )
    return sizes


def _full_deviations(cases: Sequence[Case]) -> tuple[str, ...]:
    """How the paper's own recipe is read, as far as it concerns these cases."""
    with_sam = [case for case in cases if case.ascent != "none"]
    normalised = any(case.model not in WITHOUT_BATCH_NORM for case in with_sam)
    sam = OUR_SAM[: len(with_sam) and 1 + normalised]
    rules = dict.fromkeys(BY_RULE if until(case, "full")["rule"] == "gain" else AT_EPOCH for case in cases)
    return (*sam, *rules)


def changes(values: Mapping[str, Mapping[int, float]]) -> dict[str, dict[int, float]]:
    """`NAME.METHOD.change`: the error minus that on the original data; for SAM on the original data, minus SGD's.

    >>> sgd = {"sgd.original.error": {0: 5.0}, "sgd.useful.error": {0: 4.5}}
    >>> changes(sgd | {"sam.original.error": {0: 4.0}})
    {'sgd.useful.change': {0: -0.5}, 'sam.original.change': {0: -1.0}}
    """
    differences = {}
    for quantity, own in values.items():
        name, _, rest = quantity.partition(".")
        method, _, what = rest.partition(".")
        plain = "sgd.original.error" if method == "original" else f"{name}.original.error"
        if what == "error" and quantity != plain and plain in values:
            differences[f"{name}.{method}.change"] = {seed: own[seed] - values[plain][seed] for seed in own}
    return differences


def method_chart(measured: Measured, what: str, title: str, y: str, *, bar: bool = False) -> Chart:
    """A quantity for every method, side by side, for every name that it was measured under."""
    endings = tuple(f".{method}.{what}" for method in METHODS)
    names = dict.fromkeys(q.removesuffix(end) for q in measured.values for end in endings if q.endswith(end))
    layers = [
        bars(
            measured,
            {shown: f"{name}.{method}.{what}" for method, shown in METHODS.items()},
            name=name.upper(),
            bar=bar,
        )
        for name in names
    ]
    return Chart(title, "", y, layers, f"{title} of every way to train: {OVER_SEEDS}.")


def error_charts(measured: Measured) -> list[Chart]:
    """The test error of every way to train."""
    return [method_chart(measured, "error", "Test error", "test error (%)")]
