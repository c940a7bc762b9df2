"""A model on trial: one batch of zeros, before any training, says whether it fits the data."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from evenly.errors import UsageError
from evenly.models.shapes import words
from evenly.rng import fork_generators

NUM_EXAMPLES = 2


def check(model: nn.Module, input_shape: Sequence[int], num_classes: int, *, name: str | None = None) -> None:
    """Run `model` on two inputs of zeros and raise a `UsageError` if it does not fit inputs and classes such as these.

    It fits if the outputs are examples × classes; for two classes a single logit, examples × 1, will do too. The
    model is in eval mode during the trial; modes, buffers, gradients and every random state are as before it.

    >>> check(nn.Linear(4, 3), (4,), 3)
    >>> check(nn.Linear(4, 3), (4,), 10)
    Traceback (most recent call last):
    evenly.errors.UsageError: Linear gives 3 outputs, but there are 10 classes. Build it with 10 outputs.
    """
    name = name or type(model).__name__
    if any(is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
        raise UsageError(
            f"{name} has lazy layers, whose first weights are drawn only when data come. Run it once on an example, "
            "or use the ordinary layers."
        )
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    inputs = torch.zeros((NUM_EXAMPLES, *input_shape), dtype=like.dtype, device=like.device)
    with untouched(model), torch.no_grad():
        model.eval()
        try:
            outputs = model(inputs)
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise UsageError(f"{name} cannot take inputs of {words(input_shape)}: {reason}.") from error
    _judge(name, outputs, num_classes)


@contextlib.contextmanager
def untouched(model: nn.Module) -> Iterator[None]:
    """Whatever a forward pass within the context changes in modes, buffers and random states is put back after it."""
    modes = {module: module.training for module in model.modules()}
    # A layer may write into a buffer or put another in its place: both are undone.
    buffers = [
        (module, key, buffer, buffer.clone())
        for module in model.modules()
        for key, buffer in module._buffers.items()
        if buffer is not None
    ]
    with fork_generators(tensor.device for tensor in model.parameters()):
        try:
            yield
        finally:
            for module, training in modes.items():
                module.training = training
            for module, key, buffer, saved in buffers:
                module._buffers[key] = buffer.copy_(saved)


def _judge(name: str, outputs: Any, num_classes: int) -> None:
    if not isinstance(outputs, Tensor):
        raise UsageError(
            f"{name} returns a {type(outputs).__name__}, not a tensor. Wrap it in a module that returns the logits."
        )
    if outputs.ndim != 2 or len(outputs) != NUM_EXAMPLES:
        raise UsageError(
            f"{name} gives outputs of {words(outputs.shape)} for {NUM_EXAMPLES} examples, "
            f"but {NUM_EXAMPLES}×{num_classes}, examples×classes, is needed."
        )
    columns = outputs.shape[1]
    if columns != num_classes and not (columns == 1 and num_classes == 2):
        raise UsageError(
            f"{name} gives {columns} output{'s' * (columns != 1)}, but there are {num_classes} classes. "
            f"Build it with {num_classes} outputs."
        )
