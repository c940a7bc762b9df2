"""Many inputs, one after the other, in one fork: three times as many in the same time as with a fork for each.

A fork that has done other things is no fair judge: where it finds something wrong, or dies, a process of its own tries
that input again, and what it says counts.
"""

import os
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, Pipe
from pathlib import Path

from soak import fuzz
from soak.fuzz import Fault, Trial
from soak.processes import end_group, lead_group

SIZE = 25  # inputs in a fork


def judge(trials: Sequence[Trial], template: Path, place: Path) -> Iterator[Fault | None]:
    """What is wrong with each of `trials`, in their order."""
    done = 0
    while done < len(trials):
        for sound in _sound(trials[done:], template, place):
            yield None if sound else trials[done].judge(template, place / "alone")
            done += 1


def _sound(trials: Sequence[Trial], template: Path, place: Path) -> Iterator[bool]:
    """Whether nothing seems to be wrong with each of `trials`, up to the first with which something does."""
    reader, writer = Pipe(duplex=False)
    child = os.fork()
    if child == 0:
        reader.close()
        _labour(trials, template, place, writer)
    writer.close()
    try:
        for _ in trials:
            sound = _received(reader)
            yield sound
            if not sound:
                return
    finally:
        end_group(child)
        os.waitpid(child, 0)
        reader.close()


def _received(reader: Connection) -> bool:
    """What the fork says of its next input; False if it says nothing in time, or died."""
    try:
        said = reader.recv() if reader.poll(fuzz.WALL) else False
    except (EOFError, OSError):
        return False
    if isinstance(said, bool):
        return said
    raise RuntimeError(said)


def _labour(trials: Sequence[Trial], template: Path, place: Path, writer: Connection) -> None:
    try:
        lead_group()
        fuzz.prepare()
        for number, trial in enumerate(trials):
            # Each has a place of its own, so that nothing remembered by its path is taken for it.
            fault = trial.judge_here(template, place / f"{os.getpid()}-{number}")
            writer.send(fault is None)
            if fault is not None:
                break
    except Exception:  # of the soak itself
        writer.send(traceback.format_exc())
    finally:
        os._exit(0)
