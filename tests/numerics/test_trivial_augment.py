"""TrivialAugment against two oracles: Pillow's own operations, and torchvision's TrivialAugmentWide.

Pillow: all operations to the bit, but autocontrast, which may be one higher than Pillow and never lower.
torchvision on tensors: brightness, posterize, solarize, equalize, shears and translations to the bit; colour,
contrast, sharpness and autocontrast within one; rotation but for pixels whose source lies on a pixel's edge.
"""

import runpy
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageEnhance, ImageOps

from evenly.data.draws import Draws
from evenly.data.trivial_augment import BLENDS, MOVES, OPERATIONS, TrivialAugment, apply, strengths
from evenly.errors import UsageError

TORCHVISION = runpy.run_path(str(Path(__file__).with_name("torchvision_guard.py")))["torchvision"]()
needs_torchvision = pytest.mark.skipif(TORCHVISION is None, reason="torchvision is not installed")
SHAPES = [(3, 32, 32), (1, 32, 32), (3, 21, 28), (1, 64, 32), (3, 2, 2)]


def photographs(num: int, channels: int, height: int, width: int) -> torch.Tensor:
    """Smooth images with edges and a full range of values, as photographs have; one flat, one of two values."""
    draw = torch.Generator().manual_seed(channels * height * width)
    coarse = torch.rand(num, channels, 4, 4, generator=draw) * 300 - 20
    x = torch.nn.functional.interpolate(coarse, (height, width), mode="bicubic")
    x += 12 * torch.randn(x.shape, generator=draw)
    x[0], x[1] = 77, (x[1] > 128) * 200.0 + 11
    return x.clamp(0, 255).to(torch.uint8)


def all_strengths(operation: str) -> list[float]:
    row = strengths(31)[OPERATIONS.index(operation)].unique().tolist()
    return row + [-strength for strength in row if strength] if operation in MOVES + BLENDS else row


def ours(x: torch.Tensor, operation: str, strength: float) -> torch.Tensor:
    return apply(
        x, torch.full((len(x),), OPERATIONS.index(operation)), torch.full((len(x),), strength, dtype=torch.float64)
    )


def by_pillow(x: torch.Tensor, operation: str, strength: float) -> torch.Tensor:
    image = Image.fromarray(x[0].numpy() if len(x) == 1 else x.permute(1, 2, 0).numpy())

    def moved(*numbers: float) -> Image.Image:
        return image.transform(image.size, Image.Transform.AFFINE, numbers, Image.Resampling.NEAREST)

    oracle = {
        "identity": lambda s: image,
        "shear-x": lambda s: moved(1, s, 0, 0, 1, 0),
        "shear-y": lambda s: moved(1, 0, 0, s, 1, 0),
        "translate-x": lambda s: moved(1, 0, -int(s), 0, 1, 0),
        "translate-y": lambda s: moved(1, 0, 0, 0, 1, -int(s)),
        "rotate": lambda s: image.rotate(s),
        "brightness": lambda s: ImageEnhance.Brightness(image).enhance(1 + s),
        "colour": lambda s: ImageEnhance.Color(image).enhance(1 + s),
        "contrast": lambda s: ImageEnhance.Contrast(image).enhance(1 + s),
        "sharpness": lambda s: ImageEnhance.Sharpness(image).enhance(1 + s),
        "posterize": lambda s: ImageOps.posterize(image, int(s)),
        "solarize": lambda s: ImageOps.solarize(image, s),
        "autocontrast": lambda s: ImageOps.autocontrast(image),
        "equalize": lambda s: ImageOps.equalize(image),
    }
    out = torch.from_numpy(np.array(oracle[operation](strength)))
    return out[None] if len(x) == 1 else out.permute(2, 0, 1)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_equals_pillow_at_every_strength(operation, shape):
    x = photographs(4, *shape)
    for strength in all_strengths(operation):
        expected = torch.stack([by_pillow(image, operation, strength) for image in x])
        higher = ours(x, operation, strength).int() - expected.int()
        if operation == "autocontrast":
            assert higher.unique().tolist() in ([0], [0, 1])
        else:
            assert (higher == 0).all(), f"{operation} {strength}: off by up to {higher.abs().max()}"


def test_autocontrast_is_the_exact_quotient_rounded_down():
    for low, high in [(0, 255), (3, 200), (17, 18), (40, 91), (9, 9)]:
        x = torch.arange(low, high + 1, dtype=torch.uint8).view(1, 1, 1, -1)
        exact = [255 * (v - low) // (high - low) if high > low else v for v in range(low, high + 1)]
        assert ours(x, "autocontrast", 0.0).flatten().tolist() == exact


WITHIN_ONE = ("colour", "contrast", "sharpness", "autocontrast")
THEIR_NAMES = {name: "".join(word.title() for word in name.split("-")) for name in OPERATIONS} | {
    "colour": "Color", "autocontrast": "AutoContrast",
}  # fmt: skip


@needs_torchvision
@pytest.mark.parametrize("shape", [(3, 32, 32), (1, 32, 32)], ids=str)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operation_matches_torchvision_on_tensors(operation, shape):
    from torchvision.transforms import InterpolationMode, autoaugment

    x = photographs(3, *shape)
    for strength in all_strengths(operation)[::3]:
        theirs = autoaugment._apply_op(x, THEIR_NAMES[operation], strength, InterpolationMode.NEAREST, None)
        off = (ours(x, operation, strength).int() - theirs.int()).abs()
        if operation == "rotate":
            assert (off > 0).float().mean() < 0.01
        else:
            assert off.max() <= (1 if operation in WITHIN_ONE else 0)


@needs_torchvision
def test_space_of_strengths_is_that_of_torchvision():
    from torchvision.transforms.autoaugment import TrivialAugmentWide

    for bins in (31, 11):
        theirs = TrivialAugmentWide()._augmentation_space(bins)
        assert sorted(theirs) == sorted(THEIR_NAMES.values())
        for row, name in zip(strengths(bins), OPERATIONS, strict=True):
            values, signed = theirs[THEIR_NAMES[name]]
            assert torch.allclose(row.float(), values.float().expand(bins), atol=1e-4)
            assert signed == (name in MOVES + BLENDS)


def test_every_operation_strength_and_sign_is_drawn_equally_often():
    operation, strength = TrivialAugment().choices(Draws(0, 0, torch.arange(28_000)))
    counts = torch.bincount(operation, minlength=14).float()
    assert (counts - 2000).square().sum() / 2000 < 41  # χ², 13 degrees of freedom: p = 0.0001
    rotations = strength[operation == OPERATIONS.index("rotate")]
    bins = torch.bincount((rotations.abs() / 4.5).round().long(), minlength=31).float()
    expected = len(rotations) / 31
    assert len(bins) == 31
    assert (bins - expected).square().sum() / expected < 66  # 30 degrees of freedom: p = 0.0002
    assert abs((rotations < 0).float().mean() - 0.5 * 30 / 31) < 0.05
    unsigned = strength[~torch.isin(operation, torch.tensor([OPERATIONS.index(name) for name in MOVES + BLENDS]))]
    assert (unsigned >= 0).all()


def test_each_image_of_a_batch_gets_its_own_operation_and_strength():
    x = photographs(200, 3, 16, 16)
    operation, strength = TrivialAugment().choices(Draws(0, 0, torch.arange(200)))
    mixed = apply(x, operation, strength)
    for i in range(200):
        assert torch.equal(mixed[i], ours(x[i : i + 1], OPERATIONS[operation[i]], strength[i].item())[0])


def test_two_channels_are_refused():
    with pytest.raises(UsageError, match="1 or 3 channels, not 2"):
        TrivialAugment()(torch.zeros(1, 2, 4, 4, dtype=torch.uint8), Draws(0, 0, torch.arange(1)))
