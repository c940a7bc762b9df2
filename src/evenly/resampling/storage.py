"""Separations on disk: complete as npz and JSON, the rows as CSV; nothing is ever unpickled.

Shapes: N examples, S classes, D outputs.
"""

import array
import csv
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from evenly.atomic import replacing, write_text
from evenly.errors import DataError, EvenlyError, UsageError
from evenly.files.cells import number, whole_number
from evenly.files.numpy_files import read_npz
from evenly.files.regular import read_text
from evenly.files.tables import Table, read_csv
from evenly.resampling.class_statistics import splits_by_loss
from evenly.resampling.separation import ClassSplit, Separation

T = TypeVar("T", int, float)
VERSION = 1
_COUNTS = ("label", "num_easy", "num_hard")
_NUMBERS = ("loss_easy", "loss_hard", "inertia", "silhouette")
_MEANS = ("mean_easy", "mean_hard")
_ROWS = ("index", "label", "hard", "loss")


def save(separation: Separation, path: str | os.PathLike[str]) -> None:
    """Write a separation to `path`, whole or not at all: `.npz` (small), `.json` (readable) or `.csv` (a row each).

    CSV holds the values of each example, not the means, inertias and silhouettes of the classes. It does not say
    either whether the numbers of the examples were given: `load` takes 0, 1, 2, … in this order for positions.
    """
    path = Path(path)
    if path.suffix == ".npz":
        with replacing(path) as file:
            np.savez_compressed(file, **_arrays(separation), facts=np.array(json.dumps(_facts(separation))))
    elif path.suffix == ".json":
        content = _facts(separation) | {
            "examples": {name: _plain(values.tolist()) for name, values in _examples(separation).items()},
            "splits": [_split_record(split) for split in separation.splits],
        }
        write_text(path, json.dumps(content, ensure_ascii=False, allow_nan=False) + "\n")
    elif path.suffix == ".csv":
        with replacing(path, "w") as file:
            write_rows(separation, file)
    else:
        raise UsageError(
            f"{path}: a separation is saved as .npz, .json or .csv, not {path.suffix or 'without a suffix'!r}."
        )


def write_rows(separation: Separation, file: IO[str]) -> None:
    """Write the values of each example as CSV."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_ROWS)
    writer.writerows(example_rows(separation))


def load(path: str | os.PathLike[str]) -> Separation:
    """The separation that `save` wrote to `path`.

    >>> import tempfile
    >>> from evenly.resampling import separate
    >>> separation = separate(torch.tensor([[4.0, 0.0], [0.0, 1.0], [0.0, 4.0], [1.0, 0.0]]), [0, 0, 1, 1])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(separation, f"{folder}/separation.npz")
    ...     again = load(f"{folder}/separation.npz")
    >>> torch.equal(again.hard, separation.hard), again.fingerprint == separation.fingerprint
    (True, True)
    """
    path = Path(path)
    readers = {".npz": _from_npz, ".json": _from_json, ".csv": _from_csv}
    if path.suffix not in readers:
        raise UsageError(f"{path}: a separation is read from .npz, .json or .csv.")
    if not path.exists():
        raise DataError(f"{path}: there is no such file. Separate first, or give the path of a saved separation.")
    try:
        return readers[path.suffix](path)
    except EvenlyError:
        raise
    except Exception as error:  # any error from a damaged file: a missing name, a row of the wrong kind, …
        raise DataError(
            f"{path}: is not a separation saved by evenly, or is damaged ({type(error).__name__}: {error}). "
            "Separate again."
        ) from error


def example_rows(separation: Separation) -> Iterable[tuple[int, int, int, str]]:
    """For each row: the example's number, label, 1 if hard, and the loss in as many digits as single precision has."""
    columns = (separation.index, separation.labels, separation.hard.int(), separation.losses)
    for index, label, hard, loss in zip(*(column.tolist() for column in columns), strict=True):
        yield index, label, hard, f"{loss + 0.0:.9g}"  # −0 + 0 = 0: cross-entropy rounds to either zero


def _examples(separation: Separation) -> dict[str, Tensor]:
    return {
        "hard": separation.hard,
        "labels": separation.labels,
        "losses": separation.losses,
        "index": separation.index,
    }


def _facts(separation: Separation) -> dict[str, Any]:
    return {
        "version": VERSION,
        "method": separation.method,
        "on": separation.on,
        "accuracy": _plain(separation.accuracy),
        "classes": list(separation.classes),
        "remarks": list(separation.remarks),
        "fingerprint": separation.fingerprint,
        "by_position": separation.by_position,
    }


def _arrays(separation: Separation) -> dict[str, Any]:
    splits = separation.splits
    arrays = {name: values.numpy() for name, values in _examples(separation).items()}
    arrays |= {f"split_{name}": np.array([getattr(s, name) for s in splits]) for name in (*_COUNTS, *_NUMBERS)}
    return arrays | {f"split_{name}": _as_rows([getattr(s, name) for s in splits]).numpy() for name in _MEANS}


def _as_rows(means: list[Tensor]) -> Tensor:
    """Means of the classes as rows; one that is unknown, of length 0, is nan like that of an empty part."""
    return torch.nn.utils.rnn.pad_sequence(means, batch_first=True, padding_value=math.nan)


def _from_npz(path: Path) -> Separation:
    arrays = read_npz(path, advice="Separate again.")
    facts = json.loads(str(arrays["facts"]))
    splits = []
    for row in range(len(arrays["split_label"])):
        values: dict[str, Any] = {name: arrays[f"split_{name}"][row].item() for name in (*_COUNTS, *_NUMBERS)}
        values |= {name: torch.from_numpy(arrays[f"split_{name}"][row]) for name in _MEANS}
        splits.append(ClassSplit(**values))
    examples = {name: torch.from_numpy(arrays[name]) for name in ("hard", "labels", "losses", "index")}
    return _assemble(path, facts, examples, splits)


def _from_json(path: Path) -> Separation:
    content = json.loads(read_text(path))
    examples = content["examples"]
    kinds = {"hard": torch.bool, "labels": torch.int64, "losses": torch.float32, "index": torch.int64}
    tensors = {name: torch.tensor(_numbers(examples[name]), dtype=kind) for name, kind in kinds.items()}
    splits = []
    for record in content["splits"]:
        values: dict[str, Any] = {name: record[name] for name in _COUNTS}
        values |= {name: _number(record[name]) for name in _NUMBERS}
        values |= {name: torch.tensor(_numbers(record[name]), dtype=torch.float32) for name in _MEANS}
        splits.append(ClassSplit(**values))
    return _assemble(path, content, tensors, splits)


def _from_csv(path: Path) -> Separation:
    table = read_csv(path)
    lacking = [name for name in _ROWS if name not in table.columns]
    if lacking:
        raise DataError(f"{path}: lacks the column {lacking[0]!r}; a separation has {', '.join(_ROWS)}.")
    if not len(table):
        raise DataError(f"{path}: has no rows. Separate again.")
    index_N, label_N, hard_N = (_column(path, table, name, whole_number, int) for name in ("index", "label", "hard"))
    loss_N = _column(path, table, "loss", number, float)
    hard_N = hard_N.bool()
    examples = {"hard": hard_N, "labels": label_N, "losses": loss_N, "index": index_N}
    facts = {"method": "csv", "on": "unknown", "accuracy": None, "classes": (), "remarks": ()}
    return _assemble(path, facts, examples, splits_by_loss(hard_N, label_N, loss_N))


def _column(path: Path, table: Table, name: str, parse: Callable[[str], T | None], kind: type[T]) -> Tensor:
    numbers = array.array("q" if kind is int else "d")
    for row, cell in enumerate(table.columns[name]):
        value = parse(cell)
        if value is None:
            expected = "a whole number" if kind is int else "a finite number"
            raise DataError(f"{path}, {table.place(row)}: {name!r} is {cell!r}, expected {expected}. Separate again.")
        numbers.append(value)
    return torch.tensor(numbers, dtype=torch.int64 if kind is int else torch.float32)


def _assemble(
    path: Path, facts: Mapping[str, Any], examples: Mapping[str, Tensor], splits: Iterable[ClassSplit]
) -> Separation:
    if facts.get("version", VERSION) != VERSION:
        raise DataError(
            f"{path}: written by another version of evenly (format {facts['version']}, this reads {VERSION})."
        )
    _check_examples(path, examples)
    splits = tuple(splits)
    _check_facts(path, facts, splits, num_classes=int(examples["labels"].max()) + 1)
    separation = Separation(
        **examples,
        splits=splits,
        distinctness={},
        method=facts["method"],
        on=facts["on"],
        accuracy=_number(facts["accuracy"]),
        classes=tuple(facts["classes"]),
        remarks=tuple(facts["remarks"]),
        by_position=facts.get("by_position", _count_rows(examples["index"])),
    )
    if facts.get("fingerprint") not in (None, separation.fingerprint):
        raise DataError(f"{path}: its examples do not match its own fingerprint: the file was changed. Separate again.")
    return separation


def _count_rows(index_N: Tensor) -> bool:
    """Whether the numbers are 0, 1, 2, …, as of rows without numbers of their own."""
    return torch.equal(index_N, torch.arange(len(index_N)))


def _check_examples(path: Path, examples: Mapping[str, Tensor]) -> None:
    """Refuse values that no separation has; later they would cause errors far from the file."""
    kinds = {"hard": torch.bool, "labels": torch.int64, "losses": torch.float32, "index": torch.int64}
    for name, kind in kinds.items():
        values = examples[name]
        if values.dtype != kind or values.shape != examples["labels"].shape or values.ndim != 1 or not len(values):
            content = f"{str(values.dtype).removeprefix('torch.')} of shape {tuple(values.shape)}"
            raise DataError(f"{path}: {name!r} is {content}, not one value for each example. Separate again.")
    for name in ("labels", "index"):
        if int(examples[name].min()) < 0:
            raise DataError(f"{path}: {name!r} holds {int(examples[name].min())}, which is negative. Separate again.")


def _check_facts(path: Path, facts: Mapping[str, Any], splits: Sequence[ClassSplit], *, num_classes: int) -> None:
    """Refuse facts of other types than `save` writes."""
    right = all(isinstance(facts[name], str) for name in ("method", "on"))
    right = right and all(isinstance(word, str) for name in ("classes", "remarks") for word in facts[name])
    right = right and isinstance(facts["accuracy"], int | float | None)
    right = right and isinstance(facts.get("by_position", False), bool)
    right = right and (not facts["classes"] or len(facts["classes"]) >= num_classes)
    for split in splits:
        right = right and all(type(getattr(split, name)) is int for name in _COUNTS) and 0 <= split.label < num_classes
        right = right and split.num_easy >= 0 and split.num_hard >= 0 and split.num > 0
        right = right and all(isinstance(getattr(split, name), int | float) for name in _NUMBERS)
    if not right:
        raise DataError(f"{path}: what it says of its classes is not what a separation says. Separate again.")


def _split_record(split: ClassSplit) -> dict[str, Any]:
    record = {name: _plain(getattr(split, name)) for name in (*_COUNTS, *_NUMBERS)}
    return record | {name: _plain(getattr(split, name).tolist()) for name in _MEANS}


def _plain(value: Any) -> Any:
    """JSON has no nan: null stands for it."""
    if isinstance(value, list):
        return [_plain(entry) for entry in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _numbers(values: list[Any]) -> list[Any]:
    return [math.nan if value is None else value for value in values]
