"""The argument of every diagnostic that `measure` calls: the model, its data and the settings."""

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from evenly.data.labelled import Labelled
from evenly.data.splits import Splits

Numbers = dict[str, Any]


@dataclass(frozen=True)
class Subject:
    """A model and its data: `part` is an even part of the training set, `splits` everything.

    `rho`, `layer` and `lr` are the settings that several diagnostics share; `options` those of this one alone.
    """

    model: nn.Module
    part: Labelled
    splits: Splits
    rng: torch.Generator
    rho: float = 0.05
    layer: str | None = None
    lr: float | None = None
    options: Numbers = field(default_factory=dict)

    def split(self, name: str) -> Labelled:
        """The split of that name where there is one, else the training set."""
        return self.splits[name if name in self.splits else "train"]
