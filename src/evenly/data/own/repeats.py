"""Rows of a manifest that stand for an example more than once in an epoch.

Shapes: N rows listed, M examples with their copies.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import torch

from evenly.data.formats.listing import by_split
from evenly.data.labelled import Labelled, Splits
from evenly.errors import DataError, UsageError


class Repeated(Splits):
    """Splits whose training examples occur more than once: nothing can be held out of them without its copies."""

    def __or__(self, more: Mapping[str, Labelled]) -> Splits:
        if "train" in more:
            raise UsageError(
                f"{self.name} lists training examples more than once, and a share held out of them would have copies "
                "that are trained on. Give it a column `split` with validation rows, and leave data.validation out."
            )
        return super().__or__(more)


def repeats(
    source: str, column: str, cells: Sequence[str], *, split_of: Sequence[str], places: Sequence[str]
) -> list[int]:
    """How often each row occurs, or a `DataError` that names the place of the first that cannot be meant.

    >>> repeats("up.csv", "repeat", ["2", "1.0"], split_of=["train", "test"], places=["line 2", "line 3"])
    [2, 1]
    >>> repeats("up.csv", "repeat", ["0"], split_of=["train"], places=["line 2"])
    Traceback (most recent call last):
    evenly.errors.DataError: up.csv, line 2: 'repeat' is '0': an example occurs a whole number of times, at least ...
    """
    found = []
    for cell, split, place in zip(cells, split_of, places, strict=True):
        try:
            number = float(cell)
        except ValueError:
            number = 0.0
        if not number.is_integer() or number < 1:
            raise DataError(
                f"{source}, {place}: {column!r} is {cell!r}: an example occurs a whole number of times, at least once. "
                "To leave one out, remove its row. If the column means something else, name another with "
                "repeat_column=, or --set data.options.repeat_column=NAME."
            )
        if number > 1 and split != "train":
            raise DataError(
                f"{source}, {place}: {column!r} is {cell} in the split {split}: repeating examples there would change "
                "what is measured. Write 1."
            )
        found.append(int(number))
    return found


def with_copies(name: str, whole: Labelled, repeat: Sequence[int], split_of: Sequence[str]) -> Splits:
    """`whole` by split, each listed row as often as `repeat` says: all rows first, then second copies, then third.

    A copy is an example like any other, with a number of its own after those of all rows, so that it is augmented on
    its own. `repeat` and `split_of` count all rows that were listed, also those whose broken images were left out.

    >>> whole = Labelled(torch.zeros(2, 3), torch.tensor([0, 1]), ("a", "b"))
    >>> train = with_copies("x", whole, [1, 3], ["train", "train"]).train
    >>> train.labels.tolist(), train.index.tolist()
    ([0, 1, 1, 1], [0, 1, 2, 3])
    """
    repeat_N = torch.tensor(repeat)
    # Every row listed has its numbers, so that none changes when a broken image is left out.
    row_M = torch.cat([(repeat_N > copy).nonzero().flatten() for copy in range(int(repeat_N.max()))])
    position_N = torch.full((len(repeat),), -1)
    position_N[whole.index] = torch.arange(len(whole))
    number_M = (position_N[row_M] >= 0).nonzero().flatten()
    copied = replace(whole.subset(position_N[row_M[number_M]]), index=number_M)
    splits = by_split(name, copied, [split_of[row] for row in row_M.tolist()])
    if len(copied) == len(whole):
        return splits
    remark = f"{len(copied) - len(whole):,} of the {len(splits.train):,} training examples are copies, by `repeat`."
    return Repeated(name, splits, remarks=(*splits.remarks, remark))
