"""What every model of the catalogue promises, whatever its architecture."""

import contextlib
import copy
from functools import cache
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap

from evenly import models
from evenly.errors import UsageError
from evenly.models.catalogue import CATALOGUE

SETTINGS: dict[str, tuple[tuple[int, ...], int, dict[str, Any]]] = {
    "mlp": ((1, 8, 8), 10, {"width": 32}),
    "cubic": ((3, 50), 2, {}),
    "disentangled": ((4,), 2, {}),
    "relu2": ((15,), 2, {"width": 10}),
    "convnet": ((3, 17, 12), 5, {}),
    "airbench": ((3, 17, 12), 5, {"width": 8}),
    "preact-resnet18": ((3, 16, 16), 10, {"width": 8}),
    "preact-resnet34": ((1, 9, 13), 3, {"width": 4}),
    "vgg19-bn": ((3, 32, 32), 10, {"classifier": "light"}),
    "densenet121": ((3, 32, 32), 10, {}),
    "vit-s": ((3, 16, 8), 10, {"width": 32, "depth": 2, "num_heads": 2, "head_width": 8, "mlp_width": 48}),
    "resnet18": ((3, 32, 32), 10, {}),
    "resnet50": ((3, 32, 32), 7, {}),
}
SHAPES = ((1, 8, 8), (3, 32, 32), (4,), (3, 50))  # tried in this order for a model without settings above


def usual(name: str) -> tuple[tuple[int, ...], int, dict[str, Any]]:
    """Settings for a model that has none here: the first shape that it takes, and two classes."""
    for shape in SHAPES:
        with contextlib.suppress(UsageError):
            models.build(name, input_shape=shape, num_classes=2, rng=0)
            return shape, 2, {}
    raise AssertionError(f"{name} takes none of {SHAPES}: give its settings above")


SETTINGS |= {name: usual(name) for name in CATALOGUE if name not in SETTINGS}
every_model = pytest.mark.parametrize("name", SETTINGS)
image_models = pytest.mark.parametrize("name", [name for name, (shape, _, _) in SETTINGS.items() if len(shape) == 3])


def fresh(name: str, rng: torch.Generator | int = 0) -> nn.Module:
    shape, num_classes, options = SETTINGS[name]
    return models.build(name, input_shape=shape, num_classes=num_classes, rng=rng, **options)


@cache
def built(name: str) -> nn.Module:
    return fresh(name).eval()


def inputs(name: str, num: int = 3) -> Tensor:
    return torch.randn(num, *SETTINGS[name][0], generator=torch.Generator().manual_seed(1))


def states(model: nn.Module) -> dict[str, Tensor]:
    return {key: value.clone() for key, value in model.state_dict().items()}


def same(a: dict[str, Tensor], b: dict[str, Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[key], b[key]) for key in a)


@every_model
def test_the_head_of_the_features_is_the_output_to_the_bit(name: str) -> None:
    model, x = built(name), inputs(name)
    features = model.features(x)
    assert features.ndim == 2
    assert len(features) == len(x)
    assert torch.equal(model.head(features), model(x))
    if name != "cubic":
        assert isinstance(model.head, nn.Linear)
        assert features.shape[1] == model.head.in_features


@every_model
@torch.no_grad()
def test_the_head_is_linear_in_the_features(name: str) -> None:
    model, x = built(name), inputs(name)
    a = model.features(x)
    b = torch.randn(a.shape, generator=torch.Generator().manual_seed(2)) * a.std()
    head, zero = model.head, torch.zeros_like(a)
    torch.testing.assert_close(head(a + b), head(a) + head(b) - head(zero), rtol=1e-4, atol=1e-5 * float(head(b).std()))


@every_model
def test_outputs_are_one_per_class_or_a_single_logit_for_two(name: str) -> None:
    num_classes = SETTINGS[name][1]
    columns = built(name)(inputs(name)).shape[1]
    assert columns == (1 if name in ("disentangled", "relu2") else num_classes)


@every_model
def test_first_weights_are_a_pure_function_of_rng_and_leave_the_global_generator_alone(name: str) -> None:
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first = fresh(name, rng=torch.Generator().manual_seed(3))
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(6)
    again = fresh(name, rng=torch.Generator().manual_seed(3))
    other = fresh(name, rng=torch.Generator().manual_seed(4))
    assert same(first.state_dict(), again.state_dict())
    assert not same(first.state_dict(), other.state_dict())


@every_model
def test_no_layer_starts_as_zeros_and_none_repeats_another(name: str) -> None:
    weights = [p for p in built(name).parameters() if p.ndim > 1]
    if name == "disentangled":
        weights = weights[:-1]  # v = (1, 1) by definition
    if name == "airbench":
        weights = weights[-1:]  # its convolutions begin by passing their input on, by definition
    assert all(p.std() > 0 for p in weights if p.numel() > 1)
    starts = {tuple(p.flatten()[:3].tolist()) for p in weights}
    assert len(starts) == len(weights)


@every_model
def test_a_forward_pass_leaves_its_input_as_it_was(name: str) -> None:
    model = copy.deepcopy(built(name)).train()
    x = inputs(name)
    kept = x.clone()
    model(x)
    assert torch.equal(x, kept)


@every_model
def test_check_passes_and_leaves_no_trace(name: str) -> None:
    shape, num_classes, _ = SETTINGS[name]
    model = copy.deepcopy(built(name)).train()
    next(iter(model.children())).eval()
    modes = [module.training for module in model.modules()]
    before, rng = states(model), torch.get_rng_state()
    models.check(model, shape, num_classes)
    assert same(states(model), before)
    assert [module.training for module in model.modules()] == modes
    assert torch.equal(torch.get_rng_state(), rng)
    assert all(p.grad is None for p in model.parameters())


@image_models
def test_channels_last_gives_the_same_outputs(name: str) -> None:
    model, x = built(name), inputs(name)
    last = copy.deepcopy(model).to(memory_format=torch.channels_last)
    out = last(x.to(memory_format=torch.channels_last))
    torch.testing.assert_close(out, model(x), rtol=1e-4, atol=1e-5)


@every_model
def test_it_is_one_graph_to_the_compiler(name: str) -> None:
    torch.compiler.reset()
    model, x = built(name), inputs(name)
    torch.testing.assert_close(torch.compile(model, backend="eager", fullgraph=True)(x), model(x))


@every_model
def test_it_can_be_differentiated_twice(name: str) -> None:
    model = built(name)
    parameters = list(model.parameters())
    loss = model(inputs(name, 2)).square().mean()
    first = torch.autograd.grad(loss, parameters, create_graph=True)
    second = torch.autograd.grad(sum(g.square().sum() for g in first), parameters, allow_unused=True)
    assert all(g is None or g.isfinite().all() for g in second)
    assert any(g is not None and g.abs().sum() > 0 for g in second)


@every_model
def test_per_example_gradients_by_vmap_are_those_of_a_loop(name: str) -> None:
    # float64: in float32 a rounding that moves one ReLU of DenseNet's over its kink moves its gradient by 1 %.
    model, x = copy.deepcopy(built(name)).double(), inputs(name, 2).double()
    parameters = {key: p.detach() for key, p in model.named_parameters()}
    buffers = dict(model.named_buffers())

    def loss(parameters: dict[str, Tensor], one: Tensor) -> Tensor:
        return functional_call(model, (parameters, buffers), (one[None],)).square().sum()

    together = vmap(grad(loss), in_dims=(None, 0))(parameters, x)
    for i in range(len(x)):
        alone = grad(loss)(parameters, x[i])
        for key in parameters:
            scale = float(alone[key].abs().max())
            torch.testing.assert_close(together[key][i], alone[key], rtol=1e-9, atol=1e-9 * scale)


@every_model
def test_it_runs_in_bf16(name: str) -> None:
    model, x = built(name), inputs(name)
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        low = model(x)
    with torch.no_grad():
        high = model(x)
    scale = float(high.abs().max())
    torch.testing.assert_close(low.float(), high, rtol=0, atol=0.1 * scale)
