"""The data that a model is measured on: converted to splits, tried on the model, and reduced to a few examples."""

import torch
from torch import Tensor, nn

from evenly.curvature.chunks import EXPECTED, Data, as_chunks
from evenly.data.class_balanced_rows import evenly_over
from evenly.data.labelled import Labelled, scale_pixels
from evenly.data.splits import Splits
from evenly.errors import DataError, UsageError
from evenly.models.observation import observing


def even_part(data: Labelled, examples: int, rng: torch.Generator) -> Labelled:
    """At most `examples` examples, as many of each class as possible, in the order of the data.

    >>> data = Labelled(torch.zeros(10, 1), torch.tensor([0] * 8 + [1] * 2), ("many", "few"))
    >>> even_part(data, 4, torch.Generator().manual_seed(0)).labels.tolist()
    [0, 0, 1, 1]
    """
    if len(data) <= examples:
        return data
    return data.subset(evenly_over(data.labels, examples, rng=rng))


def random_part(data: Labelled, examples: int, rng: torch.Generator) -> Labelled:
    """At most `examples` examples, each equally likely, in the order of the data: means over them are unbiased.

    >>> data = Labelled(torch.zeros(10, 1), torch.tensor([0] * 8 + [1] * 2), ("many", "few"))
    >>> len(random_part(data, 4, torch.Generator().manual_seed(0)))
    4
    """
    if len(data) <= examples:
        return data
    return data.subset(torch.randperm(len(data), generator=rng)[:examples].sort().values)


def as_splits(data: Splits | Data, model: nn.Module) -> Splits:
    """Data of any form as splits, checked against the model's inputs and its number of classes.

    >>> as_splits((torch.zeros(3, 2), torch.tensor([0, 1, 1])), nn.Linear(2, 2)).train.classes
    ('0', '1')
    """
    if isinstance(data, Labelled):
        data = Splits(data.name, {"train": data})
    if isinstance(data, Splits):
        inputs, labels = data.train.gather(range(min(4, len(data.train)))), data.train.labels
    else:
        inputs, labels = _pair(data)
    num_outputs = _num_outputs(model, scale_pixels(inputs[:4]))
    _check_labels(labels, num_outputs)
    if isinstance(data, Splits):
        return data
    return Splits("data", {"train": Labelled(inputs, labels.long(), tuple(map(str, range(max(num_outputs, 2)))))})


def _pair(data: Data) -> tuple[Tensor, Tensor]:
    """All inputs and all labels of a pair of tensors or of batches."""
    if isinstance(data, tuple | list) and len(data) == 2 and all(isinstance(part, Tensor) for part in data):
        return data[0], data[1]
    chunks = as_chunks(data)
    inputs, labels = [x for x, _ in chunks], [y for _, y in chunks if y is not None]
    if len(labels) < len(inputs):
        raise UsageError(f"the data are a tensor, or batches of one, without labels: give {EXPECTED}.")
    try:
        return torch.cat(inputs), torch.cat(labels)
    except RuntimeError as error:
        shapes = ", ".join(sorted({str(tuple(x.shape)) for x in inputs}))
        raise DataError(
            f"the batches, of shapes {shapes}, do not fit together ({error}): give equal shapes."
        ) from error


def _num_outputs(model: nn.Module, few: Tensor) -> int:
    """The model's number of outputs per example, from a trial on a few."""
    if not len(few):
        raise DataError("there are no examples to measure: give at least one.")
    try:
        with observing(model), torch.no_grad():
            outputs = model(as_chunks(few, model=model)[0][0])
    except (RuntimeError, ValueError, IndexError, TypeError) as error:
        name, weight = next(iter(model.named_parameters()), ("none", torch.empty(0)))
        raise UsageError(
            f"{type(model).__name__} cannot take examples of shape {tuple(few.shape[1:])} and {few.dtype}; its first "
            f"weight, {name!r}, has shape {tuple(weight.shape)}. Give inputs as it was made for, or change them before "
            f"it, as nn.Sequential(nn.Flatten(), model) does. Torch reports: {error}"
        ) from error
    if not isinstance(outputs, Tensor):
        raise UsageError(
            f"{type(model).__name__} returns a {type(outputs).__name__}, not a tensor: wrap it in a module that "
            "returns the outputs only."
        )
    return outputs[0].numel() if outputs.ndim and len(outputs) else 1


def _check_labels(labels: Tensor, num_outputs: int) -> None:
    if labels.is_floating_point() or labels.ndim != 1:
        raise DataError(
            f"labels are {labels.dtype} of shape {tuple(labels.shape)}: measure needs one class number per example, "
            "such as labels.long(). evenly.diagnostics.sharpness and worst_rise take floating targets."
        )
    wrong = ((labels < 0) | (labels >= max(num_outputs, 2))).nonzero().flatten().tolist()
    if wrong:
        outputs = f"{num_outputs} output{'s' * (num_outputs != 1)}"
        raise DataError(
            f"label {int(labels[wrong[0]])} of example {wrong[0]} is out of range ({len(wrong)} such labels): for the "
            f"model's {outputs} classes are numbered 0 to {max(num_outputs, 2) - 1}. Renumber them."
        )
