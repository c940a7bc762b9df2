"""Observing a model without leaving a trace, and its parameters as one vector."""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor, nn

from evenly.device import exact
from evenly.errors import UsageError
from evenly.rng import fork_generators


@contextlib.contextmanager
def observing(model: nn.Module, *, training: bool | None = False) -> Iterator[None]:
    """Within the context the model is in eval mode; afterwards it is restored bit for bit, also after an error.

    Restored are the train/eval mode of every submodule, every buffer (its values and its identity), and the state of
    torch's random number generators. `training=None` leaves the mode as it is. Within the context float32 is exact:
    TF32, the default of torch's convolutions on newer GPUs, is off.

    >>> model = nn.Sequential(nn.Linear(2, 2), nn.BatchNorm1d(2), nn.Dropout())
    >>> with observing(model):
    ...     model[2].training
    False
    >>> model[2].training, model[1].num_batches_tracked.item()
    (True, 0)
    """
    modes = [(module, module.training) for module in model.modules()]
    buffers = [
        (module, name, buffer, None if buffer is None else buffer.detach().clone())
        for module in model.modules()
        for name, buffer in module._buffers.items()
    ]
    with fork_generators(p.device for p in model.parameters()), exact():
        try:
            if training is not None:
                for module, _ in modes:
                    module.training = training
            yield
        finally:
            for module, mode in modes:
                module.training = mode
            for module, name, buffer, saved in buffers:
                module._buffers[name] = buffer
                # Only buffers that changed: a copy would look like a change to a kept graph. By value, since BatchNorm
                # updates its running statistics without a new version.
                if buffer is not None and saved is not None and not torch.equal(buffer, saved):
                    with torch.no_grad():
                        buffer.copy_(saved)


def trainable_parameters(model: nn.Module, *, only: Sequence[str] | None = None) -> dict[str, nn.Parameter]:
    """The parameters that require gradients, by name; `only` keeps those whose name is or begins with one of these.

    >>> list(trainable_parameters(nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1)), only=["2"]))
    ['2.weight', '2.bias']
    """
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not named:
        raise UsageError(
            f"{type(model).__name__} has no parameter that requires a gradient: call requires_grad_(True)."
        )
    if only is None:
        return named
    chosen = {name: p for name, p in named.items() if any(name == o or name.startswith(o + ".") for o in only)}
    missing = [o for o in only if not any(name == o or name.startswith(o + ".") for name in named)]
    if missing:
        raise UsageError(
            f"{type(model).__name__} has no trainable parameter {missing[0]!r}. Known: {', '.join(named)}."
        )
    return chosen


def flatten(tensors: Sequence[Tensor]) -> Tensor:
    """The tensors as one long vector.

    >>> flatten([torch.ones(2, 2), torch.zeros(1)]).tolist()
    [1.0, 1.0, 1.0, 1.0, 0.0]
    """
    return torch.cat([t.reshape(-1) for t in tensors])


def unflatten(vector_P: Tensor, like: Sequence[Tensor]) -> list[Tensor]:
    """The long vector cut into views with the shapes of `like`.

    >>> [tuple(t.shape) for t in unflatten(torch.zeros(5), [torch.ones(2, 2), torch.zeros(1)])]
    [(2, 2), (1,)]
    """
    parts = torch.split(vector_P, [t.numel() for t in like])
    return [part.view(t.shape) for part, t in zip(parts, like, strict=True)]
