"""The separation of an early run, made from its outputs once, however many methods use it."""

import warnings
from typing import Any

from torch import Tensor

from evenly import rng
from evenly.data import Labelled
from evenly.errors import DataError
from evenly.records import Run
from evenly.resampling import Separation, separate
from evenly.resampling.moment import MAX_ACCURACY
from evenly.resampling.remarks import Fitted
from evenly.resampling.separation import SeparationWarning
from evenly.resampling.suspects import suspects
from evenly.training.early import OUTPUTS, fits_nearly_all, load_outputs

_REMEMBERED = 16  # separations: a few methods for each of the seeds in progress
_separations: dict[tuple[Any, ...], Separation] = {}


def rule_of(method: str) -> str:
    """The rule of `separate` by which a resampling method chooses examples; most take the hard clusters.

    >>> rule_of("misclassified"), rule_of("reweight")
    ('misclassified', 'k-means')
    """
    return method if method in ("quantile", "misclassified") else "k-means"


def separation_of(early: Run, data: Labelled, *, method: str = "k-means", among: str = "all") -> Separation:
    """The separation of an early run's outputs, for the data they were computed on.

    It is cached by everything that decides it: the current file of outputs, the method and the classes.
    """
    path = early.path / OUTPUTS
    file = path.stat() if path.is_file() else None
    stamp = (file.st_ino, file.st_size, file.st_mtime_ns) if file is not None else None
    key = (str(path.resolve()), stamp, early.id, method, among, data.classes)
    if key not in _separations:
        separation = _separate(early, data, method=method, among=among)
        while len(_separations) >= _REMEMBERED:
            del _separations[next(iter(_separations))]
        _separations[key] = separation
    return _separations[key]


def suspect_rows(early: Run, separation: Separation) -> Tensor:
    """The rows of a separation that look mislabelled."""
    return suspects(load_outputs(early)["logits"], separation.labels).rows


def _separate(early: Run, data: Labelled, *, method: str, among: str) -> Separation:
    kept = load_outputs(early)
    try:
        with warnings.catch_warnings():
            # The remarks are part of the separation and shown with it, so the warnings are silenced.
            warnings.simplefilter("ignore", SeparationWarning)
            return separate(
                kept["logits"],
                kept["labels"],
                index=kept["index"],
                classes=data.classes,
                method=method,  # type: ignore[arg-type]  # separate refuses what it does not know
                among=among,  # type: ignore[arg-type]  # likewise
                rng=rng.generator(0, "separate", early.id),
                max_accuracy=MAX_ACCURACY,
            )
    except Fitted as error:
        raise _too_late(early, int(kept["epoch"])) from error


def _too_late(early: Run, epoch: int) -> DataError:
    """The error if the outputs after `epoch` fit everything and form no clusters, with what to do."""
    before = [row for row in early.metrics() if not fits_nearly_all(row["train.error"]) and row["epoch"] < epoch]
    remedy = (
        f"separate after epoch {before[-1]['epoch']} ({1 - before[-1]['train.error']:.1%}): "
        f"--at-epoch {before[-1]['epoch']}"
        if before
        else "learn more slowly at first (--lr, --early-model), or accept that nothing here is hard"
    )
    return DataError(
        f"after epoch {epoch} the network of run {early.id} fits nearly all of the training set, and its outputs do "
        f"not fall into clusters: the split would be noise. Instead, {remedy}."
    )
