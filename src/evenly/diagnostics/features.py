"""The features inside a network: the input of a layer for every example."""

from typing import Any

import torch
from torch import Tensor, nn

from evenly.curvature import soundness
from evenly.curvature.chunks import Data, as_chunks
from evenly.errors import DataError, UsageError, did_you_mean
from evenly.models.observation import observing


def features(model: nn.Module, data: Data, *, layer: str | None = None, chunk: int = 500) -> Tensor:
    """The flattened input of the named layer, by default of the last linear one to be called: N examples × D features.

    The model runs in eval mode.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    >>> torch.equal(features(model, x), model[1](model[0](x)).detach())
    True
    """
    modules = dict(model.named_modules())
    if layer is not None and layer not in modules:
        raise UsageError(
            f"{type(model).__name__} has no layer {layer!r}. {did_you_mean(layer, [m for m in modules if m])}"
        )
    seen: list[Tensor] = []

    def watch(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        seen.append(inputs[0].detach().flatten(1).clone())

    with observing(model), torch.no_grad():
        chunks = as_chunks(data, model=model, size=chunk)
        soundness.check(model, chunks[0][0])
        name = layer if layer is not None else last_linear(model, chunks[0][0][:1])
        handle = modules[name].register_forward_pre_hook(watch)
        try:
            for count, (x, _) in enumerate(chunks, start=1):
                model(x)
                if len(seen) != count or len(seen[-1]) != len(x):
                    raise UsageError(
                        f"layer {name!r} was called {len(seen) - count + 1} times on one batch of {len(x)} examples: "
                        "features need one row per example. Choose another layer."
                    )
        finally:
            handle.remove()
    return torch.cat(seen)


def last_linear(model: nn.Module, x: Tensor) -> str:
    """The name of the linear layer that is called last on inputs x, which reads the features out.

    The order in which the layers were declared says nothing: a head may be declared before the body.

    >>> last_linear(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)), torch.zeros(1, 2))
    '2'
    """
    called: list[str] = []
    handles = [
        module.register_forward_pre_hook(lambda _, __, name=name: called.append(name))
        for name, module in model.named_modules()
        if isinstance(module, nn.Linear)
    ]
    try:
        with observing(model), torch.no_grad():
            model(x)
    finally:
        for handle in handles:
            handle.remove()
    if not called:
        named = _last_layer(model)
        how = f": layer={named!r}, --layer {named}" if named else ""
        raise DataError(
            f"{type(model).__name__} calls no linear layer, so that its features have no default place. Name the layer "
            f"whose input they are{how}."
        )
    return called[-1]


def _last_layer(model: nn.Module) -> str:
    """An example of a layer that can be named: the last one with weights of its own."""
    return next((name for name, module in reversed(list(model.named_modules())) if module._parameters), "")
