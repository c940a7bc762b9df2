"""Checkpoints of ensembles: work that is killed and begun again continues in the middle of its training.

The work builds its ensembles in the same order each time, so that a number tells them apart. A checkpoint belongs to
one call of `Ensemble.run` and is used only by the same call; short calls leave none and are made again.

Shapes: K members, P parameters.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol

from torch import Tensor

from evenly.data.fingerprints import fingerprint
from evenly.errors import UsageError
from evenly.records import Run
from evenly.training import checkpoint
from evenly.training.interruption import Interruption

FOLDER = "checkpoints"
PACE = 60.0  # seconds from one checkpoint to the next
SPARED = 50  # training takes at least so many times as long as saving its checkpoints
_log = logging.getLogger(__name__)


class Resumable(Protocol):
    """What a checkpoint saves and restores: an ensemble."""

    step: int

    def state_dict(self) -> dict[str, Any]:
        """What resuming bit for bit needs."""

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from such a state, or refuse that of other settings with a `UsageError`."""


class Checkpoints:
    """The checkpoints of one piece of work, in the folder of its run.

    `earlier` is the number of seconds that the work took before it was begun again.
    """

    def __init__(self, run: Run, *, pace: float = PACE) -> None:
        self.run, self.pace, self.earlier = run, pace, 0.0
        self.begun = time.monotonic()
        self._num_ensembles = 0

    def count(self) -> int:
        """The number of the next ensemble, from 1."""
        self._num_ensembles += 1
        return self._num_ensembles


_kept: ContextVar[Checkpoints | None] = ContextVar("checkpoints of ensembles", default=None)


@contextmanager
def keeping_checkpoints(run: Run, *, pace: float = PACE) -> Iterator[Checkpoints]:
    """Within the context, ensembles save checkpoints in the folder of `run`, and continue from those that are there.

    `pace` is the number of seconds between them, 0 for one after every step; where saving takes long, they are fewer.
    """
    own = Checkpoints(run, pace=pace)
    token = _kept.set(own)
    try:
        yield own
    finally:
        _kept.reset(token)


def next_checkpoint(first_KP: Tensor) -> "Checkpoint | None":
    """The checkpoint of an ensemble with these first weights; None outside of `keeping_checkpoints`."""
    kept = _kept.get()
    return None if kept is None else Checkpoint(kept, kept.count(), fingerprint([first_KP]))


class Checkpoint:
    """The checkpoint of one ensemble: a file for each long call of `run`, replaced as it goes on."""

    def __init__(self, kept: Checkpoints, number: int, first: str) -> None:
        self._kept, self._number, self._first = kept, number, first

    def _name(self, begin: int) -> str:
        return f"{FOLDER}/ensemble-{self._number:02d}-from-{begin}.safetensors"

    def resume(self, ensemble: Resumable, *, end: int) -> None:
        """Continue a call of `run` up to step `end` from the checkpoint that the same call has saved, if any."""
        name = self._name(ensemble.step)
        if not (self._kept.run.path / name).exists():
            return
        state = checkpoint.load(self._kept.run, name)
        if state["first"] != self._first or state["ensemble"]["step"] > end:
            return
        try:
            ensemble.load_state_dict(state["ensemble"])
        except UsageError as error:
            _log.info("%s is not used: %s", self._kept.run.path / name, error)
            return
        self._kept.earlier = max(self._kept.earlier, state["seconds"])
        _log.info("training of an ensemble continues after step %d of %d.", ensemble.step, end)

    @contextmanager
    def saving(self, ensemble: Resumable, *, begin: int, end: int) -> Iterator["Saver"]:
        """Within the context, `after_step()` of the result saves when it is time, or if the process should stop."""
        with Interruption() as interruption:
            yield Saver(self, ensemble, interruption, begin=begin, end=end)

    def save(self, ensemble: Resumable, *, begin: int) -> float:
        """Save the ensemble in a call that began at step `begin`; return the seconds that this took."""
        kept, started = self._kept, time.monotonic()
        state = {
            "first": self._first,
            "seconds": kept.earlier + started - kept.begun,
            "ensemble": ensemble.state_dict(),
        }
        checkpoint.save(kept.run, self._name(begin), state)
        return time.monotonic() - started

    @property
    def pace(self) -> float:
        """Seconds from one checkpoint to the next."""
        return self._kept.pace


class Saver:
    """Saves checkpoints during one call of `Ensemble.run`."""

    def __init__(
        self, own: Checkpoint, ensemble: Resumable, interruption: Interruption, *, begin: int, end: int
    ) -> None:
        self._own, self._ensemble, self._interruption = own, ensemble, interruption
        self._begin, self._end = begin, end
        self._pace, self._since = own.pace, time.monotonic()
        self._has_saved = False

    def after_step(self) -> None:
        """Save if it is time; if the process should stop, save and raise what stops it.

        The end of a short call is not saved: it is soon made again.
        """
        due = time.monotonic() - self._since >= self._pace
        over = self._ensemble.step == self._end and self._has_saved
        if due or over or self._interruption.requested:
            took = self._own.save(self._ensemble, begin=self._begin)
            self._since, self._has_saved = time.monotonic(), True
            self._pace = self._pace and max(self._pace, SPARED * took)
        if self._interruption.requested:
            raise self._interruption.error(f"after step {self._ensemble.step} of {self._end}")
