"""Data of one's own with fewer examples than the default batch has."""

import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from evenly.errors import EvenlyError

if TYPE_CHECKING:
    from evenly.recipe import Recipe

_MANY_FILES, _LARGE_FILE = 1000, 100 << 20  # more than a batch of images; bytes


def fitting_batch(recipe: "Recipe") -> tuple[int, str]:
    """The recipe's batch size, or a smaller one that the user's own few examples fill, and a sentence that says so."""
    from evenly.data.catalogue import is_path
    from evenly.training.build import fitting_batch_size, load_data

    usual = recipe.batch_size
    if not (is_path(recipe.data.name) and _may_be_few(Path(recipe.data.name))):
        return usual, ""
    try:
        num = len(load_data(recipe, remark=False).train)
    except EvenlyError:  # training reports it
        return usual, ""
    if usual <= num:
        return usual, ""
    size = fitting_batch_size(num, processes=int(os.environ.get("WORLD_SIZE", 1)))
    return size, (
        f"The {num} training examples do not fill a batch of {usual}, the default: batches of {size} are used "
        "(--batch-size)."
    )


def _may_be_few(path: Path) -> bool:
    """Whether data may hold fewer examples than a batch, judged without reading them: large data are read only once."""
    if path.is_dir():
        return sum(1 for _ in islice(path.rglob("*"), _MANY_FILES)) < _MANY_FILES
    return path.is_file() and path.stat().st_size < _LARGE_FILE
