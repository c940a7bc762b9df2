"""The summary of a finished run, and what its user should read of it."""

from typing import Any

from evenly.recipe import Recipe
from evenly.resampling import Separation
from evenly.training.build import Parts
from evenly.training.collapse import describe
from evenly.training.cost import gradients_per_example
from evenly.training.early import outputs_epoch, rule_fired
from evenly.training.loop import Loop


def summarise(parts: Parts, loop: Loop, last: dict[str, Any], separation: Separation | None) -> dict[str, Any]:
    """The summary of a run: the last epoch's metrics, its cost, and the size of the model."""
    seen = loop.epoch * parts.batches.examples
    passes = None if parts.ascent is None else parts.ascent.passes
    facts = {
        **last,
        "training_examples": len(parts.splits.train),
        "examples_seen": seen,
        "gradients": round(seen * gradients_per_example(parts.recipe.ascent, passes=passes)),
        "parameters": sum(p.numel() for p in parts.model.parameters()),
        "seconds": round(loop.seconds, 3),
    }
    if separation is not None:
        facts["hard_share"] = separation.share
    if parts.recipe.until.rule != "end":
        facts["separated_at"] = outputs_epoch(loop.run)
        facts["rule_fired"] = rule_fired(parts.recipe, loop.run.metrics(), num_classes=parts.splits.num_classes)
    counts = parts.splits.train.labels.bincount(minlength=2)
    chance = 1 - float(counts.max() / counts.sum())
    collapsed = describe(
        loop.run.metrics(),
        num_classes=parts.splits.num_classes,
        chance=chance,
        rho=parts.recipe.ascent.radius,
        lr=parts.recipe.optimizer.lr,
        steps=loop.step,
        planned=parts.recipe.epochs,
    )
    return facts if collapsed is None else facts | {"collapsed": collapsed}


def remarks(recipe: Recipe, result: dict[str, Any]) -> list[str]:
    """Warnings about a finished run: it learned nothing, or its stopping rule never fired.

    >>> from evenly.recipe import Until
    >>> remarks(Recipe(epochs=8, until=Until("gain")), {"separated_at": 8, "rule_fired": False})[0]
    'was separated after its last epoch, 8, because no moment to separate came before: the fall in training error ...'
    """
    sentences = [result["collapsed"]] if "collapsed" in result else []
    if result.get("rule_fired") is False:
        sentences.append(
            f"was separated after its last epoch, {result['separated_at']}, because no moment to separate came before: "
            "the fall in training error did not slow to a tenth of its fastest. Train for longer (--epochs), or name "
            "the epoch (--at-epoch)."
        )
    return sentences
