"""Whether a separation and a data set belong together.

Shapes: N examples.
"""

import hashlib
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.utils.data import Subset

from evenly.data.labelled import Labelled
from evenly.data.own.foreign import as_dataset, foreign
from evenly.errors import DataError, UsageError
from evenly.resampling.arrays import Array, class_numbers

SPOT_CHECKS = 32  # items read from a data set that does not list its labels


def fingerprint(index_N: Tensor, label_N: Tensor) -> str:
    """Sixteen hex digits over the examples' numbers and labels, whatever the order of the rows.

    >>> one = fingerprint(torch.tensor([0, 1]), torch.tensor([5, 6]))
    >>> one == fingerprint(torch.tensor([1, 0]), torch.tensor([6, 5]))
    True
    >>> one == fingerprint(torch.arange(2), torch.arange(2))
    False
    """
    order_N = index_N.argsort()
    digest = hashlib.blake2b(digest_size=8)
    for values_N in (index_N, label_N):
        digest.update(values_N.cpu()[order_N].long().contiguous().numpy().tobytes())
    return digest.hexdigest()


def positions(
    dataset: Any,
    index_N: Tensor,
    label_N: Tensor,
    *,
    labels: Array | Sequence[int] | None = None,
    by_position: bool = False,
    part: bool = False,
) -> Tensor:
    """Where in `dataset` each separated example is; a `DataError` if the two do not belong together.

    `Labelled` data are matched by their own index unless `by_position` says that the numbers are positions; other data
    sets always by position. The labels of the data set, where it shows them (or given as `labels`, one for each of its
    examples), must be those that were separated. With `part`, the data set may have examples that were not separated.

    >>> from torch.utils.data import TensorDataset
    >>> pairs = TensorDataset(torch.zeros(2, 3), torch.tensor([0, 1]))
    >>> positions(pairs, torch.tensor([1, 0]), torch.tensor([1, 0])).tolist()
    [1, 0]
    >>> positions(pairs, torch.tensor([0, 1]), torch.tensor([1, 0]))
    Traceback (most recent call last):
    evenly.errors.DataError: the labels are those of TensorDataset in another order: ...
    >>> positions(pairs, torch.tensor([1]), torch.tensor([1]), part=True).tolist()
    [1]
    """
    dataset = as_dataset(dataset)
    refuse_evaluation(dataset)
    name = f"{dataset.name} {dataset.split}" if isinstance(dataset, Labelled) else type(dataset).__name__
    by_index = isinstance(dataset, Labelled) and not by_position
    theirs_N = dataset.index.cpu() if by_index else torch.arange(len(dataset))
    found_N = _labels(dataset) if labels is None else _given_labels(labels, len(dataset), name)
    if len(theirs_N) < len(index_N) or (len(theirs_N) > len(index_N) and not part):
        raise DataError(f"{_strangers(name, theirs_N, found_N, index_N, label_N)} {_REMEDY}")
    sorted_N, order_N = theirs_N.sort()
    place_N = torch.searchsorted(sorted_N, index_N).clamp_max(len(sorted_N) - 1)
    if not torch.equal(sorted_N[place_N], index_N):
        missing = int(index_N[int((sorted_N[place_N] != index_N).nonzero()[0])])
        raise DataError(
            f"{_strangers(name, theirs_N, found_N, index_N, label_N)} Example {missing} is not in it. {_REMEDY}"
        )
    where_N = order_N[place_N]
    if found_N is not None and not torch.equal(found_N[where_N].long(), label_N):
        if torch.equal(found_N[where_N].long().sort().values, label_N.sort().values):
            raise DataError(
                f"the labels are those of {name} in another order: the outputs came from a shuffled loader. Take them "
                "with shuffle=False, or give separate(…, index=) the number of the example behind each row."
            )
        raise DataError(f"{_strangers(name, theirs_N, found_N, index_N, label_N)} {_REMEDY}")
    if found_N is None:
        _check_some_items(dataset, name, where_N, label_N)
    return where_N


def refuse_evaluation(dataset: Any) -> None:
    """Raise a `UsageError` for evaluation splits and parts of them; other kinds of data set do not say what they are.

    >>> refuse_evaluation(Labelled(torch.zeros(1, 1), torch.zeros(1).long(), ("a",), split="test"))
    Traceback (most recent call last):
    evenly.errors.UsageError: data test is for evaluation: repeating examples there would change what is measured. ...
    """
    while isinstance(dataset, Subset):
        dataset = dataset.dataset
    if isinstance(dataset, Labelled) and dataset.split != "train":
        raise UsageError(
            f"{dataset.name} {dataset.split} is for evaluation: repeating examples there would change what is "
            "measured. Give the training split."
        )


def _check_some_items(dataset: Any, name: str, where_N: Tensor, label_N: Tensor) -> None:
    """Read some items of a data set that does not list its labels: each must have the label that was separated."""
    rows = sorted({round(k * (len(where_N) - 1) / max(SPOT_CHECKS - 1, 1)) for k in range(SPOT_CHECKS)})
    wrong = 0
    for row in rows:
        label = _item_label(dataset[int(where_N[row])])
        if label is None:  # not a pair of input and label: nothing to check
            return
        wrong += label != int(label_N[row])
    if wrong:
        raise DataError(
            f"{wrong} of {len(rows)} items of {name} that were looked at have another label than was separated: the "
            "outputs came from a shuffled loader, or from another data set. Take them with shuffle=False, or give "
            "separate(…, index=) the number of the example behind each row."
        )


def _item_label(item: Any) -> int | None:
    """The class number in an item of a data set, if it can be found: the second of a tuple, or `label`, `labels`."""
    if isinstance(item, tuple | list) and len(item) >= 2:
        value = item[1]
    elif isinstance(item, Mapping):
        value = next((item[name] for name in ("label", "labels", "target") if name in item), None)
    else:
        return None
    if isinstance(value, Tensor) and value.numel() == 1 and not value.is_floating_point():
        return int(value)
    return int(value) if isinstance(value, numbers.Integral) else None


_REMEDY = "Separate again from outputs on this data set, or use the split that was separated."


def _strangers(name: str, theirs_N: Tensor, found_N: Tensor | None, index_N: Tensor, label_N: Tensor) -> str:
    mark = fingerprint(theirs_N, found_N) if found_N is not None and len(found_N) == len(theirs_N) else "unknown"
    return (
        f"this separation was made for another data set: {len(index_N):,} examples, fingerprint "
        f"{fingerprint(index_N, label_N)}; {name} has {len(theirs_N):,}, fingerprint {mark}."
    )


def _given_labels(labels: Array | Sequence[int], num: int, name: str) -> Tensor:
    label_N = class_numbers(labels)
    if len(label_N) != num:
        raise DataError(
            f"labels: {len(label_N):,} for the {num:,} examples of {name}: give one for each, in its order."
        )
    return label_N


def _labels(dataset: Any) -> Tensor | None:
    """The data set's labels if it lists them; None where every item would have to be read."""
    if isinstance(dataset, Labelled):
        return dataset.labels.cpu()
    try:
        return foreign(dataset).labels
    except (DataError, UsageError):
        return None
