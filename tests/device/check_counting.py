"""The counter sees every way in which the host waits for the device, and no other."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from pretended.counting import Count

WAITING: dict[str, Callable[[torch.Tensor], Any]] = {
    "item": lambda t: t.sum().item(),
    "bool": lambda t: bool((t > 0).all()),
    "cpu": lambda t: t.cpu(),
    "tolist": lambda t: t.tolist(),
    "mask": lambda t: t[t > 0],
    "nonzero": lambda t: t.nonzero(),
    "equal": lambda t: torch.equal(t, t),
    "allclose": lambda t: torch.allclose(t, t),
    "copied": lambda t: torch.ones(3).to(t.device),
    "made from a list": lambda t: torch.tensor([1.0], device=t.device),
}
FREE: dict[str, Callable[[torch.Tensor], Any]] = {
    "add": lambda t: t + t,
    "where": lambda t: torch.where(t > 0, t, 0.0),
    "pinned": lambda t: torch.ones(3).pin_memory().to(t.device, non_blocking=True),
    "view": lambda t: t[1:].view(2, 1),
}


@pytest.mark.parametrize(("way", "waits"), [*((w, 1) for w in WAITING), *((w, 0) for w in FREE)])
def test_a_wait_is_counted_once(way: str, waits: int) -> None:
    tensor = torch.ones(3, device="cuda:0")
    with Count() as count:
        (WAITING | FREE)[way](tensor)
    assert count.waits.total() == waits, count.waits
