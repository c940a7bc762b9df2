from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from evenly import rng

GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def splitmix_in_numpy(z: np.ndarray) -> np.ndarray:
    """An independent SplitMix64 finaliser, in unsigned arithmetic."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


def test_mix_gives_the_published_splitmix64_sequence_of_seed_1234567() -> None:
    states = torch.tensor([1234567]) + torch.arange(1, 4) * rng._GOLDEN
    words = [int(word) % 2**64 for word in rng.mix(states)]
    assert words == [6457827717110365317, 3203168211198807973, 9817491932198370423]


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=20))
def test_mix_equals_unsigned_arithmetic_in_numpy(words: list[int]) -> None:
    ours = rng.mix(torch.tensor(words)).numpy().view(np.uint64)
    with np.errstate(over="ignore"):
        theirs = splitmix_in_numpy(np.array(words, dtype=np.int64).view(np.uint64))
    assert (ours == theirs).all()


def test_uniform_numbers_pass_kolmogorov_smirnov_and_are_uncorrelated() -> None:
    u = rng.uniform(rng.key(3, "test"), torch.arange(20_000), 4).double().numpy()
    assert (u >= 0).all()
    assert (u < 1).all()
    assert min(stats.kstest(u[:, k], "uniform").pvalue for k in range(4)) > 1e-3
    between_columns = np.corrcoef(u.T)[~np.eye(4, dtype=bool)]
    neighbours = np.corrcoef(u[:-1, 0], u[1:, 0])[0, 1]
    assert np.abs([*between_columns, neighbours]).max() < 5 / np.sqrt(len(u))


def test_uniform_depends_on_counter_and_stream_and_on_nothing_else() -> None:
    counters = torch.tensor([9, 2, 5])
    whole = rng.uniform(rng.key(0, "a"), counters, 3)
    assert torch.equal(whole[1:2], rng.uniform(rng.key(0, "a"), torch.tensor([2]), 3))
    assert torch.equal(whole[:, :2], rng.uniform(rng.key(0, "a"), counters, 2))
    assert not torch.equal(whole, rng.uniform(rng.key(0, "b"), counters, 3))


def test_neighbouring_streams_are_unrelated() -> None:
    counters = torch.arange(5_000)
    a, b = (rng.uniform(rng.key(0, "epoch", epoch), counters, 1)[:, 0].numpy() for epoch in (0, 1))
    assert abs(np.corrcoef(a, b)[0, 1]) < 5 / np.sqrt(5_000)


def test_named_generators_leave_the_global_generator_alone() -> None:
    before = torch.get_rng_state()
    torch.rand(3, generator=rng.generator(0, "x"))
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("other", [(1, "a"), (0, "b"), (0, "a", 0), (0, "a", "")])
def test_different_names_or_seeds_give_different_keys(other: tuple[int | str, ...]) -> None:
    assert rng.key(0, "a") != rng.key(*other)


def test_a_number_of_numpy_or_torch_names_the_same_stream_as_the_number_itself() -> None:
    for one in (np.int64(1), np.uint8(1), torch.tensor(1)):
        assert rng.key(one, "order", one) == rng.key(1, "order", 1)
    assert rng.key(0, np.str_("order")) == rng.key(0, "order")
    assert rng.key(0, 1) != rng.key(0, "1")


def test_a_seed_is_not_rounded() -> None:
    seed: Any = 1.5
    with pytest.raises(TypeError, match="integer"):
        rng.key(seed, "order")
