"""Figure 9: spurious correlation in training, a balanced test set; from scratch and fine-tuned."""

from functools import partial

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment, Part, Scale
from evenly.papers.nguyen2024.recipes import PAPERS_OWN, RHO, Settings
from evenly.papers.nguyen2024.tables import CHARTS, below


def _recipe(size: str, ascent: str, *, pretrained: bool) -> Settings:
    if size == "smoke":
        made: Settings = {
            "data": {"name": "digit-dominoes", "options": {"alpha": 0.9}},
            "model": {"name": "mlp", "options": {"width": 32}},
            "optimizer": {"lr": 0.05},
            "epochs": 2,
            "batch_size": 128,
            "evaluate_every": 2,
        }
    else:
        tuned = {"name": "timm:resnet50", "options": {"pretrained": True}}
        made = {
            "data": {"name": "waterbirds", "options": {"size": 224}},
            "augment": ["mirror"],
            "model": tuned if pretrained else {"name": "resnet18"},
            "optimizer": {"lr": 0.001 if pretrained else 0.1},
            "epochs": 50 if pretrained else 200,
            "batch_size": 128,
        }
    return made | ({"ascent": {"rule": ascent, "rho": RHO[ascent]}} if ascent != "none" else {})


def plan(seeds: tuple[int, ...], *, size: str, pretrained: bool) -> list[Part]:
    """SGD and SAM, on the original data and on USEFUL's."""
    return [
        Part(
            f"{name} {seed}",
            "learning:usefully",
            {
                "recipe": _recipe(size, ascent, pretrained=pretrained),
                "seed": seed,
                "name": name,
                "controls": ["original"],
                "until": {"rule": "epoch", "value": 1} if size == "smoke" else {"rule": "gain"},
                "split": "balanced" if size == "smoke" else "test",
            },
        )
        for seed in seeds
        for name, ascent in (("sgd", "none"), ("sam", "sam"))
    ]


def _experiment(key: str, title: str, *, pretrained: bool, minutes: float, claims: tuple[Claim, ...]) -> Experiment:
    recipe = "The paper gives no recipe for these data; here that of its other experiments, with mirroring only"
    if pretrained:
        recipe = "The paper gives no recipe for fine-tuning; here 50 epochs at a learning rate of 0.001"
    return Experiment(
        f"nguyen2024/{key}",
        title,
        "SAM and USEFUL lower the error on a balanced test set after training on spuriously correlated data.",
        partial(plan, pretrained=pretrained),
        claims,
        {
            "smoke": Scale(
                (0, 1),
                0.05,
                {"size": "smoke"},
                (),
                ("dominoes of scikit-learn's digits instead of Waterbirds: a test of the machinery",),
            ),
            "full": Scale((0, 1, 2), minutes, {"size": "full"}, ("waterbirds",), (recipe, *PAPERS_OWN)),
        },
        f"{CHARTS}:methods",
        (
            "Waterbirds' test set is balanced between backgrounds within each class, not between classes; the error "
            "is the average over all of it.",
        ),
        "nguyen2024.differences:changes",
    )


def _less(name: str, says: str, value: str, points: float | None = None) -> Claim:
    if points is None:
        return below(name, says, f"{value}.error", "sgd.original.error")
    note = "The paper gives the difference, not the errors: at most half of it off."
    return Claim(name, says, f"{value}.change", "less", 0.0, -points, margin=points / 2, note=note)


EXPERIMENTS = (
    _experiment(
        "fig9",
        "Figure 9: Waterbirds, ResNet-18 from scratch",
        pretrained=False,
        minutes=60000,
        claims=(
            _less("useful", "USEFUL lowers the test error of SGD", "sgd.useful", 5.8),
            _less("sam", "SAM has a lower test error than SGD", "sam.original", 6.21),
            below("both", "USEFUL lowers the test error of SAM", "sam.useful.error", "sam.original.error"),
        ),
    ),
    _experiment(
        "fig9-pretrained",
        "Figure 9: Waterbirds, a pre-trained ResNet-50",
        pretrained=True,
        minutes=35000,
        claims=(
            _less("useful", "USEFUL lowers the test error of SGD", "sgd.useful"),
            below("both", "USEFUL lowers the test error of SAM", "sam.useful.error", "sam.original.error"),
        ),
    ),
)
