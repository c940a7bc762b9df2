"""The end of an optimizer step, by torch's hook on all optimizers: fused ones do not count up a tensor's version."""

import weakref
from functools import cache
from typing import Any, Protocol

from torch.optim.optimizer import register_optimizer_step_post_hook


class Stepped(Protocol):
    """What is told of the end of a step."""

    def awaits(self, optimizer: Any) -> bool:
        """Whether a step of this optimizer is what it waits for."""

    def end_step(self, optimizer: Any) -> None:
        """Called after that step."""


_waiting: "weakref.WeakSet[Any]" = weakref.WeakSet()


def tell(whom: Stepped) -> None:
    """Call `whom.end_step(optimizer)` after the steps of its optimizer, as long as it lives."""
    _listen()
    _waiting.add(whom)


@cache
def _listen() -> None:
    register_optimizer_step_post_hook(_after_step)


def _after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    for each in list(_waiting):
        if each.awaits(optimizer):
            each.end_step(optimizer)
