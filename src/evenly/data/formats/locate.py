"""Where a published data set is on disk, and the error if it is not there."""

import os
from collections.abc import Sequence
from pathlib import Path

from evenly.errors import DataError


class Missing(DataError):
    """Data that are not on this machine: `what` they are and the places that were `looked_in`."""

    def __init__(self, what: str, looked_in: Sequence[Path]) -> None:
        self.what, self.looked_in = what, tuple(looked_in)
        super().__init__(f"{what} was not found. Looked for {_either([str(path) for path in looked_in])}.")

    def __reduce__(self) -> tuple[type["Missing"], tuple[str, tuple[Path, ...]]]:
        return Missing, (self.what, self.looked_in)


def locate(what: str, root: str | os.PathLike[str], candidates: Sequence[str]) -> Path:
    """The first of the `candidates` (relative to `root`) that exists.

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> (root / "mnist").mkdir()
    >>> locate("MNIST", root, ["MNIST/raw", "mnist"]).name
    'mnist'
    """
    places = [Path(root) / candidate for candidate in candidates]
    for place in places:
        if place.exists():
            return place
    raise Missing(what, places)


def _either(words: Sequence[str]) -> str:
    return ", ".join(words[:-1]) + " or " + words[-1] if len(words) > 1 else "".join(words)
