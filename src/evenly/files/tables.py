"""Tables of text read row by row and kept packed: a million rows take little more than their characters."""

import array
import csv
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TextIO

from evenly.errors import DataError
from evenly.files.regular import open_text

_ROWS_AT_ONCE = 4096
_CELLS_AT_ONCE = 1 << 16
_LONGEST_ROW = 1 << 20  # characters
_MOST_COLUMNS = 10_000
_BETWEEN = "\0"  # no cell may hold it


class Column(Iterable[str]):
    """The cells of one column in order: read them by iterating, as often as needed.

    >>> column = Column()
    >>> column.extend(["cat", "", "dog"])
    >>> len(column), list(column)
    (3, ['cat', '', 'dog'])
    """

    def __init__(self) -> None:
        self._text = bytearray()  # one block for all, which goes back to the system as a whole when it is let go
        self._ends: list[int] = []
        self._num = 0

    def __len__(self) -> int:
        return self._num

    def __iter__(self) -> Iterator[str]:
        start = 0
        for end in self._ends:
            yield from self._text[start:end].decode().split(_BETWEEN)
            start = end

    def extend(self, cells: Sequence[str]) -> None:
        """Add cells; a `ValueError` for one that holds a zero byte."""
        if cells:
            joined = _BETWEEN.join(cells)
            if joined.count(_BETWEEN) != len(cells) - 1:
                raise ValueError("it holds a zero byte")
            self._text += joined.encode()
            self._ends.append(len(self._text))
            self._num += len(cells)


class Table:
    """Columns by name, and the number under which people find each row: its line, or its place."""

    def __init__(self, header: Sequence[str], *, counts: str = "line") -> None:
        self.columns = {name: Column() for name in header}
        self._counts = counts
        self._numbers = array.array("q")

    def __len__(self) -> int:
        return len(self._numbers)

    def extend(self, rows: Sequence[Sequence[str]], numbers: Iterable[int]) -> None:
        """Add rows of cells, each with its number."""
        for column, cells in zip(self.columns.values(), zip(*rows, strict=True), strict=True):
            column.extend(list(map(str.strip, cells)))
        self._numbers.extend(numbers)

    def place(self, row: int) -> str:
        """Where a row stands in the file, in words."""
        return f"{self._counts} {self._numbers[row]:,}" if self._counts == "row" else f"line {self._numbers[row]}"


def read_csv(
    path: str | os.PathLike[str], *, delimiter: str = ",", hint: Callable[[list[str]], str] = lambda header: ""
) -> Table:
    """The table in a file of separated values whose first line names the columns; `hint` may explain a wrong header.

    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "a.csv"
    >>> _ = path.write_text("path,label\\n1.png,cat\\n2.png,dog\\n")
    >>> table = read_csv(path)
    >>> list(table.columns["label"]), table.place(1)
    (['cat', 'dog'], 'line 3')
    """
    try:
        with open_text(path, encoding="utf-8-sig", newline="") as file:
            lines = _Lines(path, file)
            reader = csv.reader(lines, delimiter=delimiter, strict=True)
            header = [name.strip() for name in next(reader, [])]
            _check_header(path, header)
            table = Table(header)
            at_once = max(min(_ROWS_AT_ONCE, _CELLS_AT_ONCE // len(header)), 1)
            rows: list[list[str]] = []
            numbers: list[int] = []
            for row in reader:
                lines.start_row()
                if not row:
                    continue
                if len(row) != len(header):
                    raise DataError(
                        f"{path}: line {reader.line_num} has {len(row)} fields, the header has {len(header)} "
                        f"({', '.join(header)}). {hint(header)}".rstrip()
                    )
                rows.append(row)
                numbers.append(reader.line_num)
                if len(rows) == at_once:
                    table.extend(rows, numbers)
                    rows, numbers = [], []
            if rows:
                table.extend(rows, numbers)
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: is not UTF-8 text (byte {error.start}). Save it as UTF-8.") from error
    except csv.Error as error:
        raise DataError(f"{path}: is not a CSV file: {error}.") from error
    return table


def _check_header(path: str | os.PathLike[str], header: list[str]) -> None:
    if not header:
        raise DataError(f"{path}: is empty. Its first line names the columns: path,label.")
    if len(set(header)) < len(header):
        raise DataError(f"{path}: two columns have the same name: {', '.join(header)[:500]}.")
    if len(header) > _MOST_COLUMNS:
        raise DataError(f"{path}: has {len(header):,} columns, at most {_MOST_COLUMNS:,} are read.")


class _Lines(Iterator[str]):
    """The lines of a file, refused where a row gets longer than any row of a table is."""

    def __init__(self, path: str | os.PathLike[str], file: TextIO) -> None:
        self.path, self.file, self.number, self.characters = path, file, 0, 0

    def start_row(self) -> None:
        """What comes next belongs to another row."""
        self.characters = 0

    def __next__(self) -> str:
        line = self.file.readline(_LONGEST_ROW)
        if not line:
            raise StopIteration
        self.number += 1
        self.characters += len(line)
        if self.characters >= _LONGEST_ROW:
            raise DataError(
                f"{self.path}: line {self.number}: the row is longer than {_LONGEST_ROW:,} characters. Is a quotation "
                "mark left open?"
            )
        if _BETWEEN in line:
            raise DataError(f"{self.path}: line {self.number} holds a zero byte: this is not text. Save it as UTF-8.")
        return line
