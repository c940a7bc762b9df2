"""Alignment with planted directions against its definition."""

import pytest
import torch

from evenly.data import load
from evenly.diagnostics import alignment
from evenly.errors import DataError, UsageError


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_alignment_does_not_depend_on_the_length_or_sign_of_the_planted_direction() -> None:
    filters = torch.randn(6, 5, generator=generator())
    v = torch.randn(5, generator=generator(1))
    a, b = (alignment(filters, planted={"hard": part})["hard"] for part in (v, -7 * v))
    unit = v / v.norm()
    assert a.largest == pytest.approx(max(abs(float(w @ unit)) for w in filters), rel=1e-6)
    assert (a.largest, a.mean) == pytest.approx((b.largest, b.mean), rel=1e-6)
    assert a.filter == b.filter


def test_alignment_reads_the_directions_planted_in_toy_data() -> None:
    data = load("patches", num_train=10, num_test=2).train
    sizes = alignment(data.planted["easy"][None], planted=data.planted)
    assert sizes["easy"].largest == pytest.approx(1.0, abs=1e-5)
    assert sizes["hard"].largest == pytest.approx(0.0, abs=1e-5)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: alignment(torch.ones(3, 2), planted={}), DataError, "no direction was planted"),
        (lambda: alignment(torch.ones(3, 2), planted={"easy": torch.ones(5)}), UsageError, "2 weights but"),
    ],
)
def test_bad_arguments_are_refused(call, error: type[Exception], message: str) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(error, match=message):
        call()
