"""The metrics of a run for TensorBoard, in addition to its records."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from evenly.errors import SetupError


@contextlib.contextmanager
def metrics_writer(folder: Path, *, purge_after: int) -> Iterator[Callable[[dict[str, Any]], None]]:
    """A function that writes one epoch's metrics as scalars; events after epoch `purge_after` are dropped.

    >>> import tempfile
    >>> with metrics_writer(Path(tempfile.mkdtemp()), purge_after=0) as write:
    ...     write({"epoch": 1, "train.loss": 0.5})
    """
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise SetupError('--tensorboard needs a package: pip install "evenly[tensorboard]"') from error
    writer = SummaryWriter(str(folder), purge_step=purge_after + 1)

    def write(metrics: dict[str, Any]) -> None:
        for name, value in metrics.items():
            if isinstance(value, int | float) and name != "epoch":
                writer.add_scalar(name.replace(".", "/", 1), value, metrics["epoch"])

    try:
        yield write
    finally:
        writer.close()
