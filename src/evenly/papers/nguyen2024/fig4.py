"""Figure 4: USEFUL with three other architectures."""

from evenly.papers.experiment import Experiment
from evenly.papers.nguyen2024.comparisons import BEYOND_SAM, READ_OFF, error_charts, plan_of, scales, useful_lowers
from evenly.papers.nguyen2024.fig3 import TRIVIAL_AUGMENT, cases


def _experiment(key: str, model: str, shown: str) -> Experiment:
    panel = cases("cifar10", model)
    transformer = model == "vit-s"
    return Experiment(
        f"nguyen2024/{key}",
        f"Figure 4: USEFUL with {shown}",
        "USEFUL lowers the test error of SGD, of SAM, and of SAM with TrivialAugment, whatever the architecture.",
        plan_of(*panel),
        (*useful_lowers("sgd", "sam", "sam+ta"), *((BEYOND_SAM,) if transformer else ()), TRIVIAL_AUGMENT),
        scales(*panel, small=transformer),
        error_charts,
        (READ_OFF,),
        primary=("sgd", "sam", "sam+ta"),
    )


EXPERIMENTS = (
    _experiment("fig4", "vgg19-bn", "VGG-19"),
    _experiment("fig4-densenet121", "densenet121", "DenseNet-121"),
    _experiment("fig4-vit", "vit-s", "ViT-S"),
)
