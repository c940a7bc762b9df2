import threading
from collections.abc import Callable
from typing import Any

import pytest
import torch

from evenly.training.function_digest import function_digest


def _holding(value: Any) -> Callable[..., Any]:
    return lambda history: value


class _Slotted:
    __slots__ = ("patience",)

    def __init__(self, patience: int) -> None:
        self.patience = patience

    def __call__(self, history: Any) -> bool:
        return len(history) > self.patience


class _Guarded:
    """Cannot be pickled, and its `repr` has its address."""

    def __init__(self, patience: int) -> None:
        self.patience, self.lock = patience, threading.Lock()


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (torch.arange(3.0), torch.arange(3.0), torch.arange(4.0)),
        ({"w": torch.ones(2, 2)}, {"w": torch.ones(2, 2)}, {"w": torch.ones(4)}),
        (set(range(0, 9, 8)), set(range(8, -1, -8)), {0, 9}),  # 0 and 8 collide, and keep the order in which they came
        (_Slotted(1), _Slotted(1), _Slotted(2)),
        (_Guarded(1), _Guarded(1), _Guarded(2)),
        (torch, torch, threading),
    ],
    ids=["tensor", "tensor inside", "set", "slots", "lock", "module"],
)
def test_equal_values_have_one_digest_wherever_they_lie_in_memory(one: Any, same: Any, other: Any) -> None:
    first = function_digest(_holding(one))
    assert function_digest(_holding(same)) == first
    assert function_digest(_holding(other)) != first


def test_an_object_with_slots_is_told_apart_by_them() -> None:
    assert function_digest(_Slotted(1)) == function_digest(_Slotted(1)) != function_digest(_Slotted(2))


def test_a_variable_without_a_value_is_no_error() -> None:
    def outer(assign: bool) -> Callable[..., Any]:
        if assign:
            late = 1
        return lambda history: late

    assert function_digest(outer(False)) != function_digest(outer(True))
