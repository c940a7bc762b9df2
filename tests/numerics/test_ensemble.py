"""What an ensemble promises beside its trajectories: resume, measurements, multisets, losses, no trace, kind errors."""

import copy
import io
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from evenly import rng
from evenly.data import load
from evenly.data.batches import order
from evenly.data.labelled import Labelled
from evenly.errors import DataError, UsageError
from evenly.models import build
from evenly.training.ensemble import Ensemble
from evenly.training.ensemble.feed import orders


@pytest.fixture(scope="module")
def spirals() -> Labelled:
    return load("spirals", seed=0, num_train=40, num_test=4).train


def disentangled(num: int, *, dtype: torch.dtype = torch.float32) -> list[nn.Module]:
    return [build("disentangled", input_shape=(4,), num_classes=2, rng=k, width=8).to(dtype) for k in range(num)]


def digits_like(num: int, *, num_classes: int, seed: int = 0) -> Labelled:
    stream = rng.generator(seed, "test")
    labels = torch.randint(num_classes, (num,), generator=stream)
    return Labelled(torch.randn(num, 5, generator=stream), labels, tuple(map(str, range(num_classes))))


def make(models: list[nn.Module], data: Any, **options: Any) -> Ensemble:
    return Ensemble(models, data, **{"lr": 0.05, "batch_size": 6, "seeds": list(range(len(models))), **options})


def equal(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return all(torch.equal(a[name], b[name]) for name in a | b)


def test_orders_of_many_seeds_are_those_of_each() -> None:
    found = orders(37, seeds=[5, 0, 5], epoch=3)
    for row, seed in zip(found, [5, 0, 5], strict=True):
        assert torch.equal(row, order(37, seed=seed, epoch=3))


@pytest.mark.parametrize("at_once", [1, 700, 1500])
def test_what_is_gathered_together_makes_no_difference(
    spirals: Labelled, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = make(disentangled(3), spirals, batch_size=3, weights=torch.arange(1.0, 41.0))
    whole.run(30)
    monkeypatch.setattr("evenly.training.ensemble.feed._AT_ONCE", at_once)
    parts = make(disentangled(3), spirals, batch_size=3, weights=torch.arange(1.0, 41.0))
    parts.run(30)
    assert equal(whole.parameters(), parts.parameters())


@pytest.mark.parametrize("split", [1, 7, 10])
def test_a_saved_ensemble_goes_on_bit_for_bit(spirals: Labelled, split: int) -> None:
    settings: dict[str, Any] = {
        "rule": ["sam", "sgd", "random", "lsam"],
        "rho": [0.1, 0, 0.05, 0.2],
        "momentum": [0.9, 0.5, 0, 0.9],
        "weight_decay": 1e-3,
    }
    through = make(disentangled(4), spirals, **settings)
    through.run(15)
    first = make(disentangled(4), spirals, **settings)
    first.run(split)
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    resumed = make(disentangled(4), spirals, **settings)
    resumed.load_state_dict(torch.load(file, weights_only=True))
    assert resumed.step == split
    resumed.run(15 - split)
    assert equal(resumed.parameters(), through.parameters())
    assert equal(resumed.state_dict()["velocity"], through.state_dict()["velocity"])


def test_numbers_may_come_as_lists_tensors_or_arrays(spirals: Labelled) -> None:
    found = []
    for rho in ([0.1, 0.25], torch.tensor([0.1, 0.25], dtype=torch.float64), np.array([0.1, 0.25])):
        ensemble = make(disentangled(2), spirals, rule="sam", rho=rho, lr=np.float32(0.5))
        ensemble.run(2)
        found.append(ensemble.parameters())
    assert equal(found[0], found[1])
    assert equal(found[0], found[2])


def test_a_state_of_another_ensemble_is_refused_by_name(spirals: Labelled) -> None:
    state = make(disentangled(2), spirals, rule="sam", rho=0.1).state_dict()
    with pytest.raises(UsageError, match=r"rho = \[0.1, 0.1\], this ensemble has \[0.2, 0.2\]"):
        make(disentangled(2), spirals, rule="sam", rho=0.2).load_state_dict(state)
    other = load("spirals", seed=1, num_train=40, num_test=4).train
    with pytest.raises(UsageError, match="made with data"):
        make(disentangled(2), other, rule="sam", rho=0.1).load_state_dict(state)
    wider = [build("disentangled", input_shape=(4,), num_classes=2, rng=k, width=9) for k in range(2)]
    with pytest.raises(UsageError, match="the state is of parameters"):
        make(wider, spirals, rule="sam", rho=0.1).load_state_dict(state)


@pytest.mark.parametrize("name", ["weights", "copies", "noise"])
def test_a_state_of_other_examples_is_refused(spirals: Labelled, name: str) -> None:
    given = torch.arange(1, 41)
    state = make(disentangled(2), spirals, batch_size=5, **{name: given}).state_dict()
    make(disentangled(2), spirals, batch_size=5, **{name: given}).load_state_dict(state)
    for other in ({name: given.flip(0)}, {}):
        with pytest.raises(UsageError, match=f"the state was made with {name} = .*, this ensemble has"):
            make(disentangled(2), spirals, batch_size=5, **other).load_state_dict(state)


def test_measuring_sees_each_step_once_and_changes_nothing(spirals: Labelled) -> None:
    quiet = make(disentangled(3), spirals, rule=["sam", "sgd", "sam"], rho=[0.1, 0, 0.2])
    quiet.run(9)
    seen: list[int] = []

    def measure(params: dict[str, Tensor], step: int) -> dict[str, Tensor]:
        seen.append(step)
        found = params["head.weight"][:, 0, 1].clone()
        for t in params.values():
            t.zero_()  # a copy: nothing of it may reach the ensemble
        return {"v_hard": found, "loss": ensemble.loss()}

    ensemble = make(disentangled(3), spirals, rule=["sam", "sgd", "sam"], rho=[0.1, 0, 0.2])
    a = ensemble.run(4, measure=measure, at=[0, 2, 4, 9])
    b = ensemble.run(5, measure=measure, at=[0, 2, 4, 9])
    assert (a.steps, b.steps, seen) == ([0, 2, 4], [9], [0, 2, 4, 9])
    assert equal(ensemble.parameters(), quiet.parameters())
    assert torch.equal(b["v_hard"][0], quiet.parameters()["head.weight"][:, 0, 1])
    assert a["loss"].shape == (3, 3)
    assert torch.equal(a["v_hard"][0], torch.ones(3))


def test_loss_outputs_and_features_are_the_members_own(spirals: Labelled) -> None:
    models = disentangled(3, dtype=torch.float64)
    ensemble = make(models, spirals, rule=["sam", "sgd", "lsam"], rho=[0.1, 0, 0.2])
    ensemble.run(5)
    x = spirals.inputs.double()
    own = torch.stack([x + k for k in range(3)])
    for k in range(3):
        model = ensemble.member(k)
        y = 2.0 * spirals.labels - 1.0
        torch.testing.assert_close(ensemble.loss()[k], F.softplus(-y * model(x)[:, 0]).mean().detach())
        torch.testing.assert_close(ensemble.outputs(x)[k], model(x).detach())
        torch.testing.assert_close(ensemble.features(x)[k], model.features(x).detach())
        torch.testing.assert_close(ensemble.outputs(own)[k], model(own[k]).detach())


@pytest.mark.parametrize("options", [{}, {"single_logit": True, "bias": False}])
def test_cubic_features_sum_over_patches(options: dict[str, Any]) -> None:
    data = load("patches", seed=0, num_train=50, num_test=4).train
    models = [build("cubic", input_shape=(3, 50), num_classes=2, rng=k, init_scale=1.0, **options) for k in range(2)]
    ensemble = Ensemble(models, data, lr=0.1)
    for k, model in enumerate(models):
        torch.testing.assert_close(ensemble.features(data.inputs)[k], model.features(data.inputs).detach())
        torch.testing.assert_close(ensemble.outputs(data.inputs)[k], model(data.inputs).detach())


@pytest.mark.parametrize("at_once", [40, 400, 2**17], ids=["few examples", "one member", "all"])
@pytest.mark.parametrize("rule", ["sgd", "sam"])
def test_whole_weights_are_a_multiset(
    spirals: Labelled, rule: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evenly.training.ensemble.passes.AT_ONCE", at_once)
    repeats = torch.stack([torch.arange(40) % 3, 1 + torch.arange(40) % 2])
    models = disentangled(2, dtype=torch.float64)
    rho = 0.0 if rule == "sgd" else 0.1
    weighted = Ensemble(models, spirals, lr=0.1, rule=rule, rho=rho, weights=repeats)
    weighted.run(5)
    for k, model in enumerate(models):
        many = spirals.subset(torch.repeat_interleave(torch.arange(40), repeats[k]))
        alone = Ensemble([model], many, lr=0.1, rule=rule, rho=rho)
        alone.run(5)
        for name, t in alone.parameters().items():
            torch.testing.assert_close(weighted.parameters()[name][k], t[0], rtol=1e-10, atol=1e-12)
        torch.testing.assert_close(weighted.loss()[k], alone.loss()[0])


@pytest.mark.parametrize("batch_size", [6, None])
def test_members_of_several_rules_keep_their_own_data_and_weights(batch_size: int | None) -> None:
    sets = [load("spirals", seed=seed, num_train=40, num_test=4).train for seed in range(3)]
    data = [sets[0], sets[1], sets[2], sets[1]]
    weights = torch.rand(4, 40, generator=rng.generator(0, "weights"), dtype=torch.float64)
    rules, rho, lr = ["sgd", "sam", "lsam", "asam"], [0, 0.1, 0.2, 0.5], [0.1, 0.2, 0.3, 0.4]
    models = disentangled(4, dtype=torch.float64)
    ensemble = make(models, data, rule=rules, rho=rho, lr=lr, weights=weights, batch_size=batch_size)
    ensemble.run(9)
    for k, model in enumerate(models):
        alone = Ensemble(
            [model],
            data[k],
            rule=rules[k],
            rho=rho[k],
            lr=lr[k],
            weights=weights[k],
            seeds=[k],
            batch_size=batch_size,
        )
        alone.run(9)
        torch.testing.assert_close(ensemble.loss()[k], alone.loss()[0])
        for name, t in alone.parameters().items():
            torch.testing.assert_close(ensemble.parameters()[name][k], t[0], rtol=1e-10, atol=1e-12)


def test_weights_in_small_batches_follow_their_examples(spirals: Labelled) -> None:
    weights = torch.rand(40, generator=rng.generator(0, "weights")).double()
    (model,) = disentangled(1, dtype=torch.float64)
    ensemble = make([model], spirals, weights=weights, lr=0.1)
    ensemble.run(9)
    sgd = torch.optim.SGD(model.parameters(), lr=0.1)
    visits = [part for epoch in range(2) for part in order(40, seed=0, epoch=epoch).split(6)][:9]
    for where in visits:
        sgd.zero_grad()
        y = 2.0 * spirals.labels[where] - 1.0
        each = F.softplus(-y * model(spirals.inputs[where].double())[:, 0])
        ((weights[where] * each).sum() / weights[where].sum()).backward()
        sgd.step()
    for ours, theirs in zip(ensemble.member(0).parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    ("loss", "num_classes", "mean"),
    [
        ("cross-entropy", 3, F.cross_entropy),
        ("squared", 3, lambda f, y: (f - F.one_hot(y, 3)).square().sum(1).mean() / 2),
        (lambda f, y: F.cross_entropy(f, y, label_smoothing=0.2), 3, partial(F.cross_entropy, label_smoothing=0.2)),
        (lambda f, y: F.cross_entropy(f, y, reduction="none"), 3, F.cross_entropy),
    ],
    ids=["cross-entropy", "squared", "a mean", "one per example"],
)
def test_losses_of_several_outputs(loss: Any, num_classes: int, mean: Any) -> None:
    data = digits_like(20, num_classes=num_classes)
    models = [build("mlp", input_shape=(5,), num_classes=3, rng=k, width=6, dropout=0.0).double() for k in range(2)]
    ensemble = make(models, data, loss=loss)
    torch.testing.assert_close(ensemble.loss()[0], mean(models[0](data.inputs.double()), data.labels).detach())
    ensemble.run(6)
    for k, model in enumerate(models):
        check_against_sgd(ensemble.member(k), model, data, k, steps=6, mean=mean)


def test_squared_loss_of_one_output_has_labels_plus_and_minus_one() -> None:
    data = digits_like(20, num_classes=2)
    models = [build("relu2", input_shape=(5,), num_classes=2, rng=k, width=6).double() for k in range(2)]
    ensemble = make(models, data, loss="squared")
    ensemble.run(6)
    for k, model in enumerate(models):
        check_against_sgd(
            ensemble.member(k), model, data, k, steps=6, mean=lambda f, y: (f[:, 0] - (2.0 * y - 1)).square().mean() / 2
        )


def check_against_sgd(ours: nn.Module, model: nn.Module, data: Labelled, seed: int, *, steps: int, mean: Any) -> None:
    sgd = torch.optim.SGD(model.parameters(), lr=0.05)
    visits = [part for epoch in range(steps) for part in order(len(data), seed=seed, epoch=epoch).split(6)]
    for where in visits[:steps]:
        sgd.zero_grad()
        mean(model(data.inputs[where].double()), data.labels[where]).backward()
        sgd.step()
    for a, b in zip(ours.parameters(), model.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-10, atol=1e-12)


class Tanh(nn.Module):
    """Not of evenly: no head, a buffer, a parameter that is a scalar."""

    def __init__(self, seed: int, shift: float = 0.5) -> None:
        super().__init__()
        stream = rng.generator(seed, "tanh")
        self.inner = nn.Parameter(torch.randn(3, 5, generator=stream, dtype=torch.float64))
        self.scale = nn.Parameter(torch.tensor(1.0, dtype=torch.float64))
        self.register_buffer("shift", torch.full((3,), shift, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        return self.scale * torch.tanh(x @ self.inner.T + self.shift)


def test_any_module_of_the_users_trains() -> None:
    data = digits_like(20, num_classes=3)
    models = [Tanh(0), Tanh(1)]
    ensemble = make(models, data)
    ensemble.run(6)
    for k, model in enumerate(models):
        check_against_sgd(ensemble.member(k), model, data, k, steps=6, mean=F.cross_entropy)


def test_members_with_buffers_of_their_own_are_refused() -> None:
    with pytest.raises(UsageError, match="member 1: the buffer shift is not that of member 0"):
        make([Tanh(0), Tanh(1, shift=0.7)], digits_like(20, num_classes=3))


def test_logistic_regression_has_nothing_but_a_head() -> None:
    data = digits_like(20, num_classes=3)
    models = [build("mlp", input_shape=(5,), num_classes=3, rng=k, depth=1).double() for k in range(2)]
    ensemble = make(models, data)
    ensemble.run(6)
    for k, model in enumerate(models):
        check_against_sgd(ensemble.member(k), model, data, k, steps=6, mean=F.cross_entropy)


@pytest.mark.parametrize("rule", ["sam", "lsam"])
def test_a_member_that_diverges_leaves_the_others_bit_for_bit(spirals: Labelled, rule: str) -> None:
    calm = make(disentangled(3), spirals, rule=rule, rho=0.1)
    wild = make(disentangled(3), spirals, rule=rule, rho=0.1, lr=[0.05, 1e30, 0.05])
    calm.run(12), wild.run(12)
    assert not wild.parameters()["phi.0.weight"][1].isfinite().all()
    for name, t in calm.parameters().items():
        assert torch.equal(t[[0, 2]], wild.parameters()[name][[0, 2]])


def test_a_zero_gradient_displaces_nothing() -> None:
    data = Labelled(torch.zeros(4, 5), torch.tensor([0, 1, 0, 1]), ("a", "b"))
    models = [build("relu2", input_shape=(5,), num_classes=2, rng=k, width=3) for k in range(2)]
    for model in models:
        nn.init.zeros_(model.hidden.weight), nn.init.constant_(model.hidden.bias, -1.0)
    for rule in ("sam", "asam", "lsam"):
        ensemble = Ensemble(models, data, lr=0.1, rule=rule, rho=0.1)
        before = ensemble.parameters()
        ensemble.run(3)
        assert equal(ensemble.parameters(), before)


@pytest.mark.parametrize("by_hand", [True, False])
def test_models_data_and_generators_are_left_as_they_were(spirals: Labelled, by_hand: bool) -> None:
    models = disentangled(2)
    models[1].phi.eval()
    kept = [copy.deepcopy(model.state_dict()) for model in models]
    inputs, state = spirals.inputs.clone(), torch.get_rng_state()
    modes = [[m.training for m in model.modules()] for model in models]
    ensemble = make(models, spirals, rule=["random", "sam"], rho=0.1, by_hand=by_hand)
    ensemble.run(5, measure=lambda p, step: {"loss": ensemble.loss()}, at=[5])
    assert all(equal(dict(model.state_dict()), dict(before)) for model, before in zip(models, kept, strict=True))
    assert [[m.training for m in model.modules()] for model in models] == modes
    assert all(p.grad is None for model in models for p in model.parameters())
    assert torch.equal(spirals.inputs, inputs)
    assert torch.equal(torch.get_rng_state(), state)
    assert torch.is_grad_enabled()


def dropping() -> list[nn.Module]:
    return [build("mlp", input_shape=(4,), num_classes=2, rng=k, width=5) for k in range(2)]


def dropless() -> list[nn.Module]:
    return [build("mlp", input_shape=(4,), num_classes=2, rng=k, width=5, dropout=0.0) for k in range(2)]


def frozen() -> list[nn.Module]:
    models = disentangled(2)
    models[1].phi[0].weight.requires_grad_(False)
    return models


def of_two_widths() -> list[nn.Module]:
    return [build("disentangled", input_shape=(4,), num_classes=2, rng=0, width=width) for width in (8, 9)]


def normalising() -> list[nn.Module]:
    return [nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.Linear(3, 2)) for _ in range(2)]


def normalising_by_batch() -> list[nn.Module]:
    layers = (nn.Linear(4, 3), nn.BatchNorm1d(3, track_running_stats=False), nn.Linear(3, 2))
    return [nn.Sequential(*layers).eval() for _ in range(2)]


def of_two_dtypes() -> list[nn.Module]:
    return [*disentangled(1), *disentangled(1, dtype=torch.float64)]


def eps_apart() -> list[nn.Module]:
    models = disentangled(2)
    models[1].phi[1].eps = 1e-3
    return models


def cubes() -> list[nn.Module]:
    return [nn.Sequential(nn.Linear(4, 1)) for _ in range(2)]


WRONG: list[tuple[Any, dict[str, Any], type[Exception], str]] = [
    (list, {}, UsageError, "at least one member"),
    (lambda: ["mlp"], {}, UsageError, "member 0 is a str, not an nn.Module"),
    (
        of_two_widths,
        {},
        UsageError,
        r"member 1 has another shape than member 0: phi.0.weight is \(9, 4\), not \(8, 4\)",
    ),
    (of_two_dtypes, {}, UsageError, "member 1: .* torch.float64"),
    (eps_apart, {}, UsageError, "member 1 is built differently"),
    (frozen, {}, UsageError, "member 1: phi.0.weight is frozen"),
    (dropping, {}, UsageError, "dropout=0"),
    (normalising, {}, UsageError, "member 0: 1 is BatchNorm1d.*no statistics of batches.*model.eval"),
    (normalising_by_batch, {}, UsageError, "no statistics of batches"),
    (None, {"rho": -0.1, "rule": "sam"}, UsageError, "rho = -0.1 of member 0"),
    (None, {"rho": [0.1, float("nan")], "rule": "sam"}, UsageError, "rho = nan of member 1"),
    (None, {"rho": 0.1}, UsageError, "'sgd' and rho = 0.1"),
    (None, {"rule": "samm", "rho": 0.1}, UsageError, "Did you mean 'sam'"),
    (None, {"rule": ["sam"], "rho": 0.1}, UsageError, "rule has 1 values for 2 members"),
    (None, {"lr": [0.1, 0.1, 0.1]}, UsageError, "lr has 3 values for 2 members"),
    (None, {"lr": "fast"}, UsageError, "lr = 'fast' of member 0"),
    (None, {"momentum": 1.0}, UsageError, "momentum = 1.0 of member 0: .* less than 1"),
    (None, {"seeds": [1.5, 2]}, UsageError, "1.5 of member 0 is not a whole number"),
    (None, {"batch_size": 41}, UsageError, "from 1 to the 40 examples"),
    (None, {"batch_size": 0}, UsageError, "batch_size = 0"),
    (None, {"rule": "rate"}, UsageError, "needs v\\*_hard"),
    (cubes, {"rule": "lsam", "rho": 0.1}, UsageError, "lsam displaces a linear head"),
    (cubes, {"rule": "both", "hard": 1.0}, UsageError, "no nn.Linear"),
    (None, {"loss": "hinge"}, UsageError, "no loss 'hinge'"),
    (None, {"loss": "crossentropy"}, UsageError, "Did you mean 'cross-entropy'"),
    (dropless, {"loss": "logistic"}, UsageError, "takes one output, not 2"),
    (None, {"loss": "cross-entropy"}, UsageError, "use 'logistic'"),
    (None, {"weights": torch.ones(39)}, UsageError, r"weights are \(39,\)"),
    (None, {"weights": [[1.0] * 40, [1.0] * 3]}, UsageError, "rows of different lengths"),
    (None, {"weights": -torch.ones(40)}, UsageError, "0 or more"),
]


@pytest.mark.parametrize(("models", "options", "error", "words"), WRONG, ids=[words for *_, words in WRONG])
def test_what_cannot_be_meant_is_named(
    spirals: Labelled, models: Any, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        Ensemble(disentangled(2) if models is None else models(), spirals, **{"lr": 0.1, **options})


def test_data_that_do_not_fit_together_are_named(spirals: Labelled) -> None:
    with pytest.raises(DataError, match="data of member 1 has 39 examples, that of member 0 40"):
        Ensemble(disentangled(2), [spirals, spirals.subset(range(39))], lr=0.1)
    with pytest.raises(DataError, match="data of member 1 is"):
        Ensemble(disentangled(2), [spirals, digits_like(40, num_classes=2)], lr=0.1)
    with pytest.raises(UsageError, match="data has 1 values for 2 members"):
        Ensemble(disentangled(2), [spirals], lr=0.1)
    with pytest.raises(UsageError, match="is a Tensor, not Labelled"):
        Ensemble(disentangled(1), [spirals.inputs], lr=0.1)
    with pytest.raises(UsageError, match="Disentangled cannot take inputs of 5"):
        Ensemble(disentangled(1), digits_like(9, num_classes=2), lr=0.1)
    with pytest.raises(UsageError, match="Cubic cannot take inputs of 5"):
        Ensemble([build("cubic", input_shape=(3, 50), num_classes=2, rng=0)], digits_like(9, num_classes=2), lr=0.1)
    with pytest.raises(UsageError, match="3 classes"):
        Ensemble([build("relu2", input_shape=(5,), num_classes=2, rng=0)], digits_like(9, num_classes=3), lr=0.1)


def test_runs_and_measurements_that_make_no_sense_are_named(spirals: Labelled) -> None:
    ensemble = make(disentangled(2), spirals)
    with pytest.raises(UsageError, match="steps = -1"):
        ensemble.run(-1)
    with pytest.raises(UsageError, match="go together"):
        ensemble.run(1, at=[0])
    with pytest.raises(UsageError, match=r"'v' of shape \(2, 8\)"):
        ensemble.run(1, measure=lambda p, step: {"v": p["phi.0.bias"]}, at=[1])
    with pytest.raises(UsageError, match="returned Tensor at step"):
        ensemble.run(1, measure=lambda p, step: p["phi.0.bias"], at=[2])  # type: ignore[arg-type,return-value]
    with pytest.raises(UsageError, match=r"at step 4, but \['a'\] before"):
        ensemble.run(2, measure=lambda p, step: {"a" if step == 3 else "b": torch.zeros(2)}, at=[3, 4])
    with pytest.raises(UsageError, match="Did you mean 'loss'"):
        ensemble.run(1, measure=lambda p, step: {"loss": torch.zeros(2)}, at=[ensemble.step + 1])["los"]
    with pytest.raises(UsageError, match="no member 2"):
        ensemble.member(2)
    with pytest.raises(UsageError, match="inputs are 3 × 5: give N × 4"):
        ensemble.outputs(torch.zeros(3, 5))
