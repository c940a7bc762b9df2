"""The end of an optimizer step, by torch's hook on all optimizers: fused ones do not count up a tensor's version."""

import weakref
from functools import cache
from typing import Any, Protocol

from torch import Tensor
from torch.optim.optimizer import register_optimizer_step_post_hook


class Stepped(Protocol):
    """What is told of the end of a step."""

    @property
    def awaited(self) -> Tensor | None:
        """A parameter that the step will change; None if no step is awaited."""

    def end_step(self) -> None:
        """Called after a step of an optimizer that holds the awaited parameter."""


_waiting: "weakref.WeakSet[Any]" = weakref.WeakSet()


def tell(whom: Stepped) -> None:
    """Call `whom.end_step()` after the steps of its optimizer, as long as it lives."""
    _listen()
    _waiting.add(whom)


@cache
def _listen() -> None:
    register_optimizer_step_post_hook(_after_step)


def _after_step(optimizer: Any, args: Any, kwargs: Any) -> None:
    for each in list(_waiting):
        p = each.awaited
        if p is not None and any(p is q for group in optimizer.param_groups for q in group["params"]):
            each.end_step()
