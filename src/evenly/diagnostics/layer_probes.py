"""Probes at every layer: where in a network the easy and the hard feature can be read, and where one is lost.

Shapes: N examples, D features.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from evenly.curvature.chunks import Data, as_chunks
from evenly.data.splits import Splits
from evenly.diagnostics.probe import Probe, fit_probe
from evenly.diagnostics.probing_error import Balance, balanced_groups, probe_splits
from evenly.diagnostics.subject import Numbers, Subject
from evenly.errors import UsageError
from evenly.models.observation import observing


@dataclass(frozen=True)
class LayerProbes:
    """The probes of one layer, by attribute."""

    layer: str
    num_features: int
    probes: dict[str, Probe]


def layer_probes(
    model: nn.Module,
    splits: Splits,
    *,
    rng: torch.Generator,
    attributes: Sequence[str] = ("easy", "hard"),
    layers: Sequence[str] | None = None,
    balance: Balance = "subsample",
    **options: Any,
) -> list[LayerProbes]:
    """The probing error of every attribute at the input of every layer with weights, in the order of the forward pass.

    As `probing_errors` does for one layer: fitted on `probe` (or half of `balanced`), tested on `balanced`. Images and
    tokens are averaged over their positions, so that a layer has as many features as inputs at one position (Alain &
    Bengio, 2017). A layer that is not called exactly once for every example has no such input: it is refused if it is
    among the named `layers`, and left out by default.

    >>> from evenly.data import load
    >>> model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    >>> rng = torch.Generator().manual_seed(0)
    >>> [p.layer for p in layer_probes(model, load("spirals", num_test=400), rng=rng, refits=1)]
    ['0', '2']
    """
    fit, test = probe_splits(splits, rng)
    groups = {
        name: [balanced_groups(part, attribute=name, over=None, balance=balance) for part in (fit, test)]
        for name in attributes
    }
    names = list(layers) if layers is not None else weighted_layers(model)
    seen = [_inputs(model, part, names) for part in (fit, test)]
    if layers is not None and (lost := [name for name in names if name not in seen[0]]):
        raise UsageError(
            f"layer {lost[0]!r} is not called exactly once for every example, so that it has no single input to probe. "
            f"Choose other layers, such as layers={list(seen[0]) or weighted_layers(model)}."
        )
    return [
        LayerProbes(
            layer,
            seen[0][layer].shape[1],
            {
                name: fit_probe(
                    seen[0][layer],
                    fit.attribute(name),
                    test_features=seen[1][layer],
                    test_targets=test.attribute(name),
                    groups=groups[name][0],
                    test_groups=groups[name][1],
                    rng=rng,
                    **options,
                )
                for name in attributes
            },
        )
        for layer in seen[0]
    ]


def measure_layer_probes(subject: Subject) -> Numbers:
    """A row per layer: its name, the width of its input, and the error of each attribute's probe."""
    probes = layer_probes(subject.model, subject.splits, rng=subject.rng, **{"refits": 1, **subject.options})
    return {
        "layer_probes": [
            {"layer": f.layer, "features": f.num_features, **{name: probe.error for name, probe in f.probes.items()}}
            for f in probes
        ]
    }


def weighted_layers(model: nn.Module) -> list[str]:
    """The names of the linear and convolutional layers.

    >>> weighted_layers(nn.Sequential(nn.Linear(2, 2), nn.ReLU()))
    ['0']
    """
    kinds = (nn.Linear, nn.Conv1d, nn.Conv2d, nn.Conv3d)
    names = [name for name, module in model.named_modules() if isinstance(module, kinds)]
    if not names:
        raise UsageError(f"{type(model).__name__} has no linear or convolutional layer: name layers=.")
    return names


def _inputs(model: nn.Module, data: Data, names: Sequence[str]) -> dict[str, Tensor]:
    """The input of each layer, averaged over positions, in the order in which layers are called."""
    modules = dict(model.named_modules())
    if unknown := [name for name in names if name not in modules]:
        raise UsageError(f"{type(model).__name__} has no layer {unknown[0]!r}.")
    kept: dict[str, list[Tensor]] = {}
    handles = []
    for name in names:

        def watch(module: nn.Module, inputs: tuple[Any, ...], name: str = name) -> None:
            x = inputs[0].detach()
            if x.ndim > 2:  # a linear layer acts on the last axis, a convolution on the second
                x = x.flatten(1, -2).mean(1) if isinstance(module, nn.Linear) else x.flatten(2).mean(2)
            kept.setdefault(name, []).append(x.clone())

        handles.append(modules[name].register_forward_pre_hook(watch))
    try:
        with observing(model), torch.no_grad():
            chunks = as_chunks(data, model=model, size=500)
            for x, _ in chunks:
                model(x)
    finally:
        for handle in handles:
            handle.remove()
    total = sum(chunks.sizes)
    return {name: torch.cat(parts) for name, parts in kept.items() if sum(map(len, parts)) == total}
