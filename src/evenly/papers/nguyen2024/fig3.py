"""Figure 3: USEFUL with SGD, SAM and TrivialAugment on five data sets."""

from evenly.papers.claim import Claim
from evenly.papers.experiment import Experiment
from evenly.papers.nguyen2024.comparisons import (
    BEYOND_SAM,
    READ_OFF,
    error_charts,
    plan_of,
    scales,
    useful_lowers,
)
from evenly.papers.nguyen2024.recipes import Case

TRIVIAL_AUGMENT = Claim(
    "augmentation", "TrivialAugment lowers the test error of SAM", "sam+ta.original.error < sam.original.error"
)
SHARES = {"cifar10": 0.30, "cifar100": 0.50, "stl10": 0.50, "cinic10": 0.45, "tiny-imagenet": 0.60}
TITLES = {
    "cifar10": "",
    "cifar100": ", CIFAR-100",
    "stl10": ", STL-10",
    "cinic10": ", CINIC-10",
    "tiny-imagenet": ", Tiny-ImageNet",
}


def cases(data: str, model: str) -> tuple[Case, ...]:
    """The three pairs of bars of a panel of figures 3 and 4."""
    return (Case("sgd", data, model), Case("sam", data, model, "sam"), Case("sam+ta", data, model, "sam", trivial=True))


def _claims(data: str) -> tuple[Claim, ...]:
    share = Claim(
        "share",
        f"USEFUL upsamples roughly {SHARES[data]:.0%} of the examples".replace("%", " %"),
        f"sgd.useful.share = {SHARES[data]} ± 0.05",
        note="'Roughly', says section 5.2; five points are allowed.",
    )
    return (
        *useful_lowers("sgd", "sam", "sam+ta"),
        *((BEYOND_SAM,) if data == "stl10" else ()),
        *((TRIVIAL_AUGMENT,) if data != "cinic10" else ()),  # "except for CINIC10"
        share,
    )


def _experiment(data: str) -> Experiment:
    panel = cases(data, "preact-resnet34" if data == "cifar100" else "preact-resnet18")
    return Experiment(
        "nguyen2024/fig3" if data == "cifar10" else f"nguyen2024/fig3-{data}",
        f"Figure 3: USEFUL with SGD, SAM and TrivialAugment{TITLES[data]}",
        "USEFUL lowers the test error of SGD, of SAM, and of SAM with TrivialAugment.",
        plan_of(*panel),
        _claims(data),
        scales(*panel),
        error_charts,
        (READ_OFF,),
        primary=("sgd", "sam", "sam+ta"),
    )


EXPERIMENTS = tuple(_experiment(data) for data in SHARES)
