"""A stand-in for figure 9: CIFAR-MNIST in which the digit agrees with the label in 95 % of the training examples."""

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.nguyen2024.recipes import Settings
from evenly.papers.nguyen2024.tables import CHARTS, below

SEEDS = tuple(range(10))
METHODS = {"sgd": ("none", ("original", "random", "steps")), "sam": ("sam", ("original",))}


def _recipe(size: str, ascent: str) -> Settings:
    if size == "smoke":
        made: Settings = {
            "data": {"name": "digit-dominoes", "options": {"alpha": 0.9, "conflict": 0.1}},
            "model": {"name": "mlp", "options": {"width": 32}},
            "epochs": 2,
            "evaluate_every": 2,
        }
    else:
        made = {
            "data": {"name": "cifar-mnist", "options": {"conflict": 0.05}},
            "augment": ["normalise:mean"],
            "model": {"name": "convnet"},
            "epochs": 20,
            "evaluate_every": 20,
        }
    made |= {
        "optimizer": {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.0},
        "schedule": {"kind": "cosine"},
        "batch_size": 100,
    }
    return made | ({"ascent": {"rule": ascent, "rho": 0.1}} if ascent != "none" else {})


def plan(seeds: tuple[int, ...], *, size: str) -> list[Part]:
    """SGD beside its controls and SAM, each by USEFUL too, judged where the digit says nothing."""
    return [
        Part(
            f"{name} {seed}",
            "learning:usefully",
            {
                "recipe": _recipe(size, ascent),
                "seed": seed,
                "name": name,
                "controls": list(controls),
                "until": {"rule": "epoch", "value": 1} if size == "smoke" else {"rule": "gain"},
                "split": "balanced",
            },
        )
        for seed in seeds
        for name, (ascent, controls) in METHODS.items()
    ]


def _beside(control: str, words: str) -> Claim:
    return below(
        f"beside {control}",
        f"and it is below that of {words}",
        "sgd.useful.error",
        f"sgd.{control}.error",
    )


FIG_9_STAND_IN = Experiment(
    "nguyen2024/fig9-cifar-mnist",
    "In place of figure 9: CIFAR-MNIST, 95 % correlated",
    "SAM and USEFUL lower the error on a balanced test set after training on spuriously correlated data.",
    plan,
    (
        below(
            "useful", "USEFUL lowers the error of SGD on balanced test data", "sgd.useful.error", "sgd.original.error"
        ),
        _beside("random", "random upsampling of as many examples"),
        _beside("steps", "as many steps on the original data"),
        below(
            "sam", "SAM has a lower error on balanced test data than SGD", "sam.original.error", "sgd.original.error"
        ),
        below("both", "USEFUL lowers the error of SAM on balanced test data", "sam.useful.error", "sam.original.error"),
    ),
    {
        "smoke": Scale((0, 1), 0.1, {"size": "smoke"}, deviations=("digits on digits, a small perceptron, 2 epochs",)),
        "full": Scale(
            SEEDS,
            90.0,
            {"size": "full"},
            ("cifar-mnist",),
            (
                "MNIST 0/1 on CIFAR-10 airplane/automobile instead of Waterbirds; the digit agrees with the label in "
                "95 % of the training examples and says nothing in the test set",
                "three convolutions, 20 epochs, batch 100, learning rate 0.01 with a cosine, no augmentation",
                "the separating epoch is where the gain in training error shrinks; SAM's ρ is 0.1, not chosen",
            ),
            stand_in=True,
            value=8.0,
            wanted=10,
        ),
    },
    f"{CHARTS}:methods",
    primary="useful",
)
EXPERIMENTS = (FIG_9_STAND_IN,)
