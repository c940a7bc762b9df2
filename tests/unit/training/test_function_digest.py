import dataclasses
import functools
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


class _ByMethod:
    limit = 2

    def __call__(self, history: Any) -> bool:
        return len(history) >= self.epochs()

    def epochs(self) -> int:
        return self.limit


class _Four(_ByMethod):
    def epochs(self) -> int:
        return 4


class _Five(_ByMethod):
    limit = 5


def _local_slots(patience: int) -> Callable[..., Any]:
    @dataclasses.dataclass(slots=True)
    class Local:
        patience: int

        def __call__(self, history: Any) -> bool:
            return len(history) > self.patience

    return Local(patience)


def _by_cached(epochs: int) -> Callable[..., Any]:
    @functools.cache
    def long(num: int) -> bool:
        return num >= epochs

    return lambda history: long(len(history))


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (_ByMethod(), _ByMethod(), _Four()),
        (_ByMethod(), _ByMethod(), _Five()),
        (_local_slots(1), _local_slots(1), _local_slots(2)),
        (_by_cached(1), _by_cached(1), _by_cached(2)),
    ],
    ids=["inherited call", "class attribute", "slots of a local class", "cached function"],
)
def test_rules_that_decide_differently_are_told_apart(one: Any, same: Any, other: Any) -> None:
    assert function_digest(one) == function_digest(same) != function_digest(other)
