"""Classes of settings beyond what a recipe uses today."""

from dataclasses import dataclass
from typing import Literal

import pytest

from evenly.errors import UsageError
from evenly.typed import Settings, from_mapping, setting, to_mapping


def test_a_setting_without_a_default_must_be_given() -> None:
    @dataclass(frozen=True)
    class Strict(Settings):
        size: int

    assert from_mapping(Strict, {"size": 2.0}) == Strict(2)
    with pytest.raises(UsageError, match="setting 'size' is missing: give it a whole number"):
        from_mapping(Strict, {})


def test_a_choice_among_numbers_does_not_take_true_for_one() -> None:
    @dataclass(frozen=True)
    class Choice(Settings):
        power: Literal[1, 2] = setting(2, "Which norm.")

    assert Choice(1).power == 1
    with pytest.raises(UsageError, match=r"power: expected one of 1, 2, not true"):
        from_mapping(Choice, {"power": True})


def test_what_a_group_leaves_out_comes_from_the_default_of_the_field_that_holds_it() -> None:
    @dataclass(frozen=True)
    class Inner(Settings):
        size: int = setting(1, "A size.")
        name: str = setting("a", "A name.")

    @dataclass(frozen=True)
    class Outer(Settings):
        inner: Inner = Inner(size=5)

    assert from_mapping(Outer, {"inner": {"name": "b"}}) == Outer(Inner(5, "b"))
    assert to_mapping(Outer(Inner(5, "b")), defaults=False) == {"inner": {"name": "b"}}
    assert to_mapping(Outer(Inner(1, "a")), defaults=False) == {"inner": {"size": 1}}


def test_a_kind_of_field_that_is_not_a_setting_is_a_bug_not_a_usage_error() -> None:
    @dataclass(frozen=True)
    class Wrong(Settings):
        path: bytes = setting(b"", "Bytes are no setting.")

    with pytest.raises(TypeError, match="is not a kind of setting"):
        Wrong()
