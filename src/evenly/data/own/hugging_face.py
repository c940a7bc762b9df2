"""Data sets of Hugging Face (`hf:NAME` or `hf:PATH`), from a copy on this machine, with the names of their classes.

Nothing is downloaded: `datasets` reads its local cache, or a folder.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from evenly.data.formats.image_files import Size, height_and_width
from evenly.data.labelled import Labelled
from evenly.data.own.folders import SPLIT_NAMES
from evenly.data.own.table_columns import (
    UNLABELLED,
    class_names,
    class_numbers,
    input_of,
    is_grey,
    label_of,
    require_column,
)
from evenly.data.own.table_rows import rows_of
from evenly.data.splits import Splits
from evenly.errors import DataError, SetupError, UsageError

PREFIX = "hf:"


def hugging_face(
    source: str, *, input_column: str | None = None, label_column: str | None = None, size: Size | None = None
) -> Splits:
    """The splits of a Hugging Face data set: its image column, its `ClassLabel` column, and that column's class names.

    `source` is the name of a data set that was loaded on this machine before, or a folder: one that `save_to_disk`
    wrote, or files that `datasets.load_dataset` understands. `size` resizes images, as for a folder of images. The
    classes are those of the training split, whose label and input columns the others share; a split with unlabelled
    rows is left out, with a remark.
    """
    resized = None if size is None else height_and_width(size)
    tables = _by_split(source)
    label = label_column or label_of(tables["train"], source)
    inputs = input_column or input_of(tables["train"], label, source)
    names = class_names(tables["train"], require_column(tables["train"], label, source), source)
    labels: dict[str, Tensor] = {}
    remarks = []
    for split, table in tables.items():
        require_column(table, inputs, f"{source}, split {split}")
        numbers = class_numbers(table, label, names, f"{source}, split {split}")
        if missing := numbers.count(UNLABELLED):
            without = f"{source}: {missing:,} of {len(numbers):,} rows of the split {split} have no label"
            if split == "train":
                raise DataError(f"{without}. Leave them out when the data set is saved.")
            remarks.append(f"{without}, so this split is left out.")
            continue
        labels[split] = torch.tensor(numbers, dtype=torch.int64)
    mode: Literal["L", "RGB"] = "L" if all(is_grey(tables[split], inputs) for split in labels) else "RGB"
    parts = {
        split: Labelled(rows_of(tables[split], inputs, source, size=resized, mode=mode), numbers_N, names)
        for split, numbers_N in labels.items()
    }
    return Splits(Path(source.removeprefix(PREFIX)).name, parts, remarks=remarks)


def _by_split(source: str) -> dict[str, Any]:
    """The table of each split, under the usual name of that split."""
    tables: dict[str, Any] = {}
    given: dict[str, str] = {}
    for name, table in _tables(source.removeprefix(PREFIX)).items():
        split = SPLIT_NAMES.get(name.lower(), name)
        if split in tables:
            raise DataError(f"{source}: both {given[split]!r} and {name!r} would be the split {split}. Keep one.")
        tables[split], given[split] = table, name
    if "train" not in tables:
        raise DataError(f"{source}: there is no split 'train' among {', '.join(tables) or 'none'}.")
    return tables


def _tables(source: str) -> Mapping[str, Any]:
    try:
        import datasets
    except ImportError as error:
        raise SetupError(
            f'{PREFIX}{source} needs datasets ({error}). Install it: pip install "evenly[datasets]"'
        ) from None
    folder = Path(source)
    if not source:
        raise UsageError(f"{PREFIX} is followed by the name of a data set or by a folder, such as {PREFIX}photos.")
    if source.startswith((".", "/", "~")) and not folder.exists():
        raise DataError(f"{PREFIX}{source}: there is no folder {source}.")
    try:
        if (folder / "dataset_dict.json").is_file() or (folder / "state.json").is_file():
            loaded = datasets.load_from_disk(str(folder))
        else:
            loaded = _load_stored(datasets, source)
    except (SetupError, DataError):
        raise
    except Exception as error:  # whatever datasets does with what is not there or damaged
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise DataError(
            f'{PREFIX}{source} could not be loaded from this machine: {reason:.300}. Fetch it once: python -c "import '
            f"datasets; datasets.load_dataset('{source}').save_to_disk('{folder.name}')\", then give "
            f"{PREFIX}{folder.name}."
        ) from error
    return loaded if isinstance(loaded, Mapping) else {str(loaded.split or "train"): loaded}


def _load_stored(datasets: Any, source: str) -> Any:
    """The result of `load_dataset` without network access."""
    config = datasets.config
    before = config.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = True
    try:
        return datasets.load_dataset(source)
    finally:
        config.HF_HUB_OFFLINE = before
