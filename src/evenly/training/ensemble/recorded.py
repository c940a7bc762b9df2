"""The record of a measurement: a number for every member at every step where it was made.

Shapes: T moments, K members.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from evenly.errors import UsageError, did_you_mean


@dataclass
class Recorded:
    """Steps at which something was measured, and for each name its values, T × K, on the CPU.

    >>> seen = Recorded(num_members=2)
    >>> seen.add(0, {"loss": torch.tensor([1.0, 2.0])})
    >>> seen.add(5, {"loss": torch.tensor([0.5, 1.0])})
    >>> seen.steps, seen["loss"]
    ([0, 5], tensor([[1.0000, 2.0000],
            [0.5000, 1.0000]]))
    """

    num_members: int
    steps: list[int] = field(default_factory=list)
    values: dict[str, list[Tensor]] = field(default_factory=dict)

    def __getitem__(self, name: str) -> Tensor:
        if name not in self.values:
            raise UsageError(f"nothing was measured under {name!r}. {did_you_mean(name, self.values)}")
        return torch.stack(self.values[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self.values)

    def add(self, step: int, found: Any) -> None:
        """Add the result of `measure` after `step` steps."""
        if not isinstance(found, Mapping):
            raise UsageError(
                f"measure returned {type(found).__name__} at step {step}: return a dict of names and a number per "
                'member, for example {"loss": ensemble.loss()}'
            )
        if self.steps and set(found) != set(self.values):
            raise UsageError(f"measure returned {sorted(found)} at step {step}, but {sorted(self.values)} before.")
        vectors = {name: torch.as_tensor(values).detach().cpu().clone() for name, values in found.items()}
        for name, vector in vectors.items():
            if vector.shape != (self.num_members,):
                raise UsageError(
                    f"measure returned {name!r} of shape {tuple(vector.shape)} at step {step}: "
                    f"one number for each of {self.num_members} members is expected, shape ({self.num_members},)."
                )
        self.steps.append(step)
        for name, vector in vectors.items():
            self.values.setdefault(name, []).append(vector)
