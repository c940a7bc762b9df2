"""The local learning coefficient against devinterp's, on a regular and on a degenerate minimum."""

import math
import warnings

import pytest
import torch
from torch import Tensor, nn

from evenly.diagnostics import learning_coefficient

devinterp = pytest.importorskip("devinterp.slt.sampler", reason='needs devinterp: pip install "devinterp<2"')

NUM, PULL = 500, 10.0


class Products(nn.Module):
    """Σ aᵢbᵢxᵢ at a = b = 0: four parameters, and a minimum along which two of them are free."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor) -> Tensor:
        return (x * (self.a * self.b)).sum(1, keepdim=True)


def linear() -> nn.Module:
    layer = nn.Linear(4, 1, bias=False)
    nn.init.zeros_(layer.weight)
    return layer


def squared(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean()


def by_devinterp(model: nn.Module, x: Tensor, y: Tensor, *, step: float, draws: int) -> float:
    """Its stochastic-gradient Langevin sampler with whole batches, the same pull and temperature."""
    from devinterp.optim import SGLD

    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), batch_size=NUM)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = devinterp.estimate_learning_coeff_with_summary(
            model,
            loader,
            evaluate=lambda network, batch: (squared(network(batch[0]), batch[1]),),
            sampling_method=SGLD,
            optimizer_kwargs={"lr": step, "localization": PULL, "nbeta": NUM / math.log(NUM)},
            num_draws=draws,
            num_chains=3,
            num_burnin_steps=300,
            init_loss=0.0,
            verbose=False,
            device="cpu",
            seed=[1, 2, 3],
        )
    return float(found["llc/mean"])


@pytest.mark.parametrize(("make", "dim", "expected", "draws"), [(linear, 4, 1.9, 500), (Products, 2, 0.33, 1500)])
def test_the_learning_coefficient_is_devinterps(make, dim: int, expected: float, draws: int) -> None:
    """Half of the four parameters where they are regular, less the pull; a sixth of that where they are degenerate."""
    x, y = torch.randn(NUM, dim, generator=torch.Generator().manual_seed(0)), torch.zeros(NUM, 1)
    rng = torch.Generator().manual_seed(1)
    ours = learning_coefficient(make(), (x, y), rng=rng, loss=squared, pull=PULL, draws=draws, burn_in=300)
    theirs = by_devinterp(make(), x, y, step=1e-3, draws=draws)
    assert ours.value == pytest.approx(expected, rel=0.15)
    assert ours.value == pytest.approx(theirs, rel=0.2)
