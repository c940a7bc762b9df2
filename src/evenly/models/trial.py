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


def check(
    model: nn.Module, input_shape: Sequence[int], num_classes: int, *, name: str | None = None, training: bool = False
) -> None:
    """Run `model` on two inputs of zeros and raise a `UsageError` if it does not fit inputs and classes such as these.

    It fits if the outputs are examples × classes, or, for two classes, a single logit, examples × 1. The model is in
    eval mode during the trial, and for `training` in train mode too, in which some models return more. Its modes and
    buffers and all random states are restored.

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
    for mode in ("eval", "train") if training else ("eval",):
        with observing(model, training=False if mode == "eval" else None), torch.no_grad():
            if mode == "train":
                model.train()
            try:
                outputs = model(inputs)
            except (MemoryError, torch.OutOfMemoryError):
                raise
            except Exception as error:  # the model may be the user's
                reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
                when, hint = (" in train mode", _without_heads(model)) if mode == "train" else ("", "")
                raise UsageError(
                    f"{name} cannot take inputs of {shape_text(input_shape)}{when}: {reason}.{hint}"
                ) from error
        if mode == "train" and not isinstance(outputs, Tensor):
            remedy = _without_heads(model) or " Wrap it in a module that returns the logits in both modes."
            raise UsageError(f"{name} returns a {type(outputs).__name__} in train mode, not a tensor.{remedy}")
        _judge(name, outputs, num_classes)


def _without_heads(model: nn.Module) -> str:
    """The way out of the further heads that torchvision's GoogLeNet and Inception have in train mode only."""
    return " Leave out its further heads: --set model.options.aux_logits=false" if hasattr(model, "aux_logits") else ""


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
