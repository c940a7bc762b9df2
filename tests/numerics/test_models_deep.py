"""The deep networks without torchvision: PreAct ResNets and the transformer, written out again in float64."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

from evenly.models import build
from evenly.models.preact_resnet import PreActResNet
from evenly.models.vit import ViT, patches

SMALL = {"width": 24, "depth": 2, "num_heads": 3, "head_width": 8, "mlp_width": 40}


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def shaken(name: str, shape: tuple[int, ...], **options: object) -> nn.Module:
    """A model in float64 whose norms too are drawn at random, so that no weight can hide as 1 or 0."""
    model = build(name, input_shape=shape, num_classes=10, rng=0, **options).double().eval()
    with torch.no_grad():
        for seed, (key, tensor) in enumerate(model.state_dict().items()):
            if tensor.ndim == 1 and tensor.is_floating_point():
                tensor.copy_(drawn(*tensor.shape, seed=seed) * 0.2 + ("bias" not in key and "mean" not in key))
                if "var" in key:
                    tensor.abs_().add_(0.1)
    return model


@pytest.mark.parametrize(("name", "blocks"), [("preact-resnet18", (2, 2, 2, 2)), ("preact-resnet34", (3, 4, 6, 3))])
def test_preact_resnet_is_he_et_al_2016b_written_out(name: str, blocks: tuple[int, ...]) -> None:
    model = shaken(name, (3, 32, 32), width=4)
    assert isinstance(model, PreActResNet)
    tensors = iter(model.state_dict().items())

    def take() -> Tensor:
        key, tensor = next(tensors)
        return take() if "num_batches" in key else tensor

    def norm_relu(x: Tensor) -> Tensor:
        weight, bias, mean, var = (take()[:, None, None] for _ in range(4))
        return ((x - mean) / (var + 1e-5).sqrt() * weight + bias).clamp_min(0)

    x = drawn(2, 3, 32, 32)
    h = functional.conv2d(x, take(), padding=1)
    for stage, num in enumerate(blocks):
        for number in range(num):
            stride = 2 if stage and not number else 1
            active = norm_relu(h)
            inner = functional.conv2d(active, take(), stride=stride, padding=1)
            residual = functional.conv2d(norm_relu(inner), take(), padding=1)
            # The shortcut reads the activated input, which is the lineage's "important" detail.
            h = residual + (functional.conv2d(active, take(), stride=2) if stride == 2 else h)
    features = functional.avg_pool2d(norm_relu(h), 4).flatten(1)  # the lineage's pool on 32×32
    torch.testing.assert_close(model.features(x), features)
    torch.testing.assert_close(model(x), features @ take().T + take())
    assert [key for key, _ in tensors] == []


def test_preact_resnet_starts_as_the_lineage_does() -> None:
    model = build("preact-resnet18", input_shape=(3, 32, 32), num_classes=10, rng=0)
    assert isinstance(model, PreActResNet)
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            fan_out = module.out_channels * module.kernel_size[0] ** 2
            assert float(module.weight.detach().std()) == pytest.approx((2 / fan_out) ** 0.5, rel=0.05)
    assert model.head.bias.abs().max() == 0


def test_patches_are_cut_in_reading_order() -> None:
    x = drawn(2, 3, 8, 12)
    cut = patches(x, 4)
    assert cut.shape == (2, 6, 48)
    for token in range(6):
        row, column = divmod(token, 3)
        window = x[:, :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4]
        torch.testing.assert_close(cut[:, token], window.permute(0, 2, 3, 1).flatten(1))


def test_vit_is_its_formula_head_by_head() -> None:
    model = shaken("vit-s", (3, 8, 12), **{**SMALL, "head_width": 5})
    assert isinstance(model, ViT)
    x = drawn(2, 3, 8, 12)

    def norm(x: Tensor, layer: nn.LayerNorm) -> Tensor:
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * layer.weight + layer.bias

    def affine(x: Tensor, layer: nn.Linear) -> Tensor:
        return x @ layer.weight.T + (layer.bias if layer.bias is not None else 0)

    for n in range(2):
        tokens = norm(affine(norm(patches(x, 4)[n], model.embed[0]), model.embed[1]), model.embed[2])
        h = torch.cat([model.class_token[0], tokens]) + model.positions[0]
        for block in model.blocks:
            q, k, v = affine(norm(h, block.norm), block.qkv).chunk(3, dim=1)
            heads = []
            for number in range(3):
                part = slice(5 * number, 5 * number + 5)
                scores = torch.exp(q[:, part] @ k[:, part].T / 5**0.5)
                heads.append(scores / scores.sum(1, keepdim=True) @ v[:, part])
            h = h + affine(torch.cat(heads, 1), block.out[0])
            z = affine(norm(h, block.mlp[0]), block.mlp[1])
            h = h + affine(z * 0.5 * (1 + torch.erf(z / 2**0.5)), block.mlp[4])
        torch.testing.assert_close(model(x)[n], affine(norm(h[0], model.norm), model.head))


def test_blocks_of_vit_are_pytorchs_pre_norm_encoder_layers() -> None:
    model = shaken("vit-s", (3, 8, 8), **SMALL)
    assert isinstance(model, ViT)
    tokens = drawn(2, 5, 24)
    for block in model.blocks:
        peer = nn.TransformerEncoderLayer(
            24, 3, 40, dropout=0.0, activation="gelu", batch_first=True, norm_first=True, dtype=torch.float64
        ).train()  # in train mode it does not take its fused path
        with torch.no_grad():
            peer.self_attn.in_proj_weight.copy_(block.qkv.weight)
            peer.self_attn.in_proj_bias.zero_()
            peer.self_attn.out_proj.load_state_dict(block.out[0].state_dict())
            peer.norm1.load_state_dict(block.norm.state_dict())
            peer.norm2.load_state_dict(block.mlp[0].state_dict())
            peer.linear1.load_state_dict(block.mlp[1].state_dict())
            peer.linear2.load_state_dict(block.mlp[4].state_dict())
        torch.testing.assert_close(block(tokens), peer(tokens))


def test_second_derivatives_of_vit_are_those_of_finite_differences() -> None:
    model = shaken("vit-s", (3, 8, 8), **SMALL)
    parameters = list(model.parameters())
    direction = [drawn(*p.shape, seed=i) for i, p in enumerate(parameters)]
    x = drawn(2, 3, 8, 8)

    def gradient(create_graph: bool = False) -> tuple[Tensor, ...]:
        loss = functional.cross_entropy(model(x), torch.tensor([1, 7]))
        return torch.autograd.grad(loss, parameters, create_graph=create_graph)

    along = sum((g * v).sum() for g, v in zip(gradient(create_graph=True), direction, strict=True))
    exact = torch.autograd.grad(along, parameters)
    step = 1e-6
    ends = []
    for sign in (1, -1):
        with torch.no_grad():
            torch._foreach_add_(parameters, direction, alpha=sign * step)
        ends.append(gradient())
        with torch.no_grad():
            torch._foreach_add_(parameters, direction, alpha=-sign * step)
    for product, plus, minus in zip(exact, *ends, strict=True):
        difference = (plus - minus) / (2 * step)
        torch.testing.assert_close(product, difference, rtol=1e-4, atol=1e-5 * float(difference.abs().max()) + 1e-8)


def test_dropout_of_vit_acts_in_train_mode_only() -> None:
    model = build("vit-s", input_shape=(3, 8, 8), num_classes=10, rng=0, dropout=0.5, **SMALL)
    x = drawn(2, 3, 8, 8).float()
    assert torch.equal(model.eval()(x), model(x))
    model.train()
    torch.manual_seed(0)
    assert not torch.equal(model(x), model(x))
