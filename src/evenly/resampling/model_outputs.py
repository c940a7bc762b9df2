"""The outputs of a network on a data set, in the order of the data, with any number of processes.

Shapes: N examples, B of a batch, C outputs.
"""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    RandomSampler,
    SequentialSampler,
)

from evenly.data.labelled import Labelled
from evenly.data.own.foreign import as_dataset
from evenly.errors import DataError, UsageError
from evenly.resampling.arrays import as_numbers
from evenly.resampling.sampler import MultisetSampler
from evenly.rng import fork_generators

_NUMBERS = (
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.int8, torch.int16, torch.int32, torch.int64, torch.bool),
)
Pair = tuple[Tensor, Tensor] | tuple[NDArray[Any], NDArray[Any]]


class ModelOutputs(NamedTuple):
    """The first arguments of `evenly.separate`: `evenly.separate(*evenly.outputs(model, data))`."""

    logits: Tensor
    labels: Tensor


def outputs(model: nn.Module, data: Dataset[Any] | DataLoader[Any] | Pair, *, batch_size: int = 256) -> ModelOutputs:
    """Logits and labels of every example, in the order of the data set, on the CPU and on every process.

    The model runs in eval mode and without gradients; torch's random numbers go on as if nothing had happened. `data`
    is a data set of `(input, label)` pairs or of mappings with `labels`, as in Transformers, or a pair of tensors or
    arrays. The other values of a mapping are given to the model by name, or, if it does not know these names, the only
    tensor among them. A loader contributes its data set, batch size, workers and collate function, but not its order;
    one that shows only a part of its data set (`SubsetRandomSampler`) is refused. Inputs in float64, and those of a
    `Labelled` of any kind, are given to the model in its own precision. Under `torch.distributed` each process takes a
    share.

    >>> from torch.utils.data import TensorDataset
    >>> data = TensorDataset(torch.eye(3), torch.tensor([2, 0, 1]))
    >>> outputs(nn.Identity(), DataLoader(data, batch_size=2, shuffle=True)).labels
    tensor([2, 0, 1])
    """
    device, dtype = _check_model(model)
    if batch_size < 1:
        raise UsageError(f"batch_size={batch_size}: a batch has at least one example; 256 is usual.")
    loader = data if isinstance(data, DataLoader) else None
    dataset = as_dataset(data if loader is None else loader.dataset)
    _refuse_batches(dataset)
    num = len(dataset)
    if not num:
        raise DataError("the data have no examples")
    if loader is not None:
        _check_shows_all(loader, num)
    kinds = _NUMBERS if isinstance(dataset, Labelled) else (torch.float64,)
    rank, ranks = _place()
    if num < ranks:  # some would have no example, and so no outputs to give: each takes all
        rank, ranks = 0, 1
    options = {"batch_size": batch_size} if loader is None else _options(loader, batch_size)
    own = DataLoader(dataset, sampler=range(rank, num, ranks), **options)
    # A wrapper's forward may wait for other processes (DDP broadcasts buffers), whose number of batches may differ.
    inner = model.module if isinstance(model, nn.parallel.DistributedDataParallel) else model
    modes = [(module, module.training) for module in inner.modules()]
    logits, labels = [], []
    inner.eval()
    try:
        with torch.no_grad(), fork_generators([device]):  # a loader draws a seed for its workers
            for batch in own:
                out_BC, label_B = _evaluate(inner, batch, device, dtype, kinds)
                logits.append(out_BC.float().cpu())
                labels.append(label_B)
    finally:
        for module, training in modes:
            module.training = training
    return _gather(torch.cat(logits), torch.cat(labels), num, rank, ranks)


def _check_model(model: Any) -> tuple[torch.device, torch.dtype]:
    """Where the model computes, and in which precision."""
    if not isinstance(model, nn.Module):
        raise UsageError(f"the model is a {type(model).__name__}: give a torch.nn.Module, which has an eval mode.")
    like = next((p for p in model.parameters() if p.is_floating_point()), torch.empty(0, dtype=torch.float32))
    if like.device.type == "meta":
        raise UsageError(
            f"the {type(model).__name__} is on the device meta, where it has no weights: load them first, "
            "model.to_empty(device='cpu') and load_state_dict."
        )
    return like.device, like.dtype


def _refuse_batches(dataset: Any) -> None:
    """Refuse a list of batches: each would count as one example."""
    first = dataset[0] if isinstance(dataset, list | tuple) and dataset else None
    if isinstance(first, list | tuple) and len(first) >= 2 and all(isinstance(each, Tensor) for each in first[:2]):
        x, label = first[:2]
        if label.ndim == 1 and not label.is_floating_point() and x.ndim and len(x) == len(label):
            raise UsageError(
                f"the data are a {type(dataset).__name__} of batches, the first of {len(label):,} examples: give the "
                "loader that made them, or its data set."
            )


def _check_shows_all(loader: DataLoader[Any], num: int) -> None:
    """Refuse a loader whose sampler may leave out examples, which would come back in what is made of the outputs."""
    batches: Any = loader.batch_sampler
    sampler: Any = loader.sampler if batches is None else getattr(batches, "sampler", batches)
    while isinstance(sampler, BatchSampler):
        sampler = sampler.sampler
    match sampler:
        case SequentialSampler():
            shown = len(sampler.data_source)
        case RandomSampler():
            shown = 0 if sampler.replacement else min(sampler.num_samples, len(sampler.data_source))
        case DistributedSampler():
            shown = len(sampler.dataset)  # type: ignore[arg-type]  # of torch: it has a length
        case MultisetSampler():
            shown = len(set(sampler.positions.tolist()))
        case _:
            shown = 0
    if shown != num:
        raise UsageError(
            f"the loader's {type(sampler).__name__} chooses examples, and outputs are taken of all {num:,} of its data "
            "set. Give loader.dataset if all are meant, or Subset(dataset, indices) with those that are."
        )


def _options(loader: DataLoader[Any], batch_size: int) -> dict[str, Any]:
    """The settings of a loader that do not concern the order of its examples."""
    options = {
        "batch_size": loader.batch_size or getattr(loader.batch_sampler, "batch_size", None) or batch_size,
        "num_workers": loader.num_workers,
        "worker_init_fn": loader.worker_init_fn,
        "multiprocessing_context": loader.multiprocessing_context,
        "timeout": loader.timeout,
        "prefetch_factor": loader.prefetch_factor,
    }
    if loader.batch_sampler is not None:  # without one, the function converts single items and makes no batches
        options["collate_fn"] = loader.collate_fn
    return options


def _evaluate(
    model: nn.Module, batch: Any, device: torch.device, dtype: torch.dtype, kinds: tuple[torch.dtype, ...]
) -> tuple[Tensor, Tensor]:
    """The outputs of a batch where the model is, and its labels on the CPU; inputs of these kinds become `dtype`."""

    def place(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        return value.to(device, dtype) if value.dtype in kinds else value.to(device)

    if isinstance(batch, Mapping):
        moved = {name: place(value) for name, value in batch.items()}
        named = [name for name in ("labels", "label", "target") if name in moved]
        if not named:
            raise DataError(
                f"the batches are mappings of {', '.join(moved)}: without `labels` there is nothing to match"
            )
        labels = moved.pop(named[0])
        out = _call(model, moved)
    elif isinstance(batch, list | tuple) and len(batch) >= 2:
        x, labels = place(batch[0]), batch[1]
        if not isinstance(x, Tensor):
            raise DataError(
                f"the input of a batch is a {type(x).__name__}, expected a tensor. If the model takes several, give "
                "items that are mappings, {'name of its argument': …, 'labels': …}."
            )
        out = _run(model, x, dtype)
    else:
        raise DataError(f"the batches are {type(batch).__name__}: give (input, label) pairs or mappings with `labels`")
    outputs = out if isinstance(out, Tensor) else getattr(out, "logits", None)
    if not isinstance(outputs, Tensor):
        raise DataError(
            f"the model returns {type(out).__name__}: expected a tensor of logits, or something with `.logits`"
        )
    label_B = as_numbers(labels, "labels", "one class number per example, from 0: names.index(word) for words")
    return outputs, label_B.cpu()


def _run(model: nn.Module, x: Tensor, dtype: torch.dtype) -> Any:
    """The model's outputs; an error on inputs of another kind of number than its weights names both."""
    try:
        return model(x)
    except RuntimeError as error:
        if x.dtype == dtype:
            raise
        given, own = (str(each).removeprefix("torch.") for each in (x.dtype, dtype))
        advice = "x.float() / 255 for pixels" if x.dtype == torch.uint8 else f"x.to(torch.{own})"
        raise DataError(
            f"{type(model).__name__} has weights in {own} and fails on inputs in {given} of shape {tuple(x.shape)}: "
            f"give {advice}, with the input first in each item. ({str(error).splitlines()[0]})"
        ) from error


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
