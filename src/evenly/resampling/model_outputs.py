"""The outputs of a network on a data set, in the order of the data, with any number of processes.

Shapes: N examples, B of a batch, C outputs.
"""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Subset

from evenly.data.own.foreign import as_dataset
from evenly.errors import DataError


class ModelOutputs(NamedTuple):
    """The first arguments of `evenly.separate`: `evenly.separate(*evenly.outputs(model, data))`."""

    logits: Tensor
    labels: Tensor


def outputs(
    model: nn.Module, data: Dataset[Any] | DataLoader[Any] | tuple[Tensor, Tensor], *, batch_size: int = 256
) -> ModelOutputs:
    """Logits and labels of every example, in the order of the data set, on the CPU and on every process.

    The model runs in eval mode and without gradients. `data` is a data set of `(input, label)` pairs or of mappings
    with `labels`, as in Transformers, or a pair of tensors. The other values of a mapping are given to the model by
    name, or, if it does not know these names, the only tensor among them. A loader contributes its data set, batch
    size, workers and collate function, but not its order. Under `torch.distributed` each process takes a share.

    >>> from torch.utils.data import TensorDataset
    >>> data = TensorDataset(torch.eye(3), torch.tensor([2, 0, 1]))
    >>> outputs(nn.Identity(), DataLoader(data, batch_size=2, shuffle=True)).labels
    tensor([2, 0, 1])
    """
    dataset: Any = data
    options: dict[str, Any] = {"batch_size": batch_size}
    if isinstance(data, DataLoader):
        dataset = data.dataset
        options = {
            "batch_size": data.batch_size or batch_size,
            "num_workers": data.num_workers,
            "collate_fn": data.collate_fn,
        }
    dataset = as_dataset(dataset)
    num = len(dataset)
    if not num:
        raise DataError("the data have no examples")
    rank, ranks = _place()
    own = DataLoader(Subset(dataset, list(range(rank, num, ranks))), shuffle=False, **options)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    # A wrapper's forward may wait for other processes (DDP broadcasts buffers), whose number of batches may differ.
    inner = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
    modes = [(module, module.training) for module in inner.modules()]
    logits, labels = [], []
    inner.eval()
    try:
        with torch.no_grad():
            for batch in own:
                out_BC, label_B = _evaluate(inner, batch, device)
                logits.append(out_BC.float().cpu())
                labels.append(label_B.cpu())
    finally:
        for module, training in modes:
            module.training = training
    return _gather(torch.cat(logits), torch.cat(labels), num, rank, ranks)


def _evaluate(model: nn.Module, batch: Any, device: torch.device) -> tuple[Tensor, Tensor]:
    if isinstance(batch, Mapping):
        moved = {name: value.to(device) if isinstance(value, Tensor) else value for name, value in batch.items()}
        named = [name for name in ("labels", "label", "target") if name in moved]
        if not named:
            raise DataError(
                f"the batches are mappings of {', '.join(moved)}: without `labels` there is nothing to match"
            )
        label_B = moved.pop(named[0])
        out = _call(model, moved)
    elif isinstance(batch, list | tuple) and len(batch) >= 2:
        x, label_B = batch[0].to(device), batch[1]
        out = model(x)
    else:
        raise DataError(f"the batches are {type(batch).__name__}: give (input, label) pairs or mappings with `labels`")
    outputs = out if isinstance(out, Tensor) else getattr(out, "logits", None)
    if not isinstance(outputs, Tensor):
        raise DataError(
            f"the model returns {type(out).__name__}: expected a tensor of logits, or something with `.logits`"
        )
    return outputs, label_B


def _call(model: nn.Module, moved: dict[str, Any]) -> Any:
    """The model's outputs on inputs by name; a single tensor goes without its name if the model does not know it."""
    try:
        inspect.signature(model.forward).bind(**moved)
    except ValueError:  # of a compiled model: its names are not known
        pass
    except TypeError as error:
        tensors = [value for value in moved.values() if isinstance(value, Tensor)]
        if len(tensors) != 1:
            names = ", ".join(inspect.signature(model.forward).parameters)
            raise DataError(
                f"the batches are mappings of {', '.join(moved)} beside the label, and {type(model).__name__} takes "
                f"{names} ({error}): give items with these names, or (input, label) pairs."
            ) from error
        return model(tensors[0])
    return model(**moved)


def _place() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def _gather(logits: Tensor, labels: Tensor, num: int, rank: int, ranks: int) -> ModelOutputs:
    if ranks == 1:
        return ModelOutputs(logits, labels)
    parts: list[Any] = [None] * ranks
    torch.distributed.all_gather_object(parts, (logits, labels))
    whole = torch.empty(num, *logits.shape[1:], dtype=logits.dtype)
    given = torch.empty(num, *labels.shape[1:], dtype=labels.dtype)
    for number, (out, label) in enumerate(parts):
        whole[number::ranks], given[number::ranks] = out, label
    return ModelOutputs(whole, given)
