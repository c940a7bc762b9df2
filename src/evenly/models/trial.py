"""A trial run of a model on a batch of zeros, which shows before training whether it fits the data."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from evenly.errors import UsageError
from evenly.models.observation import observing
from evenly.models.shapes import shape_text

NUM_EXAMPLES = 2


def check(model: nn.Module, input_shape: Sequence[int], num_classes: int, *, name: str | None = None) -> None:
    """Run `model` on two inputs of zeros and raise a `UsageError` if it does not fit inputs and classes such as these.

    It fits if the outputs are examples × classes, or, for two classes, a single logit, examples × 1. The model is in
    eval mode during the trial; its modes and buffers and all random states are restored.

    >>> check(nn.Linear(4, 3), (4,), 3)
    >>> check(nn.Linear(4, 3), (4,), 10)
    Traceback (most recent call last):
    evenly.errors.UsageError: Linear gives 3 outputs, but there are 10 classes. Build it with 10 outputs.
    """
    name = name or type(model).__name__
    if any(is_lazy(tensor) for tensor in (*model.parameters(), *model.buffers())):
        raise UsageError(
            f"{name} has lazy layers, whose weights are initialised only at the first forward pass. Run it once on an "
            "example, or use the ordinary layers."
        )
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0))
    inputs = torch.zeros((NUM_EXAMPLES, *input_shape), dtype=like.dtype, device=like.device)
    with observing(model), torch.no_grad():
        try:
            outputs = model(inputs)
        except (MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
            raise UsageError(f"{name} cannot take inputs of {shape_text(input_shape)}: {reason}.") from error
    _judge(name, outputs, num_classes)


def _judge(name: str, outputs: Any, num_classes: int) -> None:
    if not isinstance(outputs, Tensor):
        raise UsageError(
            f"{name} returns a {type(outputs).__name__}, not a tensor. Wrap it in a module that returns the logits."
        )
    if outputs.ndim != 2 or len(outputs) != NUM_EXAMPLES:
        raise UsageError(
            f"{name} gives outputs of {shape_text(outputs.shape)} for {NUM_EXAMPLES} examples, "
            f"but {NUM_EXAMPLES}×{num_classes}, examples×classes, is needed."
        )
    columns = outputs.shape[1]
    if columns != num_classes and not (columns == 1 and num_classes == 2):
        raise UsageError(
            f"{name} gives {columns} output{'s' * (columns != 1)}, but there are {num_classes} classes. "
            f"Build it with {num_classes} outputs."
        )
