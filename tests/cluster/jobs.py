"""Jobs for the tests of executors: importable by every process that a cluster starts."""

import os
import signal
import time
from pathlib import Path
from typing import Any


def train(runs: str, **recipe: Any) -> str:
    """Train a small network for real and give the number of its run."""
    from evenly.recipe import Recipe, from_mapping
    from evenly.training.train import train as trained

    return trained(from_mapping(Recipe, recipe), runs=runs, device="cpu", pace=0).id


def fail(runs: str, why: str, *, late: str = "") -> None:
    """Fail with a sentence, after printing a line; the process of rank `late` some seconds after the others."""
    from evenly.errors import DataError

    print("looking for the examples")
    if late and os.environ.get("RANK") == late:
        time.sleep(3)
    raise DataError(why)


def die(runs: str, once: str) -> str:
    """Be killed the first time, as by a lost node; end well the second."""
    mark = Path(runs) / once
    if not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "alive"


def wait(runs: str, until: str, seconds: float) -> str:
    """Wait for a file among the runs."""
    deadline = time.monotonic() + seconds
    while not (Path(runs) / until).exists():
        assert time.monotonic() < deadline, f"{until} never came"
        time.sleep(0.05)
    return until


def meet(runs: str, mine: str, other: str, seconds: float) -> str:
    """Leave a file for another job and wait for its file, which comes only while both are being done."""
    (Path(runs) / mine).touch()
    return wait(runs, other, seconds)


def begin_once(runs: str, until: str, seconds: float) -> str:
    """Wait for a file among the runs, and fail if this job has begun before."""
    begun = Path(runs) / "begun"
    assert not begun.exists(), "this job was begun a second time"
    begun.touch()
    return wait(runs, until, seconds)


def threads(runs: str) -> int:
    """How many threads torch has here."""
    import torch

    return torch.get_num_threads()


def visible_gpus(runs: str, seconds: float) -> str:
    """The GPUs that this process sees; it takes its time, so that another process does the next job."""
    time.sleep(seconds)
    return os.environ.get("CUDA_VISIBLE_DEVICES", "")


def surroundings(runs: str) -> list[str]:
    """The folder this process works in, and where it looks for data."""
    return [os.getcwd(), os.environ.get("EVENLY_DATA", "")]
