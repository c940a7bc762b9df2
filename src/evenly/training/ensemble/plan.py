"""The checked settings of each member, with which a saved state must agree."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from evenly.errors import UsageError
from evenly.training.ensemble.layout import Layout


@dataclass(frozen=True)
class Plan:
    """Lists have an entry per member, in the order the members were given.

    `weights`, `copies` and `noise` are fingerprints, None where there are none.
    """

    rule: list[str]
    rho: list[float]
    lr: list[float]
    momentum: list[float]
    weight_decay: list[float]
    label_smoothing: list[float]
    logit_penalty: list[float]
    seeds: list[int]
    star: list[list[float]]
    batch_size: int | None
    eta: float
    adapt: str
    loss: str
    data: list[str]
    weights: str | None = None
    copies: str | None = None
    noise: str | None = None

    def order(self) -> list[int]:
        """The members, those of one rule next to each other, so that a group is a range of rows."""
        return sorted(range(len(self.rule)), key=lambda member: self.rule[member])

    def column(self, name: str, layout: Layout) -> Tensor:
        """The numbers `name` of all members in this order, K × 1, or K × 2 for pairs."""
        values = torch.tensor(getattr(self, name), dtype=layout.dtype, device=layout.device)[self.order()]
        return values.reshape(len(values), -1)

    def plain(self) -> dict[str, Any]:
        """As names and plain values."""
        return asdict(self)

    def check(self, saved: Mapping[str, Any]) -> None:
        """Refuse the plan of another ensemble, and name what differs."""
        for name, own in self.plain().items():
            if saved.get(name) != own:
                raise UsageError(
                    f"the state was made with {name} = {_short(saved.get(name))}, this ensemble has {_short(own)}: "
                    "build it with the same settings to resume."
                )


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}…"
