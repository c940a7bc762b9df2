"""The optional records of a run: what is absent is empty, and what is damaged is named and left out."""

import csv
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from numpy.typing import NDArray

from evenly.errors import DataError, EvenlyError
from evenly.records import Run
from evenly.records.arrays import read_arrays
from evenly.records.run import ENVIRONMENT, FAILED
from evenly.report.blocks import Block, Download, Plot, Section, iterate_blocks
from evenly.report.experiments.gallery import gallery, hard_examples_csv

EXAMPLES, SEPARATION, STABILITY, MEASUREMENTS = "examples.npz", "separation.json", "stability.json", "measurements"
PREDICTIONS, MODEL = "predictions.npz", "model.json"
_AGAIN = "Remove the run's folder and train again to have what it shows."
NEEDED = ("index", "label", "predicted", "loss", "hard", "suspect")
# The errors that a malformed record can cause. Our own data and usage errors are ValueErrors too; a missing library is
# not included.
DAMAGE = (LookupError, ValueError, TypeError, AttributeError, ArithmeticError, OSError, EOFError, BadZipFile, csv.Error)


class Reader:
    """Reads artefacts of runs and keeps what there is to remark on."""

    def __init__(self) -> None:
        self.remarks: list[str] = []
        self.left_out: dict[str, str] = {}
        self._read: dict[Path, dict[str, Any]] = {}

    def json(self, run: Run, name: str) -> dict[str, Any]:
        """An artefact as a mapping; empty where the run has none."""
        path = run.file(name)
        if not path.is_file():
            return {}
        # A run may be reached twice, as the run shown and as another's early run; read it and report damage only once.
        known = path.resolve()
        if known not in self._read:
            self._read[known] = self._json(run, name)
        return self._read[known]

    def _json(self, run: Run, name: str) -> dict[str, Any]:
        try:
            record = run.read_json(name)
        except DAMAGE as error:
            return self._leave_out(run.file(name), error)
        if not isinstance(record, dict):
            return self._leave_out(run.file(name), f"expected a JSON object, found a {type(record).__name__}")
        return record

    def class_names(self, run: Run) -> dict[int, str]:
        """The names of the classes by their labels, as the record of the model has them."""
        known = self.json(run, MODEL).get("classes")
        return {label: str(name) for label, name in enumerate(known)} if isinstance(known, list) else {}

    def stamps(self, run: Run) -> list[dict[str, Any]]:
        """The environments a run was made in, the first first."""
        try:
            stamps = run.stamps()
        except DAMAGE as error:
            self._leave_out(run.path / ENVIRONMENT, _why(error))
            return []
        if not all(isinstance(stamp, dict) for stamp in stamps):
            self._leave_out(run.path / ENVIRONMENT, "expected a list of JSON objects")
            return []
        return stamps

    def failure(self, run: Run) -> str | None:
        """Why a run failed, if it did."""
        try:
            return run.failure()
        except DAMAGE as error:
            self._leave_out(run.path / FAILED, _why(error))
            return "why is not known"

    def measurements(self, run: Run) -> list[dict[str, Any]]:
        """What was measured, by epoch."""
        rows = {}
        for path in sorted((run.path / MEASUREMENTS).glob("epoch-*.json")):
            row = self.json(run, f"{MEASUREMENTS}/{path.name}")
            if row and not isinstance(row.get("epoch"), int):
                self._leave_out(path, f"its epoch is {row.get('epoch')!r}, expected a whole number")
            elif row:
                rows[row["epoch"]] = row
        return [rows[epoch] for epoch in sorted(rows)]

    def examples(self, run: Run, *, called: str, names: Mapping[int, str], late: Run | None = None) -> list[Block]:
        """The easiest and hardest of the kept examples, and the hard ones as CSV.

        The pictures of files that have not changed are kept for the next time: a live page asks every two seconds.
        """
        path = run.file(EXAMPLES)
        try:
            if not path.is_file():
                return []
            now = path.stat()
            columns = self.predictions(late or run).get("train")
            later = _by_index(columns) if columns else {}
            key = (path.resolve(), now.st_mtime_ns, now.st_size, tuple(names.items()), called, tuple(later.items()))
            return list(_examples(*key))
        except DAMAGE as error:
            self._leave_out(path, _why(error))
            return []

    def predictions(self, run: Run) -> dict[str, dict[str, NDArray[Any]]]:
        """What the trained network says of each example, by split; empty where the run kept nothing of it."""
        path = run.file(PREDICTIONS)
        if not path.is_file():
            return {}
        by_split: dict[str, dict[str, NDArray[Any]]] = {}
        try:
            for name, values in read_arrays(run, PREDICTIONS, advice=_AGAIN).items():
                split, _, column = name.rpartition(".")
                by_split.setdefault(split, {})[column] = values
            for split, columns in by_split.items():
                if (
                    set(columns) != {"index", "label", "predicted", "probability"}
                    or len({len(v) for v in columns.values()}) > 1
                ):
                    raise DataError(f"its columns of {split!r} are not those of predictions")
        except DAMAGE as error:
            self._leave_out(path, _why(error))
            return {}
        return by_split

    def section(self, name: str, make: Callable[[], Section | None], files: Iterable[str]) -> Section | None:
        """The section that `make` gives; where its records are not of the shape they should be, a remark instead."""
        try:
            value = make()
            for _, block in iterate_blocks([value] if value is not None else []):
                if isinstance(block, Plot):
                    _ = block.drawn  # what cannot be drawn is found out here
        except DAMAGE as error:
            text = f"Left out the section {name!r}: {' or '.join(files)} is not as evenly writes it ({_why(error)})."
            self.remarks.append(text)
            self.left_out[name] = text
            return None
        return value

    def _leave_out(self, path: Path, why: object) -> dict[str, Any]:
        text = f"Left out {path.parent.name}/{path.name}: {str(why).removeprefix(f'{path} ')}"
        if text not in self.remarks:
            self.remarks.append(text)
        return {}


@lru_cache(maxsize=16)
def _examples(
    path: Path,
    _modified: int,
    _size: int,
    names: tuple[tuple[int, str], ...],
    called: str,
    late: tuple[tuple[int, tuple[int, float]], ...],
) -> tuple[Block, ...]:
    arrays = _arrays(path)
    pictures = gallery(arrays, dict(names), called=called, late=dict(late))
    if pictures is None:
        return ()
    rows = path.parent / "separation.csv"
    if not rows.is_file():
        return (pictures,)
    listed = hard_examples_csv(arrays, dict(names), rows.read_text(encoding="utf-8"))
    title = "The hard and the suspect examples as CSV"
    return pictures, Download(title, f"hard-examples-{path.parent.name}.csv", listed)


def _by_index(said: Mapping[str, NDArray[Any]]) -> dict[int, tuple[int, float]]:
    """The class that a network predicts and its probability, by the index of the example."""
    rows = zip(*(said[name].tolist() for name in ("index", "predicted", "probability")), strict=True)
    return {index: (predicted, probability) for index, predicted, probability in rows}


def _arrays(path: Path) -> dict[str, NDArray[Any]]:
    """The arrays of the kept examples; nothing is ever unpickled."""
    arrays = read_arrays(Run(path.parent), path.name, advice=_AGAIN)
    if missing := [name for name in NEEDED if name not in arrays]:
        raise DataError(f"it has no {', '.join(missing)}")
    if len({len(values) for values in arrays.values()}) > 1:
        raise DataError("its arrays are of different lengths")
    return arrays


def _why(error: BaseException) -> str:
    """An error in words: a KeyError alone says only the key.

    >>> _why(KeyError("label")), _why(ValueError("no number"))
    ("there is no 'label'", 'no number')
    """
    if isinstance(error, KeyError):
        return f"there is no {error}"
    return str(error) if isinstance(error, EvenlyError | ValueError | OSError) else f"{type(error).__name__}: {error}"
