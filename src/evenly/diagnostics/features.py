"""The features inside a network: the input of a layer for every example."""

from typing import Any

import torch
from torch import Tensor, nn

from evenly.curvature import soundness
from evenly.curvature.chunks import Data, as_chunks
from evenly.errors import UsageError, did_you_mean
from evenly.models.observation import observing


def features(model: nn.Module, data: Data, *, layer: str | None = None, chunk: int = 500) -> Tensor:
    """The flattened input of the named layer, by default the last linear one: N examples × D features.

    The model runs in eval mode.

    >>> model = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2))
    >>> x = torch.randn(5, 2, generator=torch.Generator().manual_seed(0))
    >>> torch.equal(features(model, x), model[1](model[0](x)).detach())
    True
    """
    name = layer if layer is not None else last_linear(model)
    modules = dict(model.named_modules())
    if name not in modules:
        raise UsageError(
            f"{type(model).__name__} has no layer {name!r}. {did_you_mean(name, [m for m in modules if m])}"
        )
    seen: list[Tensor] = []

    def watch(_: nn.Module, inputs: tuple[Any, ...]) -> None:
        seen.append(inputs[0].detach().flatten(1).clone())

    with observing(model), torch.no_grad():
        chunks = as_chunks(data, model=model, size=chunk)
        soundness.check(model, chunks[0][0])
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


def last_linear(model: nn.Module) -> str:
    """The name of the last linear layer, which reads the features out.

    >>> last_linear(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 2)))
    '2'
    """
    names = [name for name, module in model.named_modules() if isinstance(module, nn.Linear)]
    if not names:
        raise UsageError(f"{type(model).__name__} has no linear layer: name the layer whose input is to be looked at.")
    return str(names[-1])
