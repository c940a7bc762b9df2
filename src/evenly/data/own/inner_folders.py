"""Class folders that look like something else: splits under other names, or a level above the classes."""

import re
from collections.abc import Sequence
from pathlib import Path

from evenly.data.formats.class_folders import has_images, quote_names, sub_folders
from evenly.errors import DataError


def remarks_on_levels(folder: Path, names: Sequence[str], *, split_words: Sequence[str]) -> list[str]:
    """A sentence if the class folders `names` all hold the same folders and no images; an error if they are splits.

    They are taken for splits if one of `split_words` is in each name: `train_set` and `test_set`.
    """
    inside = {name: sub_folders(folder / name) for name in names}
    if not all(inside.values()) or any(has_images(folder / name) for name in names):
        return []
    if all(set(re.split(r"[^a-z]+", name.lower())) & set(split_words) for name in names):
        raise DataError(
            f"{folder}: {quote_names(names)} would be classes and are called like splits. Rename them to train, "
            "validation and test."
        )
    first = inside[names[0]]
    if len(names) == 1 or any(each != first for each in inside.values()):
        return []
    return [
        f"{folder}: the classes are {quote_names(names)}, and each holds the same folders, {quote_names(first)}. If "
        "those are the classes, give each of them a folder directly below, or give a CSV manifest."
    ]
