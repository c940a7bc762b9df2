"""Figure 9: spurious correlation in training, a balanced test set: Waterbirds, and CIFAR-MNIST in its place."""

from functools import partial

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.nguyen2024.comparisons import BY_RULE, OUR_SAM, changes, error_charts
from evenly.papers.nguyen2024.recipes import RHO, Settings
from evenly.papers.train_and_measure import train_useful

CLAIM = "SAM and USEFUL lower the error on a balanced test set after training on spuriously correlated data."
_BOTH = Claim("both", "USEFUL lowers the test error of SAM", "sam.useful.error < sam.original.error")
_POINTS = "The paper gives the difference, not the errors: at most half of it off."
WATERBIRDS = (
    Claim("useful", "USEFUL lowers the test error of SGD", "sgd.useful.change < 0", -5.8, margin=2.9, note=_POINTS),
    Claim("sam", "SAM has a lower test error than SGD", "sam.original.change < 0", -6.21, margin=3.105, note=_POINTS),
    _BOTH,
)
PRETRAINED = (Claim("useful", "USEFUL lowers the test error of SGD", "sgd.useful.error < sgd.original.error"), _BOTH)
CIFAR_MNIST = (
    Claim("useful", "USEFUL lowers the error of SGD on balanced test data", "sgd.useful.error < sgd.original.error"),
    Claim(
        "beside random",
        "and it is below that of random upsampling of as many examples",
        "sgd.useful.error < sgd.random.error",
    ),
    Claim(
        "beside steps",
        "and it is below that of as many steps on the original data",
        "sgd.useful.error < sgd.steps.error",
    ),
    Claim("sam", "SAM has a lower error on balanced test data than SGD", "sam.original.error < sgd.original.error"),
    Claim("both", "USEFUL lowers the error of SAM on balanced test data", "sam.useful.error < sam.original.error"),
)


def _waterbirds_recipe(size: str, ascent: str, *, pretrained: bool) -> Settings:
    if size == "smoke":
        settings: Settings = {
            "data": {"name": "digit-dominoes", "options": {"alpha": 0.9}},
            "model": {"name": "mlp", "options": {"width": 32}},
            "optimizer": {"lr": 0.05},
            "epochs": 2,
            "batch_size": 128,
            "evaluate_every": 2,
        }
    else:
        resnet50 = {"name": "timm:resnet50", "options": {"pretrained": True}}
        settings = {
            "data": {"name": "waterbirds", "options": {"size": 224}},
            "augment": ["mirror"],
            "model": resnet50 if pretrained else {"name": "resnet18"},
            "optimizer": {"lr": 0.001 if pretrained else 0.1},
            "epochs": 50 if pretrained else 200,
            "batch_size": 128,
        }
    return settings | ({"ascent": {"rule": ascent, "rho": RHO[ascent]}} if ascent != "none" else {})


def _cifar_mnist_recipe(size: str, ascent: str) -> Settings:
    if size == "smoke":
        settings: Settings = {
            "data": {"name": "digit-dominoes", "options": {"alpha": 0.9, "conflict": 0.1}},
            "model": {"name": "mlp", "options": {"width": 32}},
            "epochs": 2,
            "evaluate_every": 2,
        }
    else:
        settings = {
            "data": {"name": "cifar-mnist", "options": {"conflict": 0.05}},
            "augment": ["normalise:mean"],
            "model": {"name": "convnet"},
            "epochs": 20,
            "evaluate_every": 20,
        }
    settings |= {
        "optimizer": {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.0},
        "schedule": {"kind": "cosine"},
        "batch_size": 100,
    }
    return settings | ({"ascent": {"rule": ascent, "rho": 0.1}} if ascent != "none" else {})


def _part(name: str, seed: int, size: str, recipe: Settings, controls: list[str], split: str) -> Part:
    until = {"rule": "epoch", "value": 1} if size == "smoke" else {"rule": "gain"}
    return Part(
        f"{name} {seed}",
        train_useful,
        {"recipe": recipe, "seed": seed, "name": name, "controls": controls, "until": until, "split": split},
    )


def plan_waterbirds(seeds: tuple[int, ...], *, size: str, pretrained: bool) -> list[Part]:
    """SGD and SAM, on the original data and on USEFUL's."""
    split = "balanced" if size == "smoke" else "test"
    return [
        _part(name, seed, size, _waterbirds_recipe(size, ascent, pretrained=pretrained), ["original"], split)
        for seed in seeds
        for name, ascent in (("sgd", "none"), ("sam", "sam"))
    ]


def plan_cifar_mnist(seeds: tuple[int, ...], *, size: str) -> list[Part]:
    """SGD beside its controls and SAM, each on USEFUL's data too, judged where the digit says nothing."""
    return [
        _part(name, seed, size, _cifar_mnist_recipe(size, ascent), controls, "balanced")
        for seed in seeds
        for name, ascent, controls in (("sgd", "none", ["original", "random", "steps"]), ("sam", "sam", ["original"]))
    ]


def _waterbirds(
    key: str, title: str, sentence: str, claims: tuple[Claim, ...], recipe: str, minutes: float
) -> Experiment:
    return Experiment(
        f"nguyen2024/{key}",
        title,
        sentence,
        partial(plan_waterbirds, pretrained=key.endswith("pretrained")),
        claims,
        {
            "smoke": Scale(
                (0, 1),
                0.05,
                {"size": "smoke"},
                (),
                ("dominoes of scikit-learn's digits instead of Waterbirds: a test of the machinery",),
            ),
            "full": Scale((0, 1, 2), minutes, {"size": "full"}, ("waterbirds",), (recipe, *OUR_SAM, BY_RULE)),
        },
        error_charts,
        (
            "Waterbirds' test set is balanced between backgrounds within each class, not between classes; the error "
            "is the average over all of it.",
        ),
        changes,
        primary=tuple(claim.name for claim in claims[:2]),
    )


EXPERIMENTS = (
    _waterbirds(
        "fig9",
        "Figure 9: Waterbirds, ResNet-18 from scratch",
        CLAIM,
        WATERBIRDS,
        "The paper gives no recipe for these data; here that of its other experiments, with mirroring only",
        60000,
    ),
    _waterbirds(
        "fig9-pretrained",
        "Figure 9: Waterbirds, a pre-trained ResNet-50",
        "USEFUL lowers the error of SGD and SAM on a balanced test set after training on spuriously correlated data.",
        PRETRAINED,
        "The paper gives no recipe for fine-tuning; here 50 epochs at a learning rate of 0.001",
        35000,
    ),
    Experiment(
        "nguyen2024/fig9-cifar-mnist",
        "In place of figure 9: CIFAR-MNIST, 95% correlated",
        CLAIM,
        plan_cifar_mnist,
        CIFAR_MNIST,
        {
            "smoke": Scale(
                (0, 1), 0.1, {"size": "smoke"}, deviations=("digits on digits, a small perceptron, 2 epochs",)
            ),
            "full": Scale(
                tuple(range(10)),
                120.0,
                {"size": "full"},
                ("cifar-mnist",),
                (
                    "MNIST 0/1 on CIFAR-10 airplane/automobile instead of Waterbirds; the digit agrees with the label "
                    "in 95% of the training examples and says nothing in the test set",
                    "three convolutions, 20 epochs, batch 100, learning rate 0.01 with a cosine, no augmentation",
                    "the separating epoch is where the gain in training error shrinks; SAM's ρ is 0.1, not chosen",
                ),
                stand_in=True,
                value=8.0,
                wanted=10,
            ),
        },
        error_charts,
        primary=("useful", "sam"),
    ),
)
