"""The work of figure 1d: training from (C, r)-solutions with noise, all seeds and C as one ensemble."""

from collections.abc import Sequence

import torch
from torch import nn

from evenly.data.toy.parity import parity
from evenly.models.relu2 import ReLU2
from evenly.papers.chang2025.deciding import decimal_log
from evenly.papers.experiment import Context, Found
from evenly.rng import generator
from evenly.stability.solutions import feature_solution
from evenly.training.ensemble import Ensemble

LR, BATCH = 0.01, 10
# N(0, 0.01) as a variance, and as a standard deviation.
NOISES = {"": 0.1, "narrow.": 0.01}


def descended(
    context: Context,
    *,
    name: str,
    rho: float,
    seeds: Sequence[int],
    features: Sequence[int],
    dim: int,
    num: int,
    width: int,
    epochs: int,
) -> Found:
    """`NAME.C2` and so on: log₁₀ of the loss (f − y)² after the last epoch, from every start."""
    settings = [(kind, c, seed) for kind in NOISES for c in features for seed in seeds]
    data = {seed: parity(rng=generator(seed, "data"), num_train=num, num_test=0, dim=dim).train for seed in seeds}
    ensemble = Ensemble(
        [started(c, dim=dim, width=width, noise=NOISES[kind], seed=seed) for kind, c, seed in settings],
        [data[seed] for _, _, seed in settings],
        lr=2 * LR,  # (f − y)² at LR is ½(f − y)² at twice LR
        rule="sam",
        rho=rho,
        batch_size=BATCH,
        seeds=[seed for *_, seed in settings],
        loss="squared",
    )
    steps = -(-num // BATCH)
    seen = ensemble.run(
        steps * epochs, measure=lambda *_: {"loss": 2 * ensemble.loss()}, at=range(0, steps * epochs + 1, steps)
    )
    loss_TK = decimal_log(seen["loss"])
    values: dict[str, dict[int, float]] = {}
    curves: dict[str, list[list[float]]] = {}
    for member, (kind, c, seed) in enumerate(settings):
        where = f"{kind}{name}.C{c}"
        values.setdefault(where, {})[seed] = float(loss_TK[-1, member])
        curves.setdefault(where, []).append([round(v, 4) for v in loss_TK[:, member].tolist()])
    return Found(values, {"curves": curves})


def started(c: int, *, dim: int, width: int, noise: float, seed: int) -> nn.Module:
    """The (C, r)-solution plus N(0, noise²) on every weight; the noise depends on the seed alone."""
    model = ReLU2((dim,), 2, width=width).double()
    solution = feature_solution(c, dim=dim, width=width).state_dict()
    rng = generator(seed, "noise")
    model.load_state_dict(
        {
            key: value + noise * torch.randn(value.shape, generator=rng, dtype=value.dtype)
            for key, value in solution.items()
        }
    )
    return model
