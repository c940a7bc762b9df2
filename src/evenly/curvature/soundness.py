"""Checks, before anything is measured, that a model is a deterministic function of each example alone."""

import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from evenly.errors import DataError, UsageError
from evenly.models.observation import observing

PROBE = 4  # examples that the check looks at: it must cost next to nothing


def check(model: nn.Module, inputs: Tensor) -> Tensor:
    """Refuse a model whose outputs are random, depend on the other examples of the batch, or are not finite.

    Returns the outputs of the first examples, so that the caller can see their shape.

    >>> check(nn.Sequential(nn.Linear(2, 1), nn.Dropout(0.5)), torch.ones(4, 2))
    Traceback (most recent call last):
    evenly.errors.UsageError: the dropout layer '1' is in train mode...
    """
    refuse_train_mode(model)
    few = inputs[:PROBE]
    with observing(model, training=None), torch.no_grad():
        first, again, alone = model(few), model(few), model(few[:1])
    if not isinstance(first, Tensor):
        raise UsageError(
            f"{type(model).__name__} returns a {type(first).__name__}, not a tensor: wrap it in a module that "
            "returns the outputs only."
        )
    if first.ndim == 0 or len(first) != len(few):
        raise UsageError(
            f"{type(model).__name__} returns outputs of shape {tuple(first.shape)} for {len(few)} examples: "
            "one row per example is needed."
        )
    bad = (~torch.isfinite(first)).flatten(1).any(1) if first.ndim > 1 else ~torch.isfinite(first)
    if bad.any():
        raise DataError(
            f"the output of example {int(bad.nonzero()[0])} is not finite: look for NaN or inf in inputs and weights."
        )
    if _differ(first, again):
        raise UsageError(
            f"{type(model).__name__} is not deterministic: two evaluations of the same examples differ by up to "
            f"{(first - again).abs().max().item():.2g}. Switch its randomness off (model.eval(), and no "
            "functional dropout with training=True)."
        )
    if _differ(first[:1], alone):
        raise UsageError(
            f"{type(model).__name__}'s output for an example changes by up to "
            f"{(first[:1] - alone).abs().max().item():.2g} when other examples leave the batch: "
            "such outputs have no per-example gradient. Use a normalisation that looks at one example, or model.eval()."
        )
    return first


def refuse_train_mode(model: nn.Module) -> None:
    """Refuse BatchNorm on batch statistics and dropout that drops.

    >>> refuse_train_mode(nn.BatchNorm1d(3))
    Traceback (most recent call last):
    evenly.errors.UsageError: the BatchNorm layer '' normalises with the statistics of the batch...
    """
    for name, module in model.named_modules():
        if isinstance(module, _BatchNorm) and module.running_mean is None:
            raise UsageError(
                f"the BatchNorm layer {name!r} keeps no running statistics, so that it normalises with the statistics "
                "of the batch in eval mode too: examples are not independent. Use track_running_stats=True."
            )
        if isinstance(module, _BatchNorm) and module.training:
            raise UsageError(
                f"the BatchNorm layer {name!r} normalises with the statistics of the batch (train mode), so that "
                "examples are not independent and the result would depend on the chunks. Call model.eval() first."
            )
        if isinstance(module, _DropoutNd) and module.training and module.p > 0:
            raise UsageError(
                f"the dropout layer {name!r} is in train mode: every evaluation would be of another function. "
                "Call model.eval() first."
            )


def _differ(a: Tensor, b: Tensor) -> bool:
    """Whether two outputs differ by more than rounding: sums may run in another order for another batch size."""
    scale = a.abs().max().clamp_min(torch.finfo(a.dtype).tiny if a.is_floating_point() else 1)
    return bool((a - b).abs().max() > 1e-3 * scale)
