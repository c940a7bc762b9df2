"""Vector algebra over lists of tensors, against the same algebra on one long vector."""

import contextlib
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from evenly import tree

SHAPES = [(3,), (2, 4), (), (1, 1, 5)] + [(2,)] * 8


def lists(seed: int, dtype: torch.dtype = torch.float64) -> tuple[list[Tensor], list[Tensor]]:
    rng = torch.Generator().manual_seed(seed)
    return tuple([torch.randn(s, generator=rng, dtype=dtype) for s in SHAPES] for _ in range(2))


def flat(a: list[Tensor]) -> Tensor:
    return torch.cat([t.reshape(-1) for t in a])


@given(seed=st.integers(0, 2**30), factor=st.floats(-100, 100))
@settings(max_examples=30, deadline=None)
def test_every_operation_is_that_of_the_long_vector(seed: int, factor: float) -> None:
    a, b = lists(seed)
    assert tree.dot(a, b).item() == pytest.approx((flat(a) @ flat(b)).item(), rel=1e-12, abs=1e-12)
    assert tree.norm(a).item() == pytest.approx(flat(a).norm().item(), rel=1e-12)
    assert tree.length(a) == pytest.approx(flat(a).norm().item(), rel=1e-12)
    assert tree.length(a[:4]) == pytest.approx(flat(a[:4]).norm().item(), rel=1e-12)
    torch.testing.assert_close(flat(tree.scale(a, factor)), flat(a) * factor)
    torch.testing.assert_close(flat(tree.add(a, b, factor)), flat(a) + factor * flat(b))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_neither_overflows_nor_vanishes(dtype: torch.dtype) -> None:
    large, small = [torch.full((4,), 3e4, dtype=dtype)], [torch.full((4,), 1e-5, dtype=dtype)]
    assert tree.length(large) == pytest.approx(6e4, rel=1e-2)
    assert tree.norm(large).item() == pytest.approx(6e4, rel=1e-2)
    assert tree.dot(small, small).item() == pytest.approx(4e-10, rel=3e-2)


def test_precisions_may_be_mixed_and_complex_numbers_are_pairs() -> None:
    a = [torch.tensor([3.0]), torch.tensor([4.0], dtype=torch.float16), torch.tensor([12j], dtype=torch.complex128)]
    assert tree.length(a) == pytest.approx(13.0)
    assert tree.norm(a).item() == pytest.approx(13.0)
    z = [torch.tensor([1 + 2j])]
    assert tree.dot(z, z).item() == 5.0


@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_a_length_that_is_not_finite_says_so(value: float) -> None:
    assert not math.isfinite(tree.length([torch.tensor([1.0, value])]))
    assert not math.isfinite(tree.length([torch.tensor([1.0, value])] * 9))


@pytest.mark.parametrize("swap", [True, False, None])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_displaced_parameters_come_home_bit_for_bit_in_their_own_storage(swap: bool | None, dtype: torch.dtype) -> None:
    params, offset = lists(0, dtype)
    pointers, old = [p.data_ptr() for p in params], [p.clone() for p in params]
    alias = params[0].view(-1)
    with contextlib.suppress(ZeroDivisionError), tree.displaced(params, tree.scale(offset, 1e3), swap=swap):
        torch.testing.assert_close(params[1], old[1] + offset[1] * 1e3)
        _ = 1 / 0
    assert all(torch.equal(p, q) for p, q in zip(params, old, strict=True))
    assert [p.data_ptr() for p in params] == pointers
    assert alias.data_ptr() == params[0].data_ptr()


def test_a_displacement_of_parameters_that_need_gradients_is_not_recorded() -> None:
    for swap in (True, False):
        w = torch.nn.Parameter(torch.ones(2))
        home = tree.displace([w], [torch.ones(2)], 0.5, swap=swap)
        w.sum().backward()
        tree.restore(home)
        assert w.is_leaf
        assert torch.equal(w.grad, torch.ones(2))
