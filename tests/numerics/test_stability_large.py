"""Problems kept in their leading directions, and same-batch SAM with a bound in place of all pairs."""

import pytest
import torch
from torch import nn

from evenly.curvature import block_gram
from evenly.stability import Problem, coherence, mean_square_threshold
from evenly.stability.sampling import second_moment


@pytest.fixture(scope="module")
def gram() -> torch.Tensor:
    """The block Gram of 60 examples of ten classes of a network trained for a while."""
    rng = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 10)).double()
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(0.4 * torch.randn(p.shape, generator=rng, dtype=torch.float64))
    y = torch.arange(60) % 10
    x = torch.randn(10, 20, generator=rng, dtype=torch.float64)[y] + torch.randn(60, 20, generator=rng).double()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(150):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return block_gram(model, (x, y), loss="cross-entropy")


@pytest.mark.parametrize("batch", [1, 8, 32])
@pytest.mark.parametrize("rank", [30, 100])
def test_the_dense_threshold_lies_within_the_bound_of_the_leading_directions(
    gram: torch.Tensor, rank: int, batch: int
) -> None:
    dense, small = Problem.from_gram(gram, num_outputs=10), Problem.from_gram(gram, num_outputs=10, rank=rank)
    assert (small.rank, small.truncation is not None) == (rank, True)
    exact, high = (mean_square_threshold(p, batch=batch) for p in (dense, small))
    c1, c2 = second_moment("bernoulli", num_examples=60, batch=batch)
    assert small.truncation is not None
    low = small.truncation.least_threshold(high, c1=c1, c2=c2)
    assert low <= exact * (1 + 1e-9)
    assert exact <= high * (1 + 1e-9)
    if rank == 100:
        assert low > 0.85 * high
        for setting in ({"momentum": 0.9}, {"rho_over_alpha": 0.2, "ascent": "batch"}):
            pair = [mean_square_threshold(p, batch=batch, **setting) for p in (dense, small)]  # type: ignore[arg-type]
            assert pair[1] == pytest.approx(pair[0], rel=0.01)


def test_trace_coherence_and_sharpest_example_of_a_projected_problem_are_exact(gram: torch.Tensor) -> None:
    dense, small = Problem.from_gram(gram, num_outputs=10), Problem.from_gram(gram, num_outputs=10, rank=40)
    assert small.trace == pytest.approx(dense.trace, rel=1e-9)
    assert small.lambda_max == pytest.approx(dense.lambda_max, rel=1e-6)
    torch.testing.assert_close(coherence(small).matrix_NN, coherence(dense).matrix_NN)
    assert coherence(small).sigma == pytest.approx(coherence(dense).sigma)


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("batch", [2, 6])
def test_the_bounded_fourth_moment_encloses_the_exact_threshold(batch: int, momentum: float) -> None:
    factors = torch.randn(12, 2, 5, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    problem = Problem.from_factors(factors)
    low, exact, high = (
        mean_square_threshold(
            problem, batch=batch, rho_over_alpha=0.3, ascent="batch", crossing=crossing, momentum=momentum
        )
        for crossing in ("upper", "exact", "lower")
    )
    assert low <= exact <= high
    assert high < 1.2 * low
