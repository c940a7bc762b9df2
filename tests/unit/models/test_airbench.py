"""The quick network: its filters against the images they are for, its pass against one written out."""

import pytest
import torch
from torch.nn.functional import batch_norm, conv2d, gelu, max_pool2d, unfold

from evenly.data import load
from evenly.errors import UsageError
from evenly.models import build
from evenly.models.airbench import whitening_filters


@pytest.mark.data("cifar10")
def test_filters_whiten_the_patches_of_real_images(data_root):
    images = load("cifar10", root=data_root).train.inputs[:2000].float()
    images = (images - images.mean((0, 2, 3), keepdim=True)) / images.std((0, 2, 3), keepdim=True)
    patches = unfold(images, 2).transpose(1, 2).reshape(-1, 12)
    whitened = patches @ whitening_filters(3)[:12].reshape(12, 12).T
    raw, white = (torch.linalg.eigvalsh(p.T @ p / len(p)) for p in (patches, whitened))
    assert raw.max() / raw.min() > 10_000
    assert white.min() > 0.6
    assert white.max() < 1.4


def test_filters_are_orthogonal_and_come_with_their_negatives():
    for channels in (1, 3):
        filters = whitening_filters(channels).flatten(1)
        half = filters[: len(filters) // 2]
        products = half @ half.T
        assert torch.allclose(products, products.diag().diag(), atol=1e-4)
        assert torch.equal(filters[len(half) :], -half)
        assert len(half) == half.shape[1]


def test_the_pass_is_the_one_that_its_description_gives():
    model = build("airbench", input_shape=(3, 13, 11), num_classes=4, rng=0, width=6).double()
    x = torch.randn(5, 3, 13, 11, dtype=torch.float64)
    state = model.state_dict()
    out = gelu(conv2d(x, whitening_filters(3).double(), state["body.0.bias"]))
    for group in (2, 3, 4):

        def normalised(z, layer, group=group):
            scale, shift = (state[f"body.{group}.{layer}.{name}"] for name in ("weight", "bias"))
            return gelu(batch_norm(z, None, None, scale, shift, training=True))

        out = normalised(max_pool2d(conv2d(out, state[f"body.{group}.0.weight"], padding=1), 2), 2)
        out = normalised(conv2d(out, state[f"body.{group}.4.weight"], padding=1), 5)
    by_hand = out.amax((2, 3)) / 9 @ state["head.weight"].T
    torch.testing.assert_close(model.train()(x), by_hand)


def test_convolutions_begin_by_passing_their_input_on():
    model = build("airbench", input_shape=(3, 16, 16), num_classes=2, rng=0, width=32)
    x = torch.randn(1, 24, 9, 9)
    first = model.body[2][0]
    assert torch.equal(first(x)[:, :24], x)


def test_only_the_bias_of_the_first_layer_is_learned():
    model = build("airbench", input_shape=(3, 32, 32), num_classes=10, rng=0)
    assert [name for name, _ in model.body[0].named_parameters()] == ["bias"]


def test_other_channels_are_refused():
    with pytest.raises(UsageError, match="1 or 3 channels, not 4"):
        build("airbench", input_shape=(4, 32, 32), num_classes=10, rng=0)
