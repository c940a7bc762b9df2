"""Whether a run that is stopped and resumed on a device ends with the bits of an uninterrupted run."""

import signal
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from evenly.errors import Stopped
from evenly.recipe import Ascent, Data, Model, Recipe
from evenly.training.train import train

RECIPE = Recipe(
    data=Data("digit-dominoes"),
    model=Model("mlp", {"width": 64, "dropout": 0.2}),
    augment=("pad-crop:2", "mirror"),
    ascent=Ascent("sam", 0.05),
    epochs=2,
    deterministic=True,
)


def check(device: torch.device) -> tuple[str, bool]:
    """The check, with `deterministic`, dropout and SAM."""
    with tempfile.TemporaryDirectory() as scratch:
        whole = _weights(Path(scratch, "whole"), device, _Patient())
        stopping = _Patient(once=Path(scratch, "stopped"))
        try:
            _weights(Path(scratch, "parts"), device, stopping)
        except Stopped:
            pass
        else:
            return "the run did not stop when it was asked to", False
        parts = _weights(Path(scratch, "parts"), device, stopping)
    same = all(torch.equal(whole[name], parts[name]) for name in whole)
    return ("the same bits", True) if same else ("other bits", False)


class _Patient:
    """A stopping rule that never ends training, but may ask the process to stop after the first epoch.

    It notes that it did in the file `once`, not in itself: another rule would be another run.
    """

    def __init__(self, *, once: Path | None = None) -> None:
        self.once = once

    def __call__(self, history: Sequence[dict[str, Any]]) -> bool:
        if self.once is not None and not self.once.exists():
            self.once.touch()
            signal.raise_signal(signal.SIGTERM)
        return False


def _weights(runs: Path, device: torch.device, enough: _Patient) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    run = train(RECIPE, runs=runs, device=str(device), enough=enough, pace=0.0)
    return load_file(run.path / "weights.safetensors")
