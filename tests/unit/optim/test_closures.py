"""Differentiating a loss: by torch's own engine, called directly where this torch has it, and as well without."""

import importlib.util
from types import ModuleType

import pytest
import torch
from torch import Tensor, nn

import evenly
from evenly.optim import closures


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def gradients(module: ModuleType, weight: float) -> list[Tensor]:
    """Of two passes, the second added to the first."""
    model = network()
    for scale in (1.0, 2.0):
        module.differentiate(model(scale * torch.ones(2, 3)).square().mean(), weight)
    return [p.grad.clone() for p in model.parameters()]


def sam_gradients(**options: object) -> list[Tensor]:
    model = network()
    evenly.SAM(model, rho=0.5, **options).backward(lambda x: model(x).square().mean(), torch.ones(4, 3))
    return [p.grad.clone() for p in model.parameters()]


def same(found: list[Tensor], expected: list[Tensor]) -> bool:
    return all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


@pytest.mark.parametrize("weight", [1.0, 0.25])
def test_without_the_engine_gradients_are_the_same_bits(weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = gradients(closures, weight)
    assert max(float(g.abs().max()) for g in expected) > 0
    monkeypatch.setattr(closures, "_engine", None)
    assert same(gradients(closures, weight), expected)


@pytest.mark.parametrize("options", [{}, {"m": 2}, {"fraction": 0.5}])
def test_without_the_engine_sam_is_the_same(options: dict[str, object], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = sam_gradients(**options)
    monkeypatch.setattr(closures, "_engine", None)
    assert same(sam_gradients(**options), expected)


@pytest.mark.parametrize(
    ("where", "name"),
    [(torch.autograd.graph, "_engine_run_backward"), (torch._C, "_are_functorch_transforms_active")],
)
def test_a_torch_that_lacks_either_private_name_will_do(
    where: ModuleType, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = importlib.util.spec_from_file_location("closures_of_another_torch", closures.__file__)
    module = importlib.util.module_from_spec(spec)
    with monkeypatch.context() as lacking:
        lacking.delattr(where, name)
        spec.loader.exec_module(module)
    assert module._engine is None
    assert closures._engine is not None
    assert same(gradients(module, 0.25), gradients(closures, 0.25))
