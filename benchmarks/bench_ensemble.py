"""Ensembles: many small runs as one against the same runs one after another, and against bare matrix products."""

import itertools
import time
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.harness import benchmark, interleaved, seconds
from evenly.data import Labelled, load
from evenly.data.batches import order
from evenly.models import build
from evenly.training.ensemble import Ensemble

MEMBERS, BATCH = 60, 5


def networks(num: int) -> list[nn.Module]:
    return [build("disentangled", input_shape=(4,), num_classes=2, rng=seed) for seed in range(num)]


def plain_epoch(model: nn.Module, data: Labelled, *, rho: float, seed: int, steps: int) -> None:
    """An epoch as one writes it with care: data in memory, one gather an epoch, foreach, weights swapped, no copies."""
    params = list(model.parameters())
    sgd = torch.optim.SGD(params, lr=0.01)
    visit = order(len(data), seed=seed, epoch=0)
    x_N, y_N = data.inputs[visit], (2.0 * data.labels[visit] - 1.0)
    for x, y in itertools.islice(zip(x_N.split(BATCH), y_N.split(BATCH), strict=True), steps):
        if rho:
            loss = functional.softplus(-y * model(x).squeeze(1)).mean()
            g = torch.autograd.grad(loss, params)
            size = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(g)))
            home = [p.data for p in params]
            there = torch._foreach_add(home, torch._foreach_mul(g, rho / size))
            for p, value in zip(params, there, strict=True):
                p.data = value
        sgd.zero_grad()
        functional.softplus(-y * model(x).squeeze(1)).mean().backward()
        if rho:
            for p, value in zip(params, home, strict=True):
                p.data = value
        sgd.step()


def one_after_another(
    ensemble: Ensemble, run_one: Callable[[int], None], *, steps: int, sample: int
) -> Iterator[float]:
    """time(ensemble) / time(its members one after another); of those a sample is run, another each turn."""
    torch.set_num_threads(1)
    ensemble.run(2), run_one(0)
    for turn in itertools.count():
        ours = theirs = 0.0
        for part in range(sample):  # in turns, so that whatever else the machine does falls on both
            ours += seconds(lambda: ensemble.run(steps // sample))
            theirs += seconds(partial(run_one, (turn * sample + part) % ensemble.num_members))
        yield ours / (theirs * ensemble.num_members / sample)


def sixty(rule: str, rho: float) -> Iterator[float]:
    data, models = load("spirals", seed=0).train, networks(MEMBERS)
    ensemble = Ensemble(models, data, lr=0.01, rule=rule, rho=rho, batch_size=BATCH, seeds=range(MEMBERS))
    steps = ensemble.steps_per_epoch
    yield from one_after_another(
        ensemble,
        lambda k: plain_epoch(models[k], data, rho=rho, seed=k, steps=steps),
        steps=steps,
        sample=6,
    )


@benchmark(
    "ensemble-sgd",
    claim="60 members of disentangled, batch 5, SGD, as one against one after another in plain PyTorch: steps/s",
    at_least=10,
)
def sixty_with_sgd() -> Iterator[float]:
    yield from sixty("sgd", 0.0)


@benchmark(
    "ensemble-sam",
    claim="60 members of disentangled, batch 5, SAM, as one against one after another in plain PyTorch: steps/s",
    at_least=10,
)
def sixty_with_sam() -> Iterator[float]:
    yield from sixty("sam", 0.1)


@benchmark(
    "ensemble-func",
    claim="60 members of disentangled, batch 5, SAM, by hand against the same ensemble through torch.func: steps/s",
    at_least=1.5,
)
def by_hand_against_func() -> Iterator[float]:
    torch.set_num_threads(1)
    data, models = load("spirals", seed=0).train, networks(MEMBERS)
    both = [
        Ensemble(models, data, lr=0.01, rule="sam", rho=0.1, batch_size=BATCH, seeds=range(MEMBERS), by_hand=by_hand)
        for by_hand in (True, False)
    ]
    for ensemble in both:
        ensemble.run(2)
    while True:
        ours = theirs = 0.0
        for _ in range(5):
            ours += seconds(lambda: both[0].run(4))
            theirs += seconds(lambda: both[1].run(4))
        yield ours / theirs


@benchmark(
    "ensemble-springer-fig2",
    claim="Springer's figure 2 grid, 6 ρ × 4 χ × 5 seeds, as one against one after another in plain PyTorch: steps/s",
    at_least=10,
    repeats=7,
)
def springer_grid() -> Iterator[float]:
    rhos, chis, seeds = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0), (270, 315, 360, 450), range(5)
    sets = {(chi, seed): load("spirals", seed=seed, chi=float(chi)).train for chi in chis for seed in seeds}
    grid = list(itertools.product(rhos, chis, seeds))
    models = networks(len(grid))
    ensemble = Ensemble(
        models,
        [sets[chi, seed] for _, chi, seed in grid],
        lr=0.01,
        rule="sam",
        rho=[rho for rho, _, _ in grid],
        batch_size=BATCH,
        seeds=[seed for _, _, seed in grid],
    )
    steps = ensemble.steps_per_epoch

    def run_one(number: int) -> None:
        # One member of each ρ in a turn of six: plain steps are half as dear as SAM's.
        rho, chi, seed = grid[(number % 6) * (len(grid) // 6) + number // 6]
        plain_epoch(models[number], sets[chi, seed], rho=rho, seed=seed, steps=steps)

    yield from one_after_another(ensemble, run_one, steps=steps, sample=6)


@benchmark(
    "ensemble-nguyen-fig2",
    claim="Nguyen's figure 2, cubic on 10,000 examples, 10 seeds × {GD, SAM} × 2 β_d, full batch, against its bare "
    "matrix products: time",
    at_most=3,
    repeats=7,
)
def nguyen_figure() -> Iterator[float]:
    torch.set_num_threads(1)
    sets = [load("patches", seed=seed, beta_hard=beta).train for seed in range(10) for beta in (0.2, 0.4)]
    models = [build("cubic", input_shape=(3, 50), num_classes=2, rng=seed) for seed in range(10) for _ in range(2)]
    ensemble = Ensemble(models * 2, sets * 2, lr=0.1, rule=["sgd"] * 20 + ["sam"] * 20, rho=[0.0] * 20 + [0.02] * 20)
    rows = [each.inputs.reshape(-1, 50) for each in sets]
    weights = [model.filters.weight.detach() for model in models]
    d = torch.randn(len(rows[0]), 40)

    def products() -> Tensor:
        """X Wᵀ and dᵀ X once for every GD member and twice for every SAM member."""
        for x, weight in zip(rows, weights, strict=True):
            for _ in range(3):
                z, g = x @ weight.T, d.T @ x
        return z.sum() + g.sum()

    ensemble.run(1), products()
    while True:
        ours = theirs = 0.0
        for _ in range(2):
            ours += seconds(lambda: ensemble.run(1))
            theirs += seconds(products)
        yield ours / theirs


ATLAS = {"lr": 0.05, "momentum": 0.9, "weight_decay": 5e-4}
ATLAS_MEMBERS, ATLAS_BATCH = 80, 128


def atlas_networks() -> tuple[list[nn.Module], list[Labelled], Ensemble]:
    """The networks of one task of the atlas and their data, one by one and as one."""
    num = ATLAS_MEMBERS
    sets = [load("digit-dominoes", seed=seed, size=800).train for seed in range(5)]
    models = [build("mlp", input_shape=(1, 16, 8), num_classes=2, rng=seed, dropout=0.0) for seed in range(num)]
    each = [sets[number % len(sets)] for number in range(num)]
    return models, each, Ensemble(models, each, batch_size=ATLAS_BATCH, seeds=range(num), **ATLAS)


@benchmark(
    "ensemble-atlas",
    claim="the networks of one task of the atlas, 80 of mlp on digit-dominoes, batch 128, as one against one after "
    "another in plain PyTorch: steps/s",
    at_least=8,
    repeats=5,
)
def atlas_task() -> Iterator[float]:
    models, each, ensemble = atlas_networks()
    steps = ensemble.steps_per_epoch

    def run_one(number: int) -> None:
        data, sgd = each[number], torch.optim.SGD(models[number].parameters(), **ATLAS)
        visit = order(len(data), seed=number, epoch=0)
        x_N, y_N = data.inputs[visit].float() / 255, data.labels[visit]
        for x, y in zip(x_N.split(ATLAS_BATCH), y_N.split(ATLAS_BATCH), strict=True):
            sgd.zero_grad()
            functional.cross_entropy(models[number](x), y).backward()
            sgd.step()

    yield from one_after_another(ensemble, run_one, steps=steps, sample=steps)


@benchmark(
    "ensemble-atlas-products",
    claim="the same ensemble against the bare matrix products of its passes, without loss, update or data, which no "
    "way of training these networks in float32 avoids: processor time",
    at_most=1.5,
    repeats=9,
)
def atlas_products() -> Iterator[float]:
    torch.set_num_threads(1)
    models, (data, *_), ensemble = atlas_networks()
    own = [[module.weight.detach() for module in model.modules() if isinstance(module, nn.Linear)] for model in models]
    inputs = [torch.randn(len(data), weight.shape[1]) for weight in own[0]]
    slopes = [torch.randn(len(data), weight.shape[0]) for weight in own[0]]
    batches = [slice(first, first + ATLAS_BATCH) for first in range(0, len(data), ATLAS_BATCH)]

    def products() -> None:
        """X Wᵀ and dᵀ X of every layer of every member, and d W of all layers but the first, for an epoch."""
        for batch in batches:
            for weights in own:
                for place, (weight, x, d) in enumerate(zip(weights, inputs, slopes, strict=True)):
                    x[batch] @ weight.T, d[batch].T @ x[batch]
                    if place:
                        d[batch] @ weight

    yield from interleaved(lambda: ensemble.run(ensemble.steps_per_epoch), products, clock=time.process_time)
