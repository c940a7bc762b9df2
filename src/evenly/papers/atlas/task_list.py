"""The declared tasks of the atlas, and the rows that measure them."""

import os

from evenly.papers import ledger as book
from evenly.papers.atlas import map_convolution, map_digit_dominoes, map_fmnist_mnist
from evenly.papers.atlas.cells import Row
from evenly.papers.catalogue import CATALOGUE

TASKS = {task.key: task for maps in (map_digit_dominoes, map_convolution, map_fmnist_mnist) for task in maps.TASKS}


def atlas_rows(ledger: str | os.PathLike[str]) -> list[Row]:
    """The rows of the atlas in a ledger that match the current declarations, in the order of the tasks.

    >>> atlas_rows("nowhere")
    []
    """
    stored = [book.read(ledger, key, scale) for key in TASKS for scale in ("full", "small")]
    return [row for row in stored if row is not None and not book.stale(row, CATALOGUE[row["key"]])]
