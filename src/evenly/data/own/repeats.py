"""Rows of a manifest that repeat an example within an epoch.

Shapes: N rows listed, M examples with their copies.
"""

import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from evenly.data.formats.listing import members, remarks_on
from evenly.data.labelled import Labelled
from evenly.data.splits import Splits
from evenly.errors import DataError, UsageError
from evenly.files.cells import whole_number

# A row may stand for many copies, but a short table must not claim more examples than fit in memory.
_COPIES_PER_ROW, _COPIES = 100, 1_000_000


class Repeated(Splits):
    """Splits whose training examples occur more than once: nothing can be held out of them without its copies."""

    repeated = True

    def __or__(self, more: Mapping[str, Labelled]) -> Splits:
        if "train" in more:
            raise UsageError(
                f"{self.name} lists training examples more than once, and a share held out of them would have copies "
                "that are trained on. Give it a column `split` with validation rows, and leave data.validation out."
            )
        return super().__or__(more)


def repeats(
    source: str, column: str, cells: Iterable[str], *, split_of: Sequence[str], place: Callable[[int], str]
) -> Tensor:
    """How often each row occurs; a `DataError` names the place of the first invalid number.

    Rows outside `train` occur once. They may say 0, how often they are trained on: a loop that looks at nothing but
    this column then never trains on them.

    >>> split_of = ["train", "test", "test", "test"]
    >>> repeats("up.csv", "repeat", ["2", "1.0", "", "0"], split_of=split_of, place="line {}".format).tolist()
    [2, 1, 1, 1]
    >>> repeats("up.csv", "repeat", ["0"], split_of=["train"], place=lambda row: f"line {row + 2}")
    Traceback (most recent call last):
    evenly.errors.DataError: up.csv, line 2: 'repeat' is '0': an example occurs a whole number of times, at least ...
    """
    numbers = array.array("i")
    most, total = min(_COPIES_PER_ROW * len(split_of) + _COPIES, 2**31 - 1), 0
    for row, (cell, split) in enumerate(zip(cells, split_of, strict=True)):
        number = whole_number(cell) if cell or split == "train" else 1
        if number == 0 and split != "train":
            number = 1
        if number is None or number < 1:
            raise DataError(
                f"{source}, {place(row)}: {column!r} is {cell!r}: an example occurs a whole number of times, at least "
                "once. To leave one out, remove its row. If the column means something else, name another with "
                "repeat_column=, or --set repeat_column=NAME."
            )
        if number > 1 and split != "train":
            raise DataError(
                f"{source}, {place(row)}: {column!r} is {cell} in the split {split}: repeating examples there would "
                "change what is measured. Write 1, or 0."
            )
        total += number
        if total > most:
            raise DataError(
                f"{source}, {place(row)}: {column!r} is {cell}: with it {len(split_of):,} rows stand for {total:,} "
                f"examples, and at most {most:,} are taken. Write smaller numbers."
            )
        numbers.append(number)
    return torch.frombuffer(numbers, dtype=torch.int32) if numbers else torch.empty(0, dtype=torch.int32)


def with_copies(name: str, whole: Labelled, repeat_N: Tensor, split_of: Sequence[str]) -> Splits:
    """`whole` by split, each listed row as often as `repeat_N` says: all rows first, then second copies, then third.

    A copy is an example like any other, with a number of its own after those of all rows, so that it is augmented on
    its own. `repeat_N` and `split_of` count all rows that were listed, also those whose broken images were left out.

    >>> whole = Labelled(torch.zeros(2, 3), torch.tensor([0, 1]), ("a", "b"))
    >>> train = with_copies("x", whole, torch.tensor([1, 3]), ["train", "train"]).train
    >>> train.labels.tolist(), train.index.tolist()
    ([0, 1, 1, 1], [0, 1, 2, 3])
    """
    row_M = _in_rounds(repeat_N)
    there_N = torch.zeros(len(repeat_N), dtype=torch.bool)
    there_N[whole.index] = True
    position_N = None if len(whole) == len(repeat_N) else there_N.cumsum(0) - 1
    # Every listed row has its numbers, so that they do not change when a broken image is left out.
    parts, num = {}, 0
    listed = members(split_of)
    for split, in_N in listed.items():
        in_N &= there_N
        number_K = torch.arange(len(row_M)) if bool(in_N.all()) else in_N[row_M].nonzero().flatten()
        row_K = row_M if len(number_K) == len(row_M) else row_M[number_K]
        where_K = row_K if position_N is None else position_N[row_K]
        parts[split] = _examples(whole, where_K, number_K, last=split == list(listed)[-1])
        num += len(number_K)
    remarks = remarks_on(whole)
    if num == len(whole):
        return Splits(name, parts, remarks=remarks)
    remark = f"{num - len(whole):,} of the {len(parts['train']):,} training examples are copies, by `repeat`."
    return Repeated(name, parts, remarks=(*remarks, remark))


def _examples(whole: Labelled, where_K: Tensor, number_K: Tensor, *, last: bool) -> Labelled:
    """A subset with numbers of its own.

    The last one takes the attributes out of `whole` one after another: a million rows and their copies need not be in
    memory twice.
    """
    attributes = dict(whole.attributes)
    if last and isinstance(whole.attributes, dict):
        whole.attributes.clear()
    bare = replace(whole, attributes={}).subset(where_K, index=number_K)
    for name in list(attributes):
        attributes[name] = attributes.pop(name)[where_K]
    return replace(bare, attributes=attributes)


def _in_rounds(repeat_N: Tensor) -> Tensor:
    """Every row once, in order; then those that occur a second time, then a third.

    >>> _in_rounds(torch.tensor([1, 3, 2])).tolist()
    [0, 1, 2, 1, 2, 1]
    """
    copied_K = (repeat_N > 1).nonzero().flatten()
    more_K = repeat_N[copied_K].long() - 1
    row_L = copied_K.repeat_interleave(more_K)  # the rows of all further copies, those of one row together
    copy_L = torch.arange(len(row_L)) - (more_K.cumsum(0) - more_K).repeat_interleave(more_K)
    row_M = torch.empty(len(repeat_N) + len(row_L), dtype=torch.int64)
    torch.arange(len(repeat_N), out=row_M[: len(repeat_N)])
    torch.index_select(row_L, 0, copy_L.argsort(stable=True), out=row_M[len(repeat_N) :])
    return row_M
