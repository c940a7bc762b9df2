"""Evaluation without side effects: outputs in eval mode, and their loss and error by split and group.

Shapes: N examples, C classes.
"""

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from evenly.cpu_bfloat16 import check_bfloat16_on_cpu
from evenly.data import Splits
from evenly.data.augment import Augmentation
from evenly.data.batches import Batches
from evenly.data.groupings import groupings, name_of_value
from evenly.data.labelled import Labelled
from evenly.errors import UsageError
from evenly.progress import track
from evenly.training.objective import Objective, predictions

#: The number formats of half precision, by the words of `precision`.
HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
_UNREAD = 1 << 26  # bytes of outputs
_AT_ONCE = 1 << 24  # numbers of inputs: 111 photos of 3×224×224, which take no more memory than training on sixteen


@contextlib.contextmanager
def eval_mode(model: nn.Module) -> Iterator[None]:
    """Within the context the model is in eval mode; afterwards every module is back in its old mode."""
    modes = {module: module.training for module in model.modules()}
    model.eval()
    try:
        yield
    finally:
        for module, training in modes.items():
            module.training = training


def outputs(
    model: nn.Module,
    data: Labelled,
    *,
    augment: Augmentation | None = None,
    device: torch.device | str = "cpu",
    precision: str = "fp32",
    memory_format: torch.memory_format = torch.contiguous_format,
    batch_size: int = 512,
    workers: int = 0,
) -> Tensor:
    """The model's outputs on every example, N × C in float32 on the CPU, in eval mode and without random augmentation.

    At most `batch_size` examples are passed at once, and fewer of large ones, so that evaluation fits where training
    in small batches does.

    >>> from evenly.data import load
    >>> data = load("parity", dim=4).train
    >>> outputs(nn.Linear(4, 2), data).shape
    torch.Size([100, 2])
    """
    loader = Batches(
        data,
        batch_size=min(batch_size, max(1, _AT_ONCE // max(1, math.prod(data.shape)))),
        seed=0,
        shuffle=False,
        augment=augment.evaluation if augment is not None else None,
        device=device,
        workers=workers,
    )
    parts: list[Tensor] = []
    read: list[Tensor] = []
    with eval_mode(model), torch.no_grad(), autocast(device, precision):
        for batch in track(loader.epoch(0), f"evaluating {data.split}", total=len(loader)):
            parts.append(model(to_memory_format(batch.inputs, memory_format)).float())
            # Reading waits for the device, so outputs are read many at a time.
            if sum(part.nbytes for part in parts) > _UNREAD:
                read.append(torch.cat(parts).cpu())
                parts.clear()
    return torch.cat([*read, torch.cat(parts).cpu()] if parts else read)


def scores(
    outputs_NC: Tensor, data: Labelled, *, objective: Objective, reference: Labelled | None = None
) -> dict[str, float]:
    """Loss and error of outputs on `data`; for every attribute the error of each value, the worst and the adjusted one.

    `loss` is that of the task alone, without label smoothing and the logit penalty, so that recipes compare.
    `error` is the average over examples, `worst.class` that of the worst class. `error.group.VALUE` is that of the
    examples whose attribute `group` has the value (`(empty)` for an empty text), `worst.group` the largest of these,
    and `adjusted.group` their mean weighted as in `reference`, the training set (Sagawa et al., 2020): the average
    error if the groups were as frequent as in training. Of an attribute called `class`, all but the worst are recorded.

    >>> group = torch.tensor([0, 1, 1, 1])
    >>> data = Labelled(torch.zeros(4, 1), torch.tensor([0, 0, 1, 1]), ("a", "b"), {"group": group})
    >>> right_right_right_wrong = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    >>> metrics = scores(right_right_right_wrong, data, objective=Objective())
    >>> metrics["error"], metrics["error.group.0"], round(metrics["worst.group"], 3)
    (0.25, 0.0, 0.333)
    """
    labels_N = data.labels.cpu()
    loss_N = objective.plain(outputs_NC, labels_N)
    wrong_N = (predictions(outputs_NC) != labels_N).double()
    metrics = {"loss": float(loss_N.double().mean()), "error": float(wrong_N.mean())}
    present = sorted(set(labels_N.tolist()))
    metrics["worst.class"] = max(float(wrong_N[labels_N == label].mean()) for label in present)
    for name in groupings(data):
        values_N = data.attributes[name]
        present = sorted(set(values_N.tolist()))
        errors = {value: float(wrong_N[values_N == value].mean()) for value in present}
        metrics |= {f"error.{name}.{name_of_value(data, name, value)}": error for value, error in errors.items()}
        metrics.setdefault(f"worst.{name}", max(errors.values()))  # `worst.class` is that of the labels
        if reference is not None and name in reference.attributes:
            shares = {value: int((reference.attributes[name] == value).sum()) for value in present}
            if sum(shares.values()):
                weighted = sum(shares[value] * errors[value] for value in present)
                metrics[f"adjusted.{name}"] = weighted / sum(shares.values())
    return metrics


def autocast(device: torch.device | str, precision: str) -> contextlib.AbstractContextManager[Any]:
    """Autocast to the recipe's half precision; a null context for fp32.

    >>> with autocast("cpu", "bf16"):
    ...     (torch.ones(1, 1) @ torch.ones(1, 1)).dtype
    torch.bfloat16
    """
    if precision == "fp32":
        return contextlib.nullcontext()
    if precision == "bf16" and torch.device(device).type == "cpu":
        check_bfloat16_on_cpu()
    return torch.autocast(torch.device(device).type, dtype=HALF[precision])


def to_memory_format(x: Tensor, memory_format: torch.memory_format) -> Tensor:
    """Images in the memory format of the model; other data as they are."""
    return x.contiguous(memory_format=memory_format) if x.ndim == 4 else x


def evaluation_split(data: Splits, split: str | None) -> str:
    """The split on which errors are compared.

    >>> from evenly.data import load
    >>> evaluation_split(load("digits"), None)
    'test'
    """
    if split == "train":
        raise UsageError(
            "split 'train' was trained on: its error does not show which method is better. Give --split test, or hold "
            "some examples out: --set data.validation=0.2 --split validation"
        )
    chosen = split or next((name for name in ("test", "validation") if name in data), None)
    if chosen is None or chosen not in data:
        raise UsageError(
            f"{data.name} has no split {split or 'test'!r} to take the error on: it has {', '.join(data)}. "
            "Hold some examples out: --set data.validation=0.2"
        )
    return chosen
