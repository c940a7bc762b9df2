"""Table 2: SGD on the original data, on randomly upsampled data, and on USEFUL's; also with a network for two cores."""

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.nguyen2024.comparisons import MACHINERY, error_charts, numeric_claim, plan_of, scales
from evenly.papers.nguyen2024.recipes import NETWORK, SUFFIX, TITLE, Case, Settings
from evenly.papers.train_and_measure import train_useful


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
            numeric_claim(
                "useful",
                f"{name.upper()} on USEFUL's data has a lower test error than on the original data",
                f"{name}.useful.error < {name}.original.error",
                (useful, plain),
            ),
            numeric_claim(
                "random",
                f"{name.upper()} on USEFUL's data has a lower test error than on randomly upsampled data",
                f"{name}.useful.error < {name}.random.error",
                (useful, random),
            ),
        ),
        scales=scales(case),
        charts=error_charts,
        errata=(
            "USEFUL takes more steps than plain training (as many more as it upsamples): random upsampling is the "
            "control for them, and `evenly useful --controls steps` another.",
        ),
        primary=("useful", "random"),
    )


def _airbench_recipe(size: str) -> Settings:
    if size == "smoke":
        return {
            "data": {"name": "digits"},
            "model": {"name": "mlp", "options": {"width": 32}},
            "optimizer": {"lr": 0.05},
            "epochs": 2,
            "evaluate_every": 2,
        }
    return {
        "data": {"name": "cifar10"},
        "augment": ["pad-crop:2", "mirror"],
        "model": {"name": "airbench"},
        "optimizer": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 5e-4},
        "schedule": {"kind": "cosine", "warmup_epochs": 2},
        "epochs": 16,
        "batch_size": 128,
        "evaluate_every": 4,
    }


def plan_airbench(seeds: tuple[int, ...], *, size: str) -> list[Part]:
    """USEFUL beside plain training, random upsampling and as many steps, a part for each seed."""
    until = {"rule": "epoch", "value": 1 if size == "smoke" else 4}
    return [
        Part(
            f"sgd {seed}",
            train_useful,
            {
                "recipe": _airbench_recipe(size),
                "seed": seed,
                "name": "sgd",
                "controls": ["original", "random", "steps"],
                "until": until,
            },
        )
        for seed in seeds
    ]


AIRBENCH = Experiment(
    key="nguyen2024/table2-airbench",
    title="In place of table 2: CIFAR-10 with a network that two cores train",
    claim="USEFUL lowers the test error of SGD, and random upsampling of as many examples does not.",
    plan=plan_airbench,
    claims=tuple(
        Claim(
            name, f"SGD on USEFUL's data has a lower test error than {words}", f"sgd.useful.error < sgd.{control}.error"
        )
        for name, control, words in (
            ("useful", "original", "on the original data"),
            ("random", "random", "on randomly upsampled data"),
            ("steps", "steps", "after as many steps on the original data"),
        )
    ),
    scales={
        "smoke": Scale((0, 1), 0.04, {"size": "smoke"}, (), MACHINERY, stand_in=True),
        "full": Scale(
            (0, 1, 2),
            330.0,
            {"size": "full"},
            ("cifar10",),
            (
                "airbench's network at half its width (498,000 parameters) instead of PreAct ResNet-18",
                "16 epochs at 0.1 with Nesterov's momentum, warmed up for 2, then a cosine, instead of 200 in steps",
                "separated after epoch 4 of 16, set in advance, instead of after epoch 8 of 200",
            ),
            stand_in=True,
            value=6.0,
            wanted=10,
        ),
    },
    charts=error_charts,
    primary=("useful", "random"),
)

EXPERIMENTS = (
    selection("table2", "cifar10", "none", plain=5.07, random=5.14, useful=4.79),
    selection("table2", "cifar100", "none", plain=24.06, random=24.30, useful=22.58),
    AIRBENCH,
)
