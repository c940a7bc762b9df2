"""What is wrong with a data set before any training starts."""

from collections.abc import Sequence

from evenly.data.labelled import Labelled, Splits
from evenly.errors import DataError

_CHUNK = 4096


def problems(splits: Splits) -> list[str]:
    """A sentence for everything about `splits` that would make training or its measurements meaningless.

    Empty splits; a class with one training example or with none; inputs that are not finite numbers; inputs
    that are all the same. Of inputs on disk, sixteen spread over the split are read.

    >>> import torch
    >>> lone = Labelled(torch.eye(3), torch.tensor([0, 0, 1]), ("cat", "dog"))
    >>> problems(Splits("pets", {"train": lone}))
    ["class 'dog' has one training example: it cannot be split into easy and hard. Add examples, or remove the class."]
    """
    found = [f"the split {name!r} is empty." for name, part in splits.items() if len(part) == 0]
    if len(splits.train):
        found += _class_problems(splits)
    for name, part in splits.items():
        if len(part):
            found += _input_problems(name, part)
    return found


def check(splits: Splits) -> None:
    """Raise one `DataError` that lists all `problems` of `splits`, if there are any.

    >>> import torch
    >>> check(Splits("pets", {"train": Labelled(torch.zeros(2, 3), torch.tensor([0, 0]), ("cat",))}))
    Traceback (most recent call last):
    evenly.errors.DataError: pets: all inputs of 'train' are the same: ...
    """
    found = problems(splits)
    if len(found) == 1:
        raise DataError(f"{splits.name}: {found[0]}")
    if found:
        raise DataError(f"{splits.name} has {len(found)} problems:\n" + "\n".join(f"- {line}" for line in found))


def _class_problems(splits: Splits) -> list[str]:
    counts = splits.train.labels.bincount(minlength=splits.num_classes).tolist()
    found = []
    for label, (name, count) in enumerate(zip(splits.classes, counts, strict=True)):
        if count == 1:
            found.append(
                f"class {name!r} has one training example: it cannot be split into easy and hard. "
                "Add examples, or remove the class."
            )
        elif count == 0:
            elsewhere = [split for split, part in splits.items() if bool((part.labels == label).any())]
            where = f", only in {' and '.join(map(repr, elsewhere))}" if elsewhere else " nor any other"
            found.append(f"class {name!r} has no training example{where}. Add examples, or remove the class.")
    return found


def _input_problems(name: str, part: Labelled) -> list[str]:
    num = len(part)
    if part.lazy:
        # Spread over the whole split, so that the classes of a sorted listing all have a chance to be seen.
        chunks: list[Sequence[int]] = [sorted({round(k * (num - 1) / 15) for k in range(16)})]
    else:
        chunks = [range(start, min(start + _CHUNK, num)) for start in range(0, num, _CHUNK)]
    first = part.gather(chunks[0][:1])
    constant, not_finite = num > 1, 0
    for positions in chunks:
        if not constant and not first.is_floating_point():
            break  # bytes are always finite
        values = part.gather(positions)
        constant = constant and bool((values == first).all())
        if values.is_floating_point():
            not_finite += int((~values.isfinite()).flatten(1).any(1).sum())
    found = []
    if not_finite:
        found.append(f"{not_finite:,} inputs of {name!r} hold NaN or infinity. Remove or replace these values.")
    if constant:
        found.append(f"all inputs of {name!r} are the same: nothing can be learned from them. Was it read rightly?")
    return found
