"""The papers' small networks against their formulas, written out in float64 without a layer of torch.nn.

Shapes: N examples, P patches, D dimensions, J filters, C outputs.
"""

import itertools
import math

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from evenly.models import build
from evenly.models.convnet import ConvNet
from evenly.models.cubic import Cubic
from evenly.models.disentangled import Disentangled
from evenly.models.mlp import MLP
from evenly.models.relu2 import ReLU2


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def in_float64(name: str, shape: tuple[int, ...], num_classes: int = 2, **options: object) -> nn.Module:
    return build(name, input_shape=shape, num_classes=num_classes, rng=0, **options).double().eval()


@pytest.mark.parametrize(("single_logit", "bias"), [(False, True), (True, False), (False, False), (True, True)])
def test_cubic_is_the_sum_of_cubes_over_filters_and_patches(single_logit: bool, bias: bool) -> None:
    model = in_float64("cubic", (3, 5), num_filters=6, single_logit=single_logit, bias=bias, init_scale=1.0)
    assert isinstance(model, Cubic)
    x = drawn(4, 3, 5)
    w, b = model.filters.weight.detach(), model.filters.bias.detach() if bias else torch.zeros(6)
    groups = [range(6)] if single_logit else [range(3), range(3, 6)]
    by_hand = [
        [sum((w[j].dot(x[n, p]) + b[j]) ** 3 for j in group for p in range(3)) for group in groups] for n in range(4)
    ]
    torch.testing.assert_close(model(x), torch.tensor(by_hand, dtype=torch.float64))


def test_gradient_of_cubic_is_three_z_squared_x() -> None:
    model = in_float64("cubic", (3, 5), num_filters=6, single_logit=True)
    assert isinstance(model, Cubic)
    x = drawn(1, 3, 5)
    model(x).sum().backward()
    z_PJ = x[0] @ model.filters.weight.T + model.filters.bias
    torch.testing.assert_close(model.filters.weight.grad, 3 * (z_PJ**2).T @ x[0])
    torch.testing.assert_close(model.filters.bias.grad, 3 * (z_PJ**2).sum(0))


def test_cubic_starts_ten_times_smaller_than_pytorch_and_as_small_as_the_lineage() -> None:
    model = build("cubic", input_shape=(3, 50), num_classes=2, rng=0, num_filters=4000)
    limit = 0.1 / math.sqrt(50)
    for p in model.parameters():
        assert p.abs().max() <= limit
        assert float(p.detach().std()) == pytest.approx(0.0082, rel=0.02)
    full = build("cubic", input_shape=(3, 50), num_classes=2, rng=0, num_filters=4000, init_scale=1.0)
    torch.testing.assert_close(full.filters.weight, 10 * model.filters.weight)


def test_without_bias_one_logit_of_cubic_is_odd_and_with_bias_it_is_not() -> None:
    x = drawn(8, 3, 50)
    odd = in_float64("cubic", (3, 50), single_logit=True, bias=False)
    torch.testing.assert_close(odd(-x), -odd(x), rtol=1e-12, atol=0)
    free = in_float64("cubic", (3, 50), single_logit=True)
    assert not torch.allclose(free(-x), -free(x), rtol=0.01)


def test_alignment_of_cubic_is_each_filters_product_with_each_direction() -> None:
    model = in_float64("cubic", (3, 50))
    assert isinstance(model, Cubic)
    directions = drawn(2, 50, seed=3)
    both = model.alignment(directions)
    assert both.shape == (2, 40)
    assert not both.requires_grad
    for k, j in itertools.product(range(2), range(40)):
        assert float(both[k, j]) == pytest.approx(float((model.filters.weight[j] * directions[k]).sum().detach()))
    torch.testing.assert_close(model.alignment(directions[1].float()), both[1], rtol=1e-5, atol=1e-7)


def layer_norm(x: Tensor, layer: nn.LayerNorm) -> Tensor:
    centred = x - x.mean(-1, keepdim=True)
    return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * layer.weight + layer.bias


def test_disentangled_is_v_easy_phi_easy_plus_v_hard_phi_hard() -> None:
    model = in_float64("disentangled", (4,), width=7)
    assert isinstance(model, Disentangled)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(drawn(*p.shape, seed=p.numel()))
    first, norm1, _, second, norm2, _, last = model.phi

    def phi(x: Tensor) -> Tensor:
        h = layer_norm(x @ first.weight.T + first.bias, norm1).clamp_min(0)
        h = layer_norm(h @ second.weight.T + second.bias, norm2).clamp_min(0)
        return h @ last.weight[0] + last.bias

    x = drawn(6, 4)
    easy = torch.stack([phi(torch.tensor([row[0], row[1], 0, 0], dtype=torch.float64)) for row in x])[:, 0]
    hard = torch.stack([phi(torch.tensor([0, 0, row[2], row[3]], dtype=torch.float64)) for row in x])[:, 0]
    torch.testing.assert_close(model.features(x), torch.stack([easy, hard], 1))
    v_easy, v_hard = model.head.weight[0]
    torch.testing.assert_close(model(x)[:, 0], v_easy * easy + v_hard * hard)


def test_features_of_disentangled_do_not_see_each_others_inputs() -> None:
    model = in_float64("disentangled", (4,))
    x = drawn(6, 4).requires_grad_()
    (of_easy,) = torch.autograd.grad(model.features(x)[:, 0].sum(), x, retain_graph=True)
    (of_hard,) = torch.autograd.grad(model.features(x)[:, 1].sum(), x)
    assert of_easy[:, 2:].abs().max() == 0
    assert of_easy[:, :2].abs().min() > 0
    assert of_hard[:, :2].abs().max() == 0
    assert of_hard[:, 2:].abs().min() > 0


def test_relu2_is_its_formula() -> None:
    model = in_float64("relu2", (15,), width=10)
    assert isinstance(model, ReLU2)
    x = drawn(6, 15)
    z = x @ model.hidden.weight.T + model.hidden.bias
    torch.testing.assert_close(model(x), (z * (z > 0)) @ model.head.weight.T)


@pytest.mark.parametrize("c", [2, 3])
def test_relu2_fits_parity_exactly_at_chang_and_khannas_solution(c: int) -> None:
    # (C, r)-solution: the trace of the Gauss–Newton matrix of every example is r² + (d+1)/r².
    d, r = 6, 1.3
    model = in_float64("relu2", (d,), width=2**c + 1)
    assert isinstance(model, ReLU2)
    with torch.no_grad():
        for p in model.parameters():
            p.zero_()
        for j, a in enumerate(itertools.product((0, 1), repeat=c)):
            model.hidden.weight[j, :c] = r * torch.tensor([(-1.0) ** bit for bit in a])
            model.hidden.bias[j] = -r * (c - 1)
            model.head.weight[0, j] = (-1.0) ** (a[0] + a[1]) / r
    cube = torch.tensor(list(itertools.product((-1.0, 1.0), repeat=d)), dtype=torch.float64)
    torch.testing.assert_close(model(cube)[:, 0], cube[:, 0] * cube[:, 1])
    for x in cube[:8]:
        gradient = torch.autograd.grad(model(x[None]).sum(), list(model.parameters()))
        trace = sum(float(g.square().sum()) for g in gradient)
        assert trace == pytest.approx(r**2 + (d + 1) / r**2)


def test_mlp_is_two_hidden_layers_in_eval_mode() -> None:
    model = in_float64("mlp", (2, 3, 4), 5, width=8)
    assert isinstance(model, MLP)
    one, two = model.features[1], model.features[4]
    x = drawn(6, 2, 3, 4)
    h = (x.reshape(6, 24) @ one.weight.T + one.bias).clamp_min(0)
    h = (h @ two.weight.T + two.bias).clamp_min(0)
    torch.testing.assert_close(model(x), h @ model.head.weight.T + model.head.bias)


def test_dropout_of_mlp_acts_on_every_hidden_layer_in_train_mode_only() -> None:
    model = in_float64("mlp", (16,), 5, width=4000, dropout=0.3)
    first = model.features[:4]
    h = first.eval()(drawn(1, 16))
    torch.manual_seed(0)
    dropped = first.train()(drawn(1, 16))
    alive = h > 0
    assert float((dropped[alive] == 0).double().mean()) == pytest.approx(0.3, abs=0.04)
    kept = alive & (dropped != 0)
    torch.testing.assert_close(dropped[kept], h[kept] / 0.7)
    assert sum(isinstance(layer, nn.Dropout) for layer in model.features) == 2


def convolve(x: Tensor, layer: nn.Conv2d) -> Tensor:
    """A convolution as a sum over the window's positions: no convolution routine involved."""
    (size, _), (stride, _), (padding, _) = layer.kernel_size, layer.stride, layer.padding
    x = functional.pad(x, (padding,) * 4)
    rows, columns = ((side - size) // stride + 1 for side in x.shape[2:])
    out = torch.zeros(len(x), layer.out_channels, rows, columns, dtype=x.dtype)
    for i, j in itertools.product(range(size), range(size)):
        window = x[:, :, i : i + stride * rows : stride, j : j + stride * columns : stride]
        out += torch.einsum("nchw,oc->nohw", window, layer.weight[:, :, i, j])
    return out if layer.bias is None else out + layer.bias[:, None, None]


@pytest.mark.parametrize("shape", [(3, 64, 32), (1, 9, 17), (3, 1, 1)])
def test_convnet_is_three_strided_convolutions_and_a_linear_layer(shape: tuple[int, ...]) -> None:
    model = in_float64("convnet", shape)
    assert isinstance(model, ConvNet)
    x = drawn(2, *shape)
    h = x
    for layer in model.features:
        if isinstance(layer, nn.Conv2d):
            h = convolve(h, layer).clamp_min(0)
    torch.testing.assert_close(model(x), h.reshape(2, -1) @ model.head.weight.T + model.head.bias)
