"""The optional records of a run, read with patience: what is absent is empty, what is damaged is named and left out."""

from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from evenly.errors import DataError, UsageError
from evenly.records import Run

EXAMPLES, SEPARATION, STABILITY, MEASUREMENTS = "examples.npz", "separation.json", "stability.json", "measurements"
NEEDED = ("index", "label", "predicted", "loss", "hard", "suspect")


class Reader:
    """Reads artefacts of runs and keeps what there is to remark on."""

    def __init__(self) -> None:
        self.remarks: list[str] = []

    def json(self, run: Run, name: str) -> dict[str, Any]:
        """An artefact as a mapping; empty where the run has none."""
        if not run.file(name).is_file():
            return {}
        try:
            found = run.read_json(name)
        except (DataError, UsageError, OSError, UnicodeDecodeError) as error:
            return self._left_out(run.file(name), error)
        if not isinstance(found, dict):
            return self._left_out(run.file(name), f"expected a JSON object, found a {type(found).__name__}")
        return found

    def measurements(self, run: Run) -> list[dict[str, Any]]:
        """What was measured, by epoch."""
        names = sorted(path.name for path in (run.path / MEASUREMENTS).glob("epoch-*.json"))
        found = [self.json(run, f"{MEASUREMENTS}/{name}") for name in names]
        return sorted((row for row in found if "epoch" in row), key=lambda row: row["epoch"])

    def examples(self, run: Run) -> dict[str, NDArray[Any]]:
        """The arrays of the kept examples; nothing is ever unpickled."""
        path = run.file(EXAMPLES)
        if not path.is_file():
            return {}
        try:
            with np.load(path, allow_pickle=False) as file:
                found = {name: file[name] for name in file.files}
        except (ValueError, OSError, BadZipFile, EOFError, KeyError) as error:
            return self._left_out(path, error)
        if missing := [name for name in NEEDED if name not in found]:
            return self._left_out(path, f"it has no {', '.join(missing)}")
        if len({len(values) for values in found.values()}) > 1:
            return self._left_out(path, "its arrays are of different lengths")
        return found

    def _left_out(self, path: Path, why: object) -> dict[str, Any]:
        self.remarks.append(f"Left out {path.parent.name}/{path.name}: {why}")
        return {}
