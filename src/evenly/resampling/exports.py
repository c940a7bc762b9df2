"""The multiset in formats that other trainers read.

An array of indices, a CSV manifest with a column `repeat`, and a folder of links with a folder per class. For Hugging
Face no file is needed: `dataset.select(separation.indices(2).tolist())`.

Shapes: N examples, M places in the multiset.
"""

import csv
import os
import re
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Literal

import numpy as np
from torch import Tensor

from evenly.atomic import replacing
from evenly.data.formats.image_files import ImageFiles
from evenly.data.labelled import Labelled
from evenly.errors import DataError, SetupError, UsageError
from evenly.resampling.multiset import Factor
from evenly.resampling.separation import Separation
from evenly.resampling.storage import example_rows

Link = Literal["symbolic", "hard"]
PathLike = str | os.PathLike[str]
_OWN = ("path", "index", "label", "split", "hard", "loss", "repeat")  # columns that an attribute cannot be written to


def write_indices(
    separation: Separation, path: PathLike, *, factor: Factor = 2, once: Tensor | Sequence[int] | None = None
) -> None:
    """Write the multiset as an int64 array to a `.npy` file: `Subset(dataset, numpy.load(path).tolist())`."""
    if Path(path).suffix != ".npy":
        raise UsageError(f"{path}: indices are written as .npy.")
    with replacing(path) as file:
        np.save(file, separation.indices(factor, once=once).numpy(), allow_pickle=False)


def write_csv(
    separation: Separation,
    path: PathLike,
    *,
    factor: Factor = 2,
    once: Tensor | Sequence[int] | None = None,
    files: Sequence[PathLike] | None = None,
    held_out: Mapping[str, Labelled] | None = None,
    attributes: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Write a row per example with the columns `[path,]index,label,[split,]hard,loss,repeat` and those of `attributes`.

    `repeat` is how often the example is trained on, 1 for most, and `label` the name of the class where names are
    known. With `files`, one per row of the separation, the first column is the file relative to the manifest, so that
    the manifest alone is a data set (`evenly.data.own.manifests` reads it too, repeats and all). `held_out` are the
    other splits of the same image files: their rows follow, so that training on the manifest has the same test set.
    Their `repeat` is 0, so that a loop that knows only this column does not train on them. `attributes` are further
    columns, a cell per row of the separation (see `attribute_cells`).
    """
    path = Path(path)
    repeat_N = separation.repeats(factor, once=once).tolist()
    names = None if files is None else _relative(files, path.parent, len(separation))
    others = held_out or {}
    if others and names is None:
        raise UsageError("held_out= adds the files of other splits: give the training files too, files=.")
    further = dict(attributes or {})
    first, split_name = (["path"] if names else []), (["split"] if others else [])
    with replacing(path, "w") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([*first, "index", "label", *split_name, "hard", "loss", "repeat", *further])
        for row, (index, label, hard, loss) in enumerate(example_rows(separation)):
            word = separation.classes[label] if separation.classes else label
            in_split = ["train"] if others else []
            cells = [column[row] for column in further.values()]
            writer.writerow(
                [*([names[row]] if names else []), index, word, *in_split, hard, loss, repeat_N[row], *cells]
            )
        for split, part in others.items():
            below = _relative(_files_of(part), path.parent, len(part))
            known = attribute_cells(part)
            columns = [known.get(column, [""] * len(part)) for column in further]
            rows = zip(below, part.index.tolist(), part.labels.tolist(), *columns, strict=True)
            for name, index, label, *cells in rows:
                writer.writerow([name, index, part.classes[label], split, "", "", 0, *cells])


def attribute_cells(data: Labelled) -> dict[str, list[str]]:
    """The attributes of examples as a manifest writes them, but for those named like a column of an export.

    >>> import torch
    >>> tag = {"tag": torch.tensor([1, 0]), "day": torch.tensor([3, 4]), "hard": torch.tensor([0, 1])}
    >>> attribute_cells(Labelled(torch.zeros(2, 1), torch.tensor([0, 1]), ("a", "b"), tag, {"tag": ("", "red")}))
    {'tag': ['red', ''], 'day': ['3', '4']}
    """
    cells = {}
    for name, values_N in data.attributes.items():
        if name not in _OWN:
            words = data.values.get(name, ())
            cells[name] = [words[value] if 0 <= value < len(words) else str(value) for value in values_N.tolist()]
    return cells


def write_links(
    separation: Separation,
    folder: PathLike,
    *,
    files: Sequence[PathLike],
    factor: Factor = 2,
    once: Tensor | Sequence[int] | None = None,
    link: Link = "symbolic",
    held_out: Mapping[str, Labelled] | None = None,
) -> int:
    """Fill a new folder with a subfolder of links per class, a link for each occurrence of a file; return their number.

    A link is called `<index>-<copy><suffix>`: copies are numbered from 0, and names sort as the data set does. Every
    reader of class folders, such as torchvision's ImageFolder, then trains on the multiset. With `held_out`, the other
    splits of the same image files, the class folders are in `train`, and in a folder for each of these splits, one link
    per file. The folder appears only when it is complete. The number is that of the training links.
    """
    folder = Path(folder).absolute()
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder}: is not empty. Give a new folder, so that old links do not stay among the new.")
    sources = [Path(file).absolute() for file in files]
    others = {split: [file.absolute() for file in _files_of(part)] for split, part in (held_out or {}).items()}
    if len(sources) != len(separation):
        raise DataError(f"{len(sources):,} files for {len(separation):,} examples: give one for each row separated.")
    missing = [source for source in (*sources, *chain(*others.values())) if not source.is_file()]
    if missing:
        raise DataError(f"{missing[0]}: no such file ({len(missing):,} such). Was it moved since it was listed?")
    repeat_N = separation.repeats(factor, once=once).tolist()
    index_N, label_N = separation.index.tolist(), separation.labels.tolist()
    width = len(str(max(index_N)))
    names = _class_folders(separation)
    train = "train" if others else ""
    work = folder.with_name(f".{folder.name}.part")
    shutil.rmtree(work, ignore_errors=True)  # leftovers of a killed run
    try:
        for row, source in enumerate(sources):
            below = work / train / names[label_N[row]]
            below.mkdir(parents=True, exist_ok=True)
            for copy in range(repeat_N[row]):
                _connect(below / f"{index_N[row]:0{width}d}-{copy}{source.suffix}", source, link)
        for split, part in (held_out or {}).items():
            for source, index, label in zip(others[split], part.index.tolist(), part.labels.tolist(), strict=True):
                below = work / split / names[label]
                below.mkdir(parents=True, exist_ok=True)
                _connect(below / f"{index:0{width}d}-0{source.suffix}", source, link)
        work.replace(folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return sum(repeat_N)


def _files_of(part: Labelled) -> list[Path]:
    if not isinstance(part.inputs, ImageFiles):
        raise DataError(f"{part.name} {part.split} is not made of image files, so that it cannot be listed by them.")
    return [part.inputs.root / name for name in part.inputs.names]


def _relative(files: Sequence[PathLike], start: Path, num: int) -> list[str]:
    if len(files) != num:
        raise DataError(f"{len(files):,} files for {num:,} examples: give one for each row separated.")
    return [Path(os.path.relpath(file, start)).as_posix() for file in files]


def _class_folders(separation: Separation) -> dict[int, str]:
    """A folder name for each class: unsafe characters are replaced, and no two names are alike."""
    labels = sorted(set(separation.labels.tolist()))
    words = {label: separation.classes[label] if separation.classes else str(label) for label in labels}
    names = {label: re.sub(r"[/\\\0]|^\.+", "_", word) or "_" for label, word in words.items()}
    # Some file systems do not tell Cat from cat.
    uses = Counter(name.casefold() for name in names.values())
    return {label: f"{name}-{label}" if uses[name.casefold()] > 1 else name for label, name in names.items()}


def _connect(target: Path, source: Path, link: Link) -> None:
    try:
        if link == "symbolic":
            target.symlink_to(source)
        else:
            target.hardlink_to(source)
    except OSError as error:
        other = "hard" if link == "symbolic" else "symbolic"
        raise SetupError(
            f"{target}: this file system refuses {link} links ({error.strerror}). Try link={other!r}, or export a CSV."
        ) from error
