"""Networks trained on images by SGD and by SAM, for tables 1 and 2 and figures 5 and 6: recipes and one run."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenly.errors import DataError
from evenly.papers.experiment import Context

if TYPE_CHECKING:
    from evenly.records import Run

PRETRAINED = "resnet18.pth"  # under the folder of the data

STACKED: Mapping[str, Any] = {
    "augment": ["normalise:mean"],
    "model": {"name": "convnet"},
    "optimizer": {"lr": 0.01, "momentum": 0.9, "weight_decay": 0.0},
    "schedule": {"kind": "cosine"},
    "epochs": 20,
    "batch_size": 100,
    "evaluate_every": 20,
}
FINE_TUNED: Mapping[str, Any] = {
    "model": {"name": "resnet18"},
    "optimizer": {"lr": 0.001, "momentum": 0.9, "weight_decay": 1e-4},
    "schedule": {"kind": "cosine"},
    "batch_size": 128,
}
CELEBA: Mapping[str, Any] = {
    **FINE_TUNED,
    "data": {"name": "celeba", "options": {"size": 64}},
    "augment": ["normalise:standard"],
    "epochs": 20,
    "evaluate_every": 20,
}
WATERBIRDS: Mapping[str, Any] = {
    **FINE_TUNED,
    "data": {"name": "waterbirds", "options": {"size": 96}},
    "augment": ["resized-crop:96,0.7,1.0", "mirror", "normalise:standard"],
    "epochs": 100,
    "evaluate_every": 100,
}
DIGITS: Mapping[str, Any] = {
    **STACKED,
    "data": {"name": "digit-dominoes", "options": {"alpha": 1.0}},
    "model": {"name": "mlp", "options": {"width": 16}},
    "epochs": 1,
    "evaluate_every": 1,
}
SMOKE_SAYS = ("digits on digits, a small perceptron, 1 epoch: that it runs",)
FIXED = (0.01, 0.1)  # learning rate and ρ at which SAM stands beside SGD without any choice
SWEEP = "SAM is chosen from {} settings, SGD from {}: the choice can favour SAM, the claim at a fixed ρ has none"
SWEEP_NOTE = "the best of a sweep can be better by the choice alone, and SAM's sweep is the longer one"
EVERY_SEED = "Every seed is a dot, the bar their mean with its 95% interval."


def margin(one: float, other: float, *, floor: float, most: float) -> float:
    """How far our difference may be from the paper's: half of it, or one digit of the paper where that is more.

    >>> [margin(sgd, sam, floor=0.1, most=2.0) for sgd, sam in ((5.2, 4.6), (10.9, 2.7), (0.1, 0.1))]
    [0.3, 2.0, 0.1]
    """
    half = abs(one - other) / 2
    return min(max(min(round(half, 6), half), floor), most)  # rounded, but never up


def train_network(
    context: Context, mapping: Mapping[str, Any], *, lr: float, rho: float, seed: int, weights: str | None
) -> "Run":
    """One run of a recipe: by SGD where ρ is 0, else by SAM."""
    from evenly.recipe import Ascent, Recipe, from_mapping
    from evenly.training.train import train

    recipe = from_mapping(Recipe, mapping)
    model = recipe.model if weights is None else replace(recipe.model, weights=weights_file(weights, context.data_root))
    wanted = replace(
        recipe,
        optimizer=replace(recipe.optimizer, lr=lr),
        ascent=Ascent("sam", rho) if rho else Ascent(),
        model=model,
        seed=seed,
    )
    return train(wanted, runs=context.runs, data_root=context.data_root)


def run_errors(run: "Run") -> dict[str, float]:
    """Test error in percent, re-weighted by the groups of training where these differ, and validation's."""
    last = run.summary()
    test = last.get("test.adjusted.group", last["test.error"])
    errors = {"test": 100 * test, "gradients": float(last["gradients"])}
    if "validation.error" in last:
        errors |= {"validation_error": 100 * last["validation.error"], "validation_loss": last["validation.loss"]}
    return errors


def weights_file(name: str, data_root: str | None) -> str:
    """Where pretrained weights lie, under the folder of the data.

    >>> weights_file("resnet18.pth", "nowhere")
    Traceback (most recent call last):
    evenly.errors.DataError: nowhere/resnet18.pth, the ImageNet weights to begin with, is not there. ...
    """
    from evenly.data.catalogue import data_root as root_of

    path = Path(root_of(data_root)) / name
    if not path.is_file():
        raise DataError(
            f"{path}, the ImageNet weights to begin with, is not there. Save torchvision's "
            "resnet18(weights='IMAGENET1K_V1').state_dict() under this name with torch.save."
        )
    return str(path)
