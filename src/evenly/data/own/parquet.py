"""Manifests in Parquet files, read a batch of rows at a time."""

from pathlib import Path
from typing import Any

from evenly.errors import DataError, SetupError
from evenly.files.numpy_files import ALLOWANCE, LARGEST_GROWTH
from evenly.files.regular import open_regular, size_of
from evenly.files.tables import Table

_ROWS_AT_ONCE = 4096


def read_parquet(path: Path) -> Table:
    """The table in a Parquet file, every cell as text; one that is absent, or is not a number, as an empty cell."""
    try:
        import pyarrow.parquet
    except ImportError as error:
        raise SetupError(
            f'{path}: reading Parquet needs pyarrow: pip install "evenly[parquet]", or give the manifest as .csv.'
        ) from error
    size = size_of(path)
    try:
        with open_regular(path) as opened, pyarrow.parquet.ParquetFile(opened) as file:
            groups = (file.metadata.row_group(number) for number in range(file.num_row_groups))
            claimed = sum(group.total_byte_size for group in groups)
            if not 0 <= claimed <= LARGEST_GROWTH * size + ALLOWANCE:
                raise DataError(f"its {size:,} bytes would unpack to {claimed:,}, far more than a manifest does.")
            names = [str(name) for name in file.schema_arrow.names]
            if len(set(names)) < len(names):
                raise DataError(f"two columns have the same name: {', '.join(names)[:500]}.")
            table = Table(names, counts="row")
            for batch in file.iter_batches(batch_size=_ROWS_AT_ONCE):
                cells = [list(map(_text, column.to_pylist())) for column in batch.columns]
                numbers = range(len(table) + 1, len(table) + batch.num_rows + 1)
                table.extend(list(zip(*cells, strict=True)), numbers)
    except DataError as error:
        raise DataError(f"{path}: {str(error).removeprefix(f'{path} ')}") from error
    except Exception as error:  # damaged bytes can raise anything inside pyarrow, even MemoryError
        raise DataError(f"{path}: is not a readable Parquet file: {str(error)[:500]}") from error
    return table


def _text(cell: Any) -> str:
    if cell is None or cell != cell:  # pandas writes NaN for what is absent
        return ""
    return cell.decode() if isinstance(cell, bytes) else str(cell)
