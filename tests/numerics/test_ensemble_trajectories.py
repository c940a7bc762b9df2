"""Every member of an ensemble takes the steps of a run of its own.

Two oracles for each rule: a textbook loop on autograd that knows nothing of evenly's optimizers, and the loop that a
user would write with `evenly.optim` and `torch.optim.SGD`.
"""

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evenly import optim, rng
from evenly.data.batches import order
from evenly.data.labelled import Labelled
from evenly.models import build
from evenly.training.ensemble import Ensemble

NUM, BATCH, STEPS = 13, 5, 8  # the last batch of an epoch is smaller, and the third epoch begins
SEEDS = [4, 9, 4]
LR, RHO, MOMENTUM, DECAY = [0.05, 0.02, 0.1], [0.3, 0.1, 0.7], [0.9, 0.0, 0.5], [1e-2, 0.0, 1e-3]
HARD = [0.5, 2.0, 3.0]
SHAPES: dict[str, tuple[int, ...]] = {"disentangled": (4,), "relu2": (4,), "mlp": (2, 3), "cubic": (3, 6)}
OPTIONS: dict[str, dict[str, Any]] = {
    "disentangled": {"width": 7},
    "relu2": {"width": 6},
    "mlp": {"width": 6, "dropout": 0.0},
    "cubic": {"num_filters": 4, "init_scale": 0.5},
}
DISPLACING = ["sam", "asam", "unnormalised", "random", "lsam"]
INTERVENTIONS = ["importance", "rate", "both"]


def labelled(name: str, *, seed: int, dtype: torch.dtype, num_classes: int = 2) -> Labelled:
    stream = rng.generator(seed, "test data")
    scale = 0.4 if name == "cubic" else 1.0  # cubes of larger numbers would diverge, and then nothing is compared
    inputs = scale * torch.randn(NUM, *SHAPES[name], generator=stream, dtype=torch.float64).to(dtype)
    labels = torch.randint(num_classes, (NUM,), generator=stream)
    return Labelled(inputs, labels, tuple(map(str, range(num_classes))))


def members(name: str, dtype: torch.dtype) -> list[nn.Module]:
    return [
        build(name, input_shape=SHAPES[name], num_classes=2, rng=seed, **OPTIONS[name]).to(dtype) for seed in range(3)
    ]


def mean_loss(out: Tensor, labels: Tensor) -> Tensor:
    if out.shape[1] == 1:
        return F.binary_cross_entropy_with_logits(out[:, 0], labels.to(out.dtype))
    return F.cross_entropy(out, labels)


def textbook(model: nn.Module, rule: str, loss: Callable[[], Tensor], k: int, step: int) -> list[Tensor]:
    """The gradient that the rule steps by, from its formula."""
    w = list(model.named_parameters())
    g = torch.autograd.grad(loss(), [p for _, p in w])
    if rule == "sgd":
        return list(g)
    if rule == "sam":
        size = sum(t.square().sum() for t in g).sqrt()
        eps = [RHO[k] * t / size for t in g]
    elif rule == "unnormalised":
        eps = [RHO[k] * t for t in g]
    elif rule == "asam":
        t_w = [p.detach().abs() + 0.01 if "weight" in name else torch.ones_like(p) for name, p in w]
        size = sum((t * s).square().sum() for t, s in zip(g, t_w, strict=True)).sqrt()
        eps = [RHO[k] * s * s * t / size for t, s in zip(g, t_w, strict=True)]
    elif rule == "random":
        stream = rng.generator(SEEDS[k], "perturbation", step, 0)
        eps = [RHO[k] * torch.randn(p.shape, dtype=p.dtype, generator=stream) for _, p in w]
    else:
        assert rule == "lsam"
        size = sum(t.square().sum() for (name, _), t in zip(w, g, strict=True) if name.startswith("head")).sqrt()
        eps = [RHO[k] * t / size * name.startswith("head") for (name, _), t in zip(w, g, strict=True)]
    there = copy.deepcopy(model)
    with torch.no_grad():
        for p, e in zip(there.parameters(), eps, strict=True):
            p += e
    displaced = textbook.loss_of(there)  # type: ignore[attr-defined]
    return list(torch.autograd.grad(displaced, list(there.parameters())))


def intervened(model: Any, effect: str, x: Tensor, labels: Tensor, k: int) -> list[Tensor]:
    """Springer's eqs. 7–12 with λ = σ(−y f) and g = v_easy ∇Φ_easy + v_hard ∇Φ_hard, example by example."""
    star = torch.tensor([1.0, HARD[k]], dtype=x.dtype)
    y = 2.0 * labels - 1.0
    v = model.head.weight[0].detach()
    body = [p for name, p in model.named_parameters() if not name.startswith("head")]
    phi = model.features(x)
    in_weight, in_rate = (star if effect != "rate" else v), (star if effect != "importance" else v)
    importance = torch.sigmoid(-y * (phi.detach() @ in_weight))
    surrogate = -(importance * y * (phi @ in_rate)).mean()
    found = dict(zip([id(p) for p in body], torch.autograd.grad(surrogate, body), strict=True))
    (own,) = torch.autograd.grad(mean_loss(model(x), labels), [model.head.weight])
    return [found.get(id(p), own) for p in model.parameters()]


class Intervention:
    """Eqs. 10–12 as the paper writes them, one example after the other: the second oracle of the interventions."""

    def __init__(self, model: Any, effect: str, k: int) -> None:
        self.model, self.effect, self.k = model, effect, k

    def backward(self, closure: Callable[[], Tensor], x: Tensor, labels: Tensor) -> None:
        model, v = self.model, self.model.head.weight[0].detach()
        star = torch.tensor([1.0, HARD[self.k]], dtype=x.dtype)
        inside, outside = (star if self.effect != "rate" else v), (star if self.effect != "importance" else v)
        closure().backward()
        body = [p for name, p in model.named_parameters() if not name.startswith("head")]
        for p in body:
            p.grad = torch.zeros_like(p)
        for i, sign in enumerate((2.0 * labels - 1.0).tolist()):
            phi = model.features(x[i : i + 1])[0]
            importance = torch.sigmoid(-sign * (inside @ phi.detach()))
            for p, g in zip(body, torch.autograd.grad(outside @ phi, body), strict=True):
                p.grad -= sign * importance * g / len(x)


def optimizer_face(model: nn.Module, rule: str, k: int) -> Any:
    return {
        "sam": lambda: optim.SAM(model, rho=RHO[k]),
        "asam": lambda: optim.ASAM(model, rho=RHO[k]),
        "unnormalised": lambda: optim.USAM(model, rho=RHO[k]),
        "random": lambda: optim.RandomPerturbation(model, sigma=RHO[k], seed=SEEDS[k]),
        "lsam": lambda: optim.LSAM(model, rho=RHO[k]),
        **{effect: lambda effect=effect: Intervention(model, effect, k) for effect in INTERVENTIONS},
    }[rule]()


def single_run(
    model: nn.Module, data: Labelled, rule: str, k: int, *, oracle: str, batch_size: int | None = BATCH
) -> list[Tensor]:
    """One member alone: the loop that anybody would write."""
    model = copy.deepcopy(model)
    sgd = torch.optim.SGD(model.parameters(), lr=LR[k], momentum=MOMENTUM[k], weight_decay=DECAY[k])
    face = optimizer_face(model, rule, k) if oracle == "evenly.optim" and rule != "sgd" else None
    step = 0
    for epoch in range(STEPS):
        visit = order(NUM, seed=SEEDS[k], epoch=epoch) if batch_size else torch.arange(NUM)
        for where in visit.split(batch_size or NUM):
            if step == STEPS:
                return [p.detach() for p in model.parameters()]
            x, labels = data.inputs[where], data.labels[where]
            sgd.zero_grad()
            if face is not None:
                batch = (x, labels) if rule in INTERVENTIONS else ()
                face.backward(lambda *_, x=x, labels=labels: mean_loss(model(x), labels), *batch)
            else:
                textbook.loss_of = lambda m, x=x, labels=labels: mean_loss(m(x), labels)  # type: ignore[attr-defined]
                here = lambda x=x, labels=labels: mean_loss(model(x), labels)  # noqa: E731
                found = (
                    intervened(model, rule, x, labels, k)
                    if rule in INTERVENTIONS
                    else textbook(model, rule, here, k, step)
                )
                for p, g in zip(model.parameters(), found, strict=True):
                    p.grad = g
            sgd.step()
            step += 1
    return [p.detach() for p in model.parameters()]


def ensemble_of(name: str, rule: str, *, dtype: torch.dtype, **options: Any) -> tuple[Ensemble, list[nn.Module], list]:
    models = members(name, dtype)
    first, second = labelled(name, seed=0, dtype=dtype), labelled(name, seed=1, dtype=dtype)
    data = [first, second, first]
    ensemble = Ensemble(
        models,
        data,
        lr=LR,
        rule=rule,
        rho=RHO if rule in DISPLACING else 0.0,
        momentum=MOMENTUM,
        weight_decay=DECAY,
        seeds=SEEDS,
        hard=HARD,
        **{"batch_size": BATCH, **options},
    )
    return ensemble, models, data


def cases() -> list[tuple[str, str]]:
    found = []
    for name in SHAPES:
        rules = ["sgd", *DISPLACING] + (INTERVENTIONS if name == "disentangled" else [])
        found += [(name, rule) for rule in rules if (name, rule) != ("cubic", "lsam")]
    return found


@pytest.mark.parametrize("oracle", ["textbook", "evenly.optim"])
@pytest.mark.parametrize("by_hand", [True, False], ids=["by-hand", "torch.func"])
@pytest.mark.parametrize(("name", "rule"), cases())
def test_each_member_takes_the_steps_of_a_run_of_its_own(name: str, rule: str, by_hand: bool, oracle: str) -> None:
    ensemble, models, data = ensemble_of(name, rule, dtype=torch.float64, by_hand=by_hand)
    ensemble.run(STEPS)
    ours = ensemble.parameters()
    for k, model in enumerate(models):
        theirs = single_run(model, data[k], rule, k, oracle=oracle)
        for (param, before), after in zip(model.named_parameters(), theirs, strict=True):
            torch.testing.assert_close(ours[param][k], after, rtol=1e-10, atol=1e-10)
            assert not torch.equal(before, after), "the run must move every parameter for the comparison to mean much"


@pytest.mark.parametrize(("name", "rule"), cases())
def test_single_precision_agrees_to_rounding(name: str, rule: str) -> None:
    ensemble, models, data = ensemble_of(name, rule, dtype=torch.float32)
    ensemble.run(STEPS)
    for k, model in enumerate(models):
        alone = single_run(model, data[k], rule, k, oracle="evenly.optim")
        for ours, theirs in zip(ensemble.member(k).parameters(), alone, strict=True):
            torch.testing.assert_close(ours.detach(), theirs, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("rule", ["sgd", "sam", "asam"])
@pytest.mark.parametrize("name", SHAPES)
def test_full_batch_in_pieces_is_full_batch(name: str, rule: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ensemble, models, data = ensemble_of(name, rule, dtype=torch.float64, batch_size=None)
    monkeypatch.setattr("evenly.training.ensemble.passes.AT_ONCE", 40)  # pieces of one member and a few examples
    ensemble.run(STEPS)
    for k, model in enumerate(models):
        alone = single_run(model, data[k], rule, k, oracle="textbook", batch_size=None)
        for ours, theirs in zip(ensemble.member(k).parameters(), alone, strict=True):
            torch.testing.assert_close(ours.detach(), theirs, rtol=1e-10, atol=1e-10)


def test_rules_mix_in_one_ensemble_and_members_keep_their_places() -> None:
    models = members("disentangled", torch.float64)
    data = labelled("disentangled", seed=0, dtype=torch.float64)
    rules = ["sam", "both", "lsam"]
    ensemble = Ensemble(
        models,
        data,
        lr=LR,
        rule=rules,
        rho=[RHO[0], 0.0, RHO[2]],
        momentum=MOMENTUM,
        weight_decay=DECAY,
        batch_size=BATCH,
        seeds=SEEDS,
        hard=HARD,
    )
    ensemble.run(STEPS)
    for k, model in enumerate(models):
        alone = single_run(model, data, rules[k], k, oracle="textbook")
        for ours, theirs in zip(ensemble.member(k).parameters(), alone, strict=True):
            torch.testing.assert_close(ours.detach(), theirs, rtol=1e-10, atol=1e-10)


def test_rho_zero_is_bit_for_bit_a_plain_step() -> None:
    models = members("relu2", torch.float32)
    data = labelled("relu2", seed=0, dtype=torch.float32)
    plain = Ensemble(models, data, lr=0.1, batch_size=BATCH, seeds=SEEDS)
    zero = Ensemble(models, data, lr=0.1, rule=["sam", "random", "lsam"], rho=0.0, batch_size=BATCH, seeds=SEEDS)
    plain.run(STEPS), zero.run(STEPS)
    assert all(torch.equal(a, zero.parameters()[name]) for name, a in plain.parameters().items())


def test_a_schedule_multiplies_every_learning_rate() -> None:
    models = members("relu2", torch.float64)
    data = labelled("relu2", seed=0, dtype=torch.float64)
    ensemble = Ensemble(models, data, lr=LR, schedule=lambda step: 0.5**step)
    ensemble.run(3)
    for k, model in enumerate(models):
        sgd = torch.optim.SGD(model.parameters(), lr=LR[k])
        halve = torch.optim.lr_scheduler.ExponentialLR(sgd, 0.5)
        for _ in range(3):
            sgd.zero_grad()
            mean_loss(model(data.inputs), data.labels).backward()
            sgd.step(), halve.step()
        for ours, theirs in zip(ensemble.member(k).parameters(), model.parameters(), strict=True):
            torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)
