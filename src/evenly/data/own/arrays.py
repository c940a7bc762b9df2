"""Your own arrays: an `.npz` file with inputs and labels, without pickles."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenly.data.channels import has_channels_last
from evenly.data.formats.class_folders import quote_names
from evenly.data.formats.locate import Missing
from evenly.data.labelled import Labelled
from evenly.data.own.folders import SPLIT_NAMES
from evenly.data.splits import Splits
from evenly.errors import DataError
from evenly.files.numpy_files import read_npz

_SPLITS = ("train", "validation", "test")
_ENDINGS = tuple(f"_{split}" for split in _SPLITS)
_INPUTS, _LABELS = ("inputs", "x"), ("labels", "y")


def arrays(path: Path) -> Splits:
    """The splits in an `.npz` file: `inputs` and `labels` (or `x` and `y`), and the same with `_test`, `_validation`.

    `attribute_<name>` (with the same endings) holds whole numbers or text, `classes` the names of the classes 0, 1, …;
    without it the labels themselves, sorted, name the classes. Images are N×C×H×W, or N×H×W×C with one or three
    channels last, of bytes (uint8) also N×H×W; all other inputs are kept in their shape, as float32. `_train`, `_val`
    and the like are understood too; arrays of other names are not read, which a remark says.

    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "mine.npz"
    >>> np.savez(path, x=np.zeros((4, 8, 8, 3), np.uint8), y=np.array(["cat", "dog", "cat", "dog"]))
    >>> arrays(path).train
    <mine.npz train: 4 examples of 3×8×8, 2 classes>
    """
    path = Path(path)
    if not path.exists():
        raise Missing("An .npz file", [path])
    content = read_npz(path, advice="Write it with numpy.savez(path, inputs=…, labels=…).")
    members_by_split, unread = _members(path, content)
    _check_names(path, content, members_by_split)
    present = {split: members for split, members in members_by_split.items() if "inputs" in members}
    labels, classes = _classes(path, {s: members["labels"] for s, members in present.items()}, content.get("classes"))
    attributes, values = _attributes(path, present)
    return Splits(
        path.name,
        {
            split: Labelled(
                _inputs(path, members["inputs"]),
                labels[split],
                classes,
                attributes=attributes[split],
                values=values,
                name=path.name,
                split=split,
            )
            for split, members in present.items()
        },
        remarks=[_unread_remark(path, unread)] if unread else [],
    )


def _members(path: Path, content: dict[str, NDArray[Any]]) -> tuple[dict[str, dict[str, NDArray[Any]]], list[str]]:
    """The arrays of every split under their plain names (inputs, labels, attribute_…), and the names of all others."""
    members: dict[str, dict[str, NDArray[Any]]] = {split: {} for split in _SPLITS}
    names: dict[tuple[str, str], str] = {}
    unread = []
    with_inputs = {split for split, plain in map(_split_and_plain, content) if _role(plain) == "inputs"}
    for name, array in content.items():
        split, plain = _split_and_plain(name)
        # The ending of an attribute may be part of its name, where it is neither a usual one nor that of any inputs.
        if _role(plain) is None or (split not in with_inputs and not name.endswith(_ENDINGS) and _role(name)):
            split, plain = "train", name
        role = _role(plain)
        if role is None:
            unread += [name] if name != "classes" else []
            continue
        if (split, role) in names:
            raise DataError(f"{path}: both {names[split, role]!r} and {name!r} would be the {split} {role}. Keep one.")
        names[split, role], members[split][role] = name, array
    return members, unread


def _split_and_plain(name: str) -> tuple[str, str]:
    """The split that the ending of a name says, and the name without it."""
    plain, _, ending = name.rpartition("_")
    split = SPLIT_NAMES.get(ending.lower())
    return ("train", name) if split is None else (split, plain)


def _role(plain: str) -> str | None:
    if plain.lower() in _INPUTS:
        return "inputs"
    if plain.lower() in _LABELS:
        return "labels"
    return plain if plain.startswith("attribute_") else None


def _check_names(
    path: Path, content: dict[str, NDArray[Any]], members_by_split: dict[str, dict[str, NDArray[Any]]]
) -> None:
    has = f"It holds: {', '.join(content) or 'nothing'}."
    for split, members in members_by_split.items():
        ending = "" if split == "train" else f"_{split}"
        for name, other in (("inputs", "x"), ("labels", "y")):
            if name not in members and (members or split == "train"):
                remedy = f"Save it under that name: numpy.savez(…, {name}{ending}=…)."
                raise DataError(f"{path}: there is no array '{name}{ending}' or '{other}{ending}'. {has} {remedy}")


def _unread_remark(path: Path, names: Sequence[str]) -> str:
    which = f"array {names[0]!r} is" if len(names) == 1 else f"arrays {quote_names(names)} are"
    return (
        f"{path.name}: the {which} not read: expected are inputs, labels and attribute_…, with the endings _train, "
        "_validation and _test, and classes."
    )


def _inputs(path: Path, array: NDArray[Any]) -> Tensor:
    if array.dtype.kind not in "biuf":
        raise DataError(f"{path}: the inputs are {array.dtype}, expected numbers.")
    if array.ndim < 2:
        raise DataError(f"{path}: the inputs have shape {array.shape}, expected examples first, then their values.")
    if array.ndim == 4 and has_channels_last(array.shape[1:]):
        array = array.transpose(0, 3, 1, 2)
    if array.dtype != np.uint8:
        return torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
    return torch.from_numpy(np.ascontiguousarray(array[:, None] if array.ndim == 3 else array))


def _classes(
    path: Path, labels: dict[str, NDArray[Any]], classes: NDArray[Any] | None
) -> tuple[dict[str, Tensor], tuple[str, ...]]:
    for split, array in labels.items():
        if array.ndim == 2 and array.shape[1] == 1:  # a column, as some tables are saved
            labels[split] = array = array[:, 0]
        if array.dtype.kind not in "biuU" or array.ndim != 1:
            raise DataError(
                f"{path}: the {split} labels are {array.dtype} of shape {array.shape}, expected one whole number or "
                f"name per example. {_advice(array)}"
            )
    kinds = {split: "text" if array.dtype.kind == "U" else "numbers" for split, array in labels.items()}
    other = next((split for split, kind in kinds.items() if kind != kinds["train"]), None)
    if other is not None:
        raise DataError(
            f"{path}: the train labels are {kinds['train']} and the {other} labels {kinds[other]}. Save both alike."
        )
    for split, array in labels.items():
        if kinds[split] == "text" and (empty := np.flatnonzero(array == "")).size:
            raise DataError(f"{path}: the {split} label of example {empty[0]:,} is empty ({len(empty):,} such labels).")
    if classes is not None:
        if classes.ndim != 1 or any(array.dtype.kind == "U" for array in labels.values()):
            raise DataError(f"{path}: 'classes' is a list of names for labels that are numbers, one per class.")
        names = tuple(str(name) for name in classes)
        return {split: torch.from_numpy(array.astype(np.int64)) for split, array in labels.items()}, names
    trained = np.unique(labels["train"])
    for split, array in labels.items():
        strange = np.setdiff1d(array, trained)
        if len(strange):
            raise DataError(
                f"{path}: class {quote_names([str(s) for s in strange])} of {split} has no training example."
            )
    coded = {split: torch.from_numpy(np.searchsorted(trained, array)) for split, array in labels.items()}
    return coded, tuple(str(label) for label in trained)


def _advice(labels: NDArray[Any]) -> str:
    """The line that corrects labels of the wrong kind or shape."""
    if labels.dtype.kind == "S":
        return "Save labels.astype(str)."
    flat = labels.ndim == 1 or (labels.ndim == 2 and len(labels) == 1)
    whole = labels.dtype.kind in "biu" or (labels.dtype.kind == "f" and bool((labels == np.floor(labels)).all()))
    if flat and whole:
        return f"Save labels{'' if labels.ndim == 1 else '.reshape(-1)'}.astype(int)."
    return "Round or bin continuous targets; take argmax(axis=1) of one-hot ones."


def _attributes(
    path: Path, parts: dict[str, dict[str, NDArray[Any]]]
) -> tuple[dict[str, dict[str, Tensor]], dict[str, tuple[str, ...]]]:
    coded: dict[str, dict[str, Tensor]] = {split: {} for split in parts}
    values: dict[str, tuple[str, ...]] = {}
    for name in sorted({name for members in parts.values() for name in members if name.startswith("attribute_")}):
        pieces = {split: members[name] for split, members in parts.items() if name in members}
        short = name.removeprefix("attribute_")
        if any(piece.dtype.kind not in "biuU" or piece.ndim != 1 for piece in pieces.values()):
            raise DataError(f"{path}: {name!r} must hold one whole number or name per example.")
        if any(piece.dtype.kind == "U" for piece in pieces.values()):
            words = np.unique(np.concatenate(list(pieces.values())))
            values[short] = tuple(str(word) for word in words)
            pieces = {split: np.searchsorted(words, piece.astype(words.dtype)) for split, piece in pieces.items()}
        for split, piece in pieces.items():
            coded[split][short] = torch.from_numpy(piece.astype(np.int64))
    return coded, values
