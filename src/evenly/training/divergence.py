"""Diverged training: detected before it is saved over a good checkpoint, and reported with settings to try."""

from pathlib import Path

from torch import nn

from evenly import tree
from evenly.data.checks import on_scale
from evenly.data.labelled import Labelled
from evenly.errors import UsageError
from evenly.recipe import Recipe

MOST_WARMUP = 5  # epochs


class Diverged(UsageError):
    """The loss or the weights are no longer numbers."""


def weight_norm(model: nn.Module) -> float:
    """The norm of all parameters, over all shards; not finite if any of them is not.

    >>> weight_norm(nn.Linear(2, 1)) < 2
    True
    """
    return float(tree.norm([p.detach() for p in model.parameters()]))


def divergence_error(
    what: str,
    recipe: Recipe,
    model: nn.Module,
    *,
    step: int,
    epoch: int,
    path: Path,
    data: Labelled | None = None,
) -> Diverged:
    """The error: what diverged and when, the settings that may be at fault, and the checkpoint left at `path`.

    With the training `data`, it also says if these are not scaled.

    >>> str(divergence_error("the loss is nan", Recipe(), nn.Linear(2, 1), step=7, epoch=1, path=Path("last")))
    'the loss is nan at step 7 (epoch 1), with lr 0.1, rho 0 and a gradient of norm 0; there was no checkpoint yet. ...'
    """
    kept = f"the last good checkpoint is {path}" if path.exists() else "there was no checkpoint yet"
    size = tree.length([p.grad for p in model.parameters() if p.grad is not None])
    climbs = recipe.ascent.rule != "none"
    advice = f"--lr {min(recipe.optimizer.lr / 2, 0.1):g}"
    if climbs:
        advice += f" or --rho {min(recipe.ascent.radius / 2, 1.0):g} (ASAM's is about ten times SAM's)"
    others = ["--set clip_norm=1"]
    warmup = min(MOST_WARMUP, recipe.epochs - 1)
    if warmup > recipe.schedule.warmup_epochs:
        others.insert(0, f"a warm-up (--set schedule.warmup_epochs={warmup})")
    scale = on_unscaled(recipe, data)
    return Diverged(
        f"{what} at step {step} (epoch {epoch}), with lr {recipe.optimizer.lr:g}, rho "
        f"{recipe.ascent.radius:g} and a gradient of norm {size:.3g}; {kept}. "
        f"{f'{scale} Else try' if scale else 'Try'} {', '.join([advice, *others[:-1]])} or {others[-1]}."
    )


def on_unscaled(recipe: Recipe, data: Labelled | None) -> str | None:
    """A sentence if the training inputs are large numbers and the recipe does not normalise them."""
    if data is None or any(word.partition(":")[0] == "normalise" for word in recipe.augment):
        return None
    return on_scale(data)
