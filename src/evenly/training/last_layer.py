"""Deep feature reweighting (DFR) at the end of a run: the last layer is fitted to a held-out split, groups balanced."""

from collections import Counter
from typing import Any

import torch
from torch import nn

from evenly.data import Labelled, Splits
from evenly.errors import UsageError
from evenly.recipe import Recipe
from evenly.resampling.last_layer import NUM_TRIED, balanced_rows, fit, output_layer, watch_inputs
from evenly.rng import generator
from evenly.training.build import Parts, augmented_shape
from evenly.training.checkpoint import kept_weights
from evenly.training.loop import Loop

GROUP = "group"  # the attribute whose values are balanced, where the split has it
FEWEST = 10  # examples of a group: with fewer, the layer is fitted to next to nothing


def check_last_layer(recipe: Recipe, splits: Splits, *, judged_on: str | None = None) -> None:
    """Raise before training where the last layer could not be fitted at its end, or is fitted to what judges it."""
    name = recipe.last_layer
    if name is None:
        return
    if name not in splits:
        remedy = _missing_split_remedy(splits, name)
        raise UsageError(f"last_layer={name}: {splits.name} has no split {name!r} to fit the last layer to. {remedy}")
    if name == judged_on:
        remedy = "Judge by another split: --split test" if "test" in splits else _test_split_remedy(splits)
        raise UsageError(
            f"last_layer={name}: the error is taken on {name} too, and a layer fitted to examples is not judged by "
            f"them. {remedy}"
        )


def on_last_layer(recipe: Recipe, splits: Splits) -> tuple[str, ...]:
    """A sentence where no groups beyond the classes are balanced, or where balancing them leaves few examples."""
    name = recipe.last_layer
    if name is None or name not in splits or recipe.until.rule != "end":
        return ()
    split = splits[name]
    if GROUP not in split.attributes:
        return (
            f"last_layer={name}: {splits.name} has no attribute {GROUP!r} there, so the last layer is fitted to all of "
            "its examples, whether groups are balanced in it or not. To balance them, give every example an attribute "
            f"{GROUP!r}, such as its class and background together.",
        )
    if not _is_class(split, GROUP):
        return _on_small_groups(split, splits.name)
    others = [other for other in split.attributes if not _is_class(split, other)]
    instead = f" In Python, retrain_last_layer(…, by={others[0]!r}) balances another attribute." if others else ""
    return (
        f"last_layer={name}: the groups of {splits.name} are its classes there, so classes are balanced and nothing "
        f"else.{instead}",
    )


def _on_small_groups(split: Labelled, data: str) -> tuple[str, ...]:
    sizes = Counter(split.attribute(GROUP).tolist())
    smallest, fewest = min(sizes.items(), key=lambda pair: pair[1])
    if fewest >= FEWEST:
        return ()
    names = split.values.get(GROUP, ())
    name = names[smallest] if 0 <= smallest < len(names) else str(smallest)
    return (
        f"last_layer={split.split}: group {name!r} of {data} has {fewest} example{'s' * (fewest != 1)} there, so the "
        f"last layer is fitted to {fewest * len(sizes)} of {len(split)}: as many of each of {len(sizes)} groups. Hold "
        "out more, or join groups.",
    )


def _is_class(split: Labelled, attribute: str) -> bool:
    """Whether an attribute has one value for every class, and for no other."""
    value_N, label_N = split.attribute(attribute).tolist(), split.labels.tolist()
    return len(set(zip(value_N, label_N, strict=True))) == len(set(value_N)) == len(set(label_N))


def _missing_split_remedy(splits: Splits, name: str) -> str:
    others = [split for split in splits if split not in ("train", "test")]
    if others:
        return f"It has {', '.join(others)}: --set last_layer={others[0]}, or dfr:{others[0]} among --methods."
    if splits.repeated:
        return f"Give it rows of the split {name} in a column `split`."
    # Data without a test split lose the share that is held out for them once a validation set is asked for.
    test = " --set data.options.held_out=0.2" if splits.test_is_held_out else ""
    return f"Hold some examples out: --set data.validation=0.2{test}"


def _test_split_remedy(splits: Splits) -> str:
    if splits.repeated:
        return "Give the data rows of the split test in a column `split`."
    return "Hold out a test split too: --set data.options.held_out=0.2"


def check_can_refit(parts: Parts) -> None:
    """Raise where no single layer of this network makes its outputs, or where no process holds the whole of it."""
    if parts.recipe.last_layer is None:
        return
    if parts.recipe.sharded and parts.world.size > 1:
        raise UsageError("last_layer and sharded=true: no device holds the whole last layer. Leave `sharded` out.")
    _output_layer(parts)


def _output_layer(parts: Parts) -> nn.Linear:
    """The layer of the run's network that makes its outputs."""
    shape = augmented_shape(parts.splits.train.shape, parts.augment)
    like = next(p for p in parts.model.parameters() if p.is_floating_point())
    inputs = torch.rand((NUM_TRIED, *shape), generator=torch.Generator().manual_seed(0)).to(like)
    return output_layer(parts.model, inputs, parts.splits.num_classes)


def refit_last_layer(loop: Loop, last: dict[str, Any]) -> dict[str, Any]:
    """Replace the last layer, evaluate and keep the weights; return the metrics `last` with their new values.

    The errors on the split itself are left out: the layer was fitted to it, so they say nothing about other examples.
    So are those that were summed over the last epoch of training: they are of the layer that was replaced.
    """
    parts, name = loop.parts, loop.parts.recipe.last_layer
    if name is None:
        return last
    split, layer = parts.splits[name], _output_layer(parts)
    rng = generator(parts.recipe.seed, "last layer")
    rows = balanced_rows(split, GROUP if GROUP in split.attributes else None, rng)
    with watch_inputs(layer) as seen:
        loop.outputs(name)
    fitted = fit(layer, torch.cat(seen)[rows], split, rows)
    with torch.no_grad():
        layer.weight.copy_(fitted.weight)
        if layer.bias is not None:
            layer.bias.copy_(fitted.bias)
    loop.save_weights()
    if loop.epoch in parts.recipe.keep_epochs:  # whose file otherwise keeps the network before, under the same epoch
        loop.save_weights(kept_weights(loop.epoch))
    metrics = {key: value for key, value in last.items() if not key.startswith("train.")} | loop.evaluate()
    return {key: value for key, value in metrics.items() if not key.startswith(f"{name}.")}
