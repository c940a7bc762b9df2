"""Losses and errors that stay on the device until those of many steps are read at once.

Reading a number from a GPU waits for all work queued before it. A step that waits leaves the device idle while the
host prepares the next one, so numbers that are only displayed are read once every `READ_EVERY` steps.

Shapes: B examples of a pass, C outputs.
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from evenly.training.objective import predictions

READ_EVERY = 50  # steps
_GATHERED = 8  # outputs of passes, which are larger than what is kept of them


class Seen(NamedTuple):
    """One pass, on the host: every example's loss, whether its prediction was wrong, and its cluster."""

    loss_B: Tensor
    wrong_B: Tensor
    hard_B: Tensor | None


class DeferredLosses:
    """The losses of the steps since the last reading; `read` returns them step by step, after a single wait.

    >>> deferred = DeferredLosses()
    >>> deferred.add(torch.tensor([1.5, 0.5]), torch.tensor([[0.0, 1.0], [0.0, 1.0]]), torch.tensor([0, 1]), None)
    >>> deferred.end_step()
    >>> [(seen.loss_B.tolist(), seen.wrong_B.tolist()) for step in deferred.read() for seen in step]
    [([1.5, 0.5], [True, False])]
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._losses: list[Tensor] = []
        self._hard: list[Tensor | None] = []
        self._outputs: list[tuple[Tensor, Tensor]] = []
        self._wrong: list[Tensor] = []
        self._ends: list[int] = []

    def __bool__(self) -> bool:
        return bool(self._losses)

    @property
    def is_due(self) -> bool:
        """Whether enough steps have accumulated to be read."""
        return len(self._ends) >= READ_EVERY

    def add(self, loss_B: Tensor, outputs_BC: Tensor, labels_B: Tensor, hard_B: Tensor | None) -> None:
        """Add a pass of the current step; `hard_B` is on the host."""
        self._losses.append(loss_B)
        self._hard.append(hard_B)
        self._outputs.append((outputs_BC, labels_B))
        if len(self._outputs) >= _GATHERED:
            self._judge()

    def end_step(self) -> None:
        """End the step: later passes belong to the next one."""
        self._ends.append(len(self._losses))

    def read(self) -> Iterator[list[Seen]]:
        """Return and forget everything so far, a list of passes for every step."""
        if not self:
            return
        self._judge()
        sizes = [len(loss_B) for loss_B in self._losses]
        both = torch.cat([*self._losses, *(wrong.to(self._losses[0].dtype) for wrong in self._wrong)]).cpu()
        losses, wrongs = (torch.split(half, sizes) for half in both.chunk(2))
        passes = [Seen(loss, wrong != 0, hard) for loss, wrong, hard in zip(losses, wrongs, self._hard, strict=True)]
        ends = self._ends if self._ends and self._ends[-1] == len(passes) else [*self._ends, len(passes)]
        self._begin()
        for start, end in zip([0, *ends], ends, strict=False):
            yield passes[start:end]

    def _judge(self) -> None:
        """Reduce the outputs to whether each prediction is wrong."""
        if self._outputs:
            outputs, labels = zip(*self._outputs, strict=True)
            self._wrong.append(predictions(torch.cat(outputs)) != torch.cat(labels))
            self._outputs.clear()
