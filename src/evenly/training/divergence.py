"""Diverged training: detected before it is saved over a good checkpoint, and reported with settings to try."""

from pathlib import Path

from torch import nn

from evenly import tree
from evenly.errors import UsageError
from evenly.recipe import Recipe


class Diverged(UsageError):
    """The loss or the weights are no longer numbers."""


def weight_norm(model: nn.Module) -> float:
    """The norm of all parameters, over all shards; not finite if any of them is not.

    >>> weight_norm(nn.Linear(2, 1)) < 2
    True
    """
    return float(tree.norm([p.detach() for p in model.parameters()]))


def divergence_error(what: str, recipe: Recipe, model: nn.Module, *, step: int, epoch: int, path: Path) -> Diverged:
    """The error: what diverged and when, the settings that may be at fault, and the checkpoint left at `path`.

    >>> str(divergence_error("the loss is nan", Recipe(), nn.Linear(2, 1), step=7, epoch=1, path=Path("last")))
    'the loss is nan at step 7 (epoch 1), with lr 0.1, rho 0 and a gradient of norm 0; there was no checkpoint yet. ...'
    """
    kept = f"the last good checkpoint is {path}" if path.exists() else "there was no checkpoint yet"
    size = tree.length([p.grad for p in model.parameters() if p.grad is not None])
    climbs = recipe.ascent.rule != "none"
    advice = f"--lr {min(recipe.optimizer.lr / 2, 0.1):g}"
    if climbs:
        advice += f" or --rho {min(recipe.ascent.radius / 2, 1.0):g} (ASAM's is about ten times SAM's)"
    return Diverged(
        f"{what} at step {step} (epoch {epoch}), with lr {recipe.optimizer.lr:g}, rho "
        f"{recipe.ascent.radius:g} and a gradient of norm {size:.3g}; {kept}. "
        f"Try {advice}, a warm-up (--set schedule.warmup_epochs=5) or --set clip_norm=1."
    )
