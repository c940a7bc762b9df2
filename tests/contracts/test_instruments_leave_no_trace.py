"""One contract for every instrument: the model is bit-identical afterwards, also when the measurement raises."""

import contextlib
import copy
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from evenly import curvature, diagnostics
from evenly.data import Labelled, Splits, load
from evenly.diagnostics.measure import function_of
from evenly.diagnostics.subject import Subject
from evenly.errors import UsageError
from evenly.measurements import MEASUREMENTS

N = 24
pytestmark = pytest.mark.filterwarnings("ignore:the walk of the learning coefficient has not mixed")  # three draws


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


class Network(nn.Module):
    """BatchNorm, dropout, a buffer that every call writes to, a global random draw, and a hook of the user's own."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(inplace=True), nn.Dropout(0.3))
        self.head = nn.Linear(8, 2)
        self.register_buffer("calls", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        torch.rand(1)
        return self.head(self.body(x))


def data() -> Labelled:
    x = torch.randn(N, 6, generator=generator())
    tag = torch.arange(N) // 2 % 2
    return Labelled(x, torch.arange(N) % 2, ("a", "b"), {"easy": torch.arange(N) % 2, "hard": tag, "tag": tag})


def spectrum(model: nn.Module) -> Any:
    model.eval()  # curvature refuses train mode; the mode is the caller's here
    try:
        H = curvature.hessian(model, data(), chunk=10)
        return curvature.density(H, probes=1, steps=2, rng=generator()), curvature.lanczos(H, k=1, rng=generator())
    finally:
        model.train()
        model.body[1].eval()  # type: ignore[index]


def in_eval(measure: Callable[[nn.Module], Any]) -> Callable[[nn.Module], Any]:
    def call(model: nn.Module) -> Any:
        with curvature.observing(model):
            return measure(model)

    return call


INSTRUMENTS: dict[str, Callable[[nn.Module], Any]] = {
    "hessian, lanczos, density": spectrum,
    "gauss_newton": in_eval(lambda m: curvature.gauss_newton(m, data()).dense()),
    "fisher": in_eval(lambda m: curvature.fisher(m, data(), labels="data", chunk=10).dense()),
    "gram": in_eval(lambda m: curvature.gram(m, data(), chunk=10)),
    "block_gram": in_eval(lambda m: curvature.block_gram(m, data(), loss="cross-entropy", chunk=10)),
    "per_example_gradients": in_eval(lambda m: curvature.per_example_gradients(m, data(), chunk=10)),
    "sharpness": lambda m: diagnostics.sharpness(m, data(), rng=generator(), chunk=10),
    "worst_rise": lambda m: diagnostics.worst_rise(m, data(), rho=0.1, rng=generator(), chunk=10),
    "l1_norm": diagnostics.l1_norm,
    "measure": lambda m: str(diagnostics.measure(m, data(), rng=generator())),
    "features": lambda m: diagnostics.features(m, data(), chunk=10),
    "probing_error": lambda m: diagnostics.probing_error(
        m, data(), test=data(), attribute="hard", rng=generator(), refits=1
    ),
    "importance": lambda m: diagnostics.importance(m, data(), rho=0.1, group=10),
    "reweighting": lambda m: diagnostics.reweighting(m, data(), rho=0.1, chunk=10),
    "reliance": lambda m: diagnostics.reliance(m, data(), attribute="tag", chunk=10),
    "adaptive_sharpness": lambda m: diagnostics.adaptive_sharpness(m, data(), rho=0.1, rng=generator(), chunk=10),
    "m_sharpness": lambda m: diagnostics.m_sharpness(m, data(), rho=0.1, m=6, rng=generator()),
    "group_errors": lambda m: diagnostics.group_errors(m, data(), attribute="tag", chunk=10),
    "layer_probes": lambda m: str(
        diagnostics.layer_probes(m, Splits("d", {"train": data(), "balanced": data()}), rng=generator(), refits=1)
    ),
    "mode_connectivity": lambda m: diagnostics.mode_connectivity(m, copy.deepcopy(m), data(), points=3, chunk=10),
    "learning_coefficient": lambda m: diagnostics.learning_coefficient(
        m, data(), rng=generator(), draws=3, burn_in=1, chains=2
    ),
    "reliance by swap": lambda m: diagnostics.reliance(
        m, data(), attribute="tag", swap=lambda x, other: other, rng=generator(), chunk=10
    ),
}
CALLS_NOTHING = {"l1_norm"}


def measurement(name: str) -> Callable[[nn.Module], Any]:
    """A line of `evenly.measurements`, as `measure` calls it: new lines are under the contract by themselves."""
    quick = {"learning_coefficient": {"draws": 3, "burn_in": 1, "chains": 2}}
    splits = Splits("d", {"train": data(), "balanced": data()})

    def call(model: nn.Module) -> str:
        subject = Subject(model, data(), splits, generator(), 0.1, None, 0.1, quick.get(name, {}))
        return str(function_of(name)(subject))

    return call


INSTRUMENTS |= {f"measurement {name}": measurement(name) for name in MEASUREMENTS}


def prepared() -> tuple[Network, dict[str, Any]]:
    torch.manual_seed(0)  # the model's own weights; instruments are watched from here on
    model = Network().train()
    model.body[1].eval()  # a mixture of modes must come back as it was
    model(torch.randn(4, 6)).sum().backward()
    model.head.bias.grad = None
    model.body[0].weight.register_hook(lambda g: g)
    model.head.register_forward_hook(lambda *_: None)
    return model, trace(model)


def trace(model: Network) -> dict[str, Any]:
    """Everything an instrument could leave behind."""
    return {
        "state": copy.deepcopy(model.state_dict()),
        "storage": [p.data_ptr() for p in model.parameters()],
        "identity": [id(t) for t in (*model.parameters(), *model.buffers())],
        "gradients": [None if p.grad is None else (id(p.grad), p.grad.clone()) for p in model.parameters()],
        "requires_grad": [p.requires_grad for p in model.parameters()],
        "graph": [p.grad_fn for p in model.parameters()],
        "modes": [module.training for module in model.modules()],
        "hooks": [
            [len(getattr(module, name)) for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks")]
            for module in model.modules()
        ],
        "attributes": [sorted(vars(module)) for module in model.modules()],
        "rng": torch.get_rng_state(),
        "numpy": np.random.get_state()[1].copy(),
        "grad mode": torch.is_grad_enabled(),
        "threads": torch.get_num_threads(),
    }


def assert_same(before: Any, after: Any, where: str) -> None:
    if isinstance(before, Tensor):
        assert torch.equal(before, after), where
    elif isinstance(before, np.ndarray):
        assert (before == after).all(), where
    elif isinstance(before, dict):
        assert before.keys() == after.keys(), where
        for name in before:
            assert_same(before[name], after[name], f"{where}.{name}")
    elif isinstance(before, list | tuple):
        assert len(before) == len(after), where
        for i, (a, b) in enumerate(zip(before, after, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    else:
        assert before == after or (before != before and after != after), where  # NaN is NaN


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_the_model_is_as_it_was(name: str) -> None:
    model, before = prepared()
    INSTRUMENTS[name](model)
    assert_same(before, trace(model), name)


@pytest.mark.parametrize("after", [0, 1, 4, 7])
@pytest.mark.parametrize("name", sorted(set(INSTRUMENTS) - CALLS_NOTHING))
def test_the_model_is_as_it_was_when_it_breaks_in_the_middle(name: str, after: int) -> None:
    model, before = prepared()
    # Buffers are put back between chunks, so that calls are counted outside of the model.
    calls = 0

    def breaking(module: nn.Module, inputs: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > after:
            raise RuntimeError("the model broke")

    handle = model.register_forward_pre_hook(breaking)
    with contextlib.suppress(RuntimeError, UsageError):  # vmap's errors come back as UsageError
        INSTRUMENTS[name](model)
    assert (calls > after) or (after > 1)  # it did break, unless it needs few calls
    handle.remove()
    assert_same(before, trace(model), name)


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_the_answer_does_not_depend_on_the_global_generator_or_the_gradient_mode(name: str) -> None:
    def plain(value: Any) -> Any:
        if hasattr(value, "__dataclass_fields__"):
            return {field: plain(getattr(value, field)) for field in value.__dataclass_fields__}
        return tuple(map(plain, value)) if isinstance(value, tuple) else value

    model, _ = prepared()
    first = plain(INSTRUMENTS[name](model))
    torch.rand(17)
    with torch.no_grad():
        second = plain(INSTRUMENTS[name](model))
    assert_same(first, second, name)


def test_every_public_instrument_is_under_this_contract() -> None:
    takes_no_model = {
        "alignment", "feature_rank", "fit_probe", "gini", "importance_weights", "learning_order", "lorenz",
        "median_map", "observing", "probing_errors", "sam_edge",
    }  # fmt: skip
    public = {
        name
        for room in (curvature, diagnostics)
        for name in vars(room)
        if callable(getattr(room, name)) and name[0].islower()
    }
    covered = {word for name in INSTRUMENTS for word in name.split(", ")}
    assert public - takes_no_model <= covered


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_an_entry_names_the_shared_settings_that_its_function_reads(name: str) -> None:
    source = inspect.getsource(function_of(name))
    takes = set(MEASUREMENTS[name].takes) - {"loss"}
    assert {each for each in ("rho", "layer") if f"subject.{each}" in source} == takes


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_an_entry_says_whether_its_measurement_takes_the_loss_of_the_training(name: str) -> None:
    """`evenly measure` passes the loss of a run to these and to no others."""
    model = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 2))
    quick: dict[str, Any] = {"learning_coefficient": {"draws": 2, "burn_in": 1}, "layer_probes": {"refits": 1}}
    options = {name: {"loss": "squared", **quick.get(name, {})}}

    def numbers() -> Any:
        data = load("spirals", num_train=20, num_test=400)
        rng = torch.Generator().manual_seed(0)
        return diagnostics.measure(model, data, name, rng=rng, examples=20, lr=0.1, options=options)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws do not mix
        if "loss" in MEASUREMENTS[name].takes:
            assert numbers()
        else:
            with pytest.raises(UsageError, match=f"{name} has no option 'loss'"):
                numbers()
