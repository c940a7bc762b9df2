"""Augmentation: what each transform does, and that it depends on (seed, epoch, index, copy) alone."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.nn import functional

from evenly.data.augment import (
    Augmentation,
    Erase,
    Mirror,
    Normalise,
    PadCrop,
    PixelNoise,
    RandomResizedCrop,
    Resize,
    TrivialAugment,
)
from evenly.data.crops import resized_boxes
from evenly.data.draws import Draws
from evenly.data.labelled import Labelled
from evenly.errors import UsageError

TRANSFORMS = [
    PadCrop(4), Mirror(), Resize((11, 20)), RandomResizedCrop(12, scale=(0.2, 1.0)), TrivialAugment(), PixelNoise(0.2),
    Erase(),
]  # fmt: skip


def images(num: int, *, channels: int = 3, height: int = 16, width: int = 14) -> torch.Tensor:
    draw = torch.Generator().manual_seed(num)
    return torch.randint(0, 256, (num, channels, height, width), dtype=torch.uint8, generator=draw)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: type(t).__name__)
def test_an_image_comes_out_the_same_in_any_batch(transform):
    x, index, copy = images(64), torch.arange(100, 164), torch.arange(64) % 2
    whole = transform(x, Draws(3, 5, index, copy))
    shuffled = torch.randperm(64, generator=torch.Generator().manual_seed(0))
    again = transform(x[shuffled], Draws(3, 5, index[shuffled], copy[shuffled]))
    assert torch.equal(whole[shuffled], again)
    for i in (0, 1, 17, 63):
        one = transform(x[i : i + 1], Draws(3, 5, index[i : i + 1], copy[i : i + 1]))
        assert torch.equal(whole[i : i + 1], one)


@pytest.mark.parametrize(
    "transform", [t for t in TRANSFORMS if t != t.for_evaluation()], ids=lambda t: type(t).__name__
)
def test_seed_epoch_index_and_copy_each_change_the_augmentation(transform):
    x, index = images(1).expand(64, -1, -1, -1).contiguous(), torch.arange(64)
    first = transform(x, Draws(0, 0, index))
    assert len({image.numpy().tobytes() for image in first}) > 1
    assert not torch.equal(first, transform(x, Draws(1, 0, index)))
    assert not torch.equal(first, transform(x, Draws(0, 1, index)))
    assert not torch.equal(first, transform(x, Draws(0, 0, index, torch.ones(64, dtype=torch.int64))))


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: type(t).__name__)
def test_transforms_leave_their_input_and_the_global_generator_alone(transform):
    x = images(8)
    before, state = x.clone(), torch.get_rng_state()
    transform(x, Draws(0, 0, torch.arange(8)))
    assert torch.equal(x, before)
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: type(t).__name__)
def test_an_empty_batch_stays_empty(transform):
    assert len(transform(images(4)[:0], Draws(0, 0, torch.arange(0)))) == 0


@pytest.mark.parametrize("transform", TRANSFORMS, ids=lambda t: type(t).__name__)
def test_a_transposed_memory_layout_gives_the_same_images(transform):
    x, draws = images(6), Draws(0, 0, torch.arange(6))
    strided = x.to(memory_format=torch.channels_last)
    assert torch.equal(transform(strided, draws), transform(x, draws))


def test_first_copy_does_not_depend_on_a_second():
    augment, x = Augmentation(PadCrop(4), Mirror(), TrivialAugment()), images(32)
    alone = augment(x, seed=0, epoch=0, index=torch.arange(32))
    twice = augment(
        torch.cat([x, x]), seed=0, epoch=0, index=torch.arange(32).repeat(2), copy=torch.arange(2).repeat_interleave(32)
    )
    assert torch.equal(twice[:32], alone)
    assert not torch.equal(twice[32:], alone)


def test_pad_crop_is_a_window_of_the_padded_image_and_every_shift_is_equally_likely():
    x = images(1, height=9, width=7).expand(4000, -1, -1, -1).contiguous()
    out = PadCrop(2)(x, Draws(0, 0, torch.arange(4000)))
    padded = functional.pad(x[0], (2, 2, 2, 2))
    windows = [padded[:, top : top + 9, left : left + 7] for top in range(5) for left in range(5)]
    counts = torch.tensor([(out == window).flatten(1).all(1).sum().item() for window in windows])
    assert counts.sum() == 4000
    assert (counts - 160).square().sum() / 160 < 56  # χ², 24 degrees of freedom: p = 0.0002


def test_pad_crop_of_nothing_is_the_identity():
    x = images(3)
    assert torch.equal(PadCrop(0)(x, Draws(0, 0, torch.arange(3))), x)


@pytest.mark.parametrize("width", [14, 5])  # a whole number of 64-bit words per image, and not
def test_mirror_flips_the_asked_share_of_images_left_to_right(width):
    x = images(1, height=16 if width == 14 else 5, width=width).expand(4000, -1, -1, -1).contiguous()
    out = Mirror(0.25)(x, Draws(0, 0, torch.arange(4000)))
    flipped = (out == x.flip(-1)).flatten(1).all(1)
    assert (out[~flipped] == x[0]).all()
    assert abs(flipped.float().mean() - 0.25) < 0.03


@pytest.mark.parametrize("size", [(12, 12), (40, 9), (5, 30), (3, 3)])
def test_resized_boxes_match_interpolation_of_the_crop(size):
    x = images(6, height=24, width=30)
    boxes = [(0, 0, 24, 30), (3, 5, 12, 12), (23, 0, 1, 30), (10, 10, 2, 3), (0, 29, 24, 1), (1, 1, 20, 7)]
    ours = resized_boxes(x, *torch.tensor(boxes).T, size=size)
    for i, (top, left, h, w) in enumerate(boxes):
        crop = x[i, :, top : top + h, left : left + w]
        exact = functional.interpolate(crop[None].double(), size, mode="bilinear", antialias=True)[0]
        assert (ours[i] - exact).abs().max() <= 1.3  # two roundings to whole pixels, and weights in steps of 1/2048
        pillow = Image.fromarray(crop.permute(1, 2, 0).numpy()).resize(size[::-1], Image.Resampling.BILINEAR)
        assert np.abs(np.asarray(pillow).astype(int).transpose(2, 0, 1) - ours[i].numpy()).max() <= 1


def test_resize_to_the_same_size_changes_nothing_and_a_flat_image_stays_flat():
    x, draws = images(3), Draws(0, 0, torch.arange(3))
    assert torch.equal(Resize((16, 14))(x, draws), x)
    assert (Resize(5)(torch.full_like(x, 201), draws) == 201).all()


def test_resized_crop_boxes_have_the_asked_areas_and_aspects_and_lie_inside():
    crop = RandomResizedCrop(8, scale=(0.3, 0.6))
    top, left, h, w = crop.boxes(200, 240, Draws(0, 0, torch.arange(5000)))
    assert (top >= 0).all()
    assert (left >= 0).all()
    assert (top + h <= 200).all()
    assert (left + w <= 240).all()
    area, aspect = (h * w) / (200 * 240), w / h
    assert 0.29 < area.min() < 0.31
    assert 0.59 < area.max() < 0.61
    assert abs(area.mean() - 0.45) < 0.01
    assert 0.74 < aspect.min() < 0.76
    assert 1.32 < aspect.max() < 1.35
    assert abs(aspect.log().mean()) < 0.01
    assert abs((top / (200 - h).clamp_min(1)).mean() - 0.5) < 0.02


def test_resized_crop_takes_the_central_box_where_none_fits():
    top, left, h, w = RandomResizedCrop(8, scale=(1.0, 1.0)).boxes(10, 100, Draws(0, 0, torch.arange(3)))
    assert (top == 0).all()
    assert (h == 10).all()
    assert (w == 13).all()  # 10 · 4/3
    assert (left == (100 - 13) // 2).all()


@pytest.mark.parametrize("lazy_chunk", [5, 3000])
def test_normalise_fits_the_mean_and_deviation_of_each_channel(lazy_chunk):
    data = Labelled(images(lazy_chunk), torch.zeros(lazy_chunk, dtype=torch.int64), ("one",))
    fitted = Normalise.fit(data)
    pixels = data.inputs.double() / 255
    assert fitted.mean == pytest.approx(pixels.mean((0, 2, 3)).tolist(), rel=1e-6)
    assert fitted.std == pytest.approx(pixels.std((0, 2, 3), correction=0).tolist(), rel=1e-6)
    out = fitted(pixels.float())
    assert out.mean((0, 2, 3)).abs().max() < 1e-4
    assert (out.std((0, 2, 3)) - 1).abs().max() < 2e-3
    assert Normalise.fit(data, kind="mean").std == (1.0, 1.0, 1.0)


def test_normalise_keeps_its_input_and_refuses_other_channels():
    x = torch.ones(2, 3, 4, 4)
    Normalise((0.5,) * 3, (2.0,) * 3)(x)
    assert (x == 1).all()
    with pytest.raises(UsageError, match=r"made for 3 channels, not for data of shape \(2, 1, 4, 4\)"):
        Normalise((0.5,) * 3, (2.0,) * 3)(x[:, :1])


def test_words_build_the_same_augmentation_as_classes():
    data = Labelled(images(9), torch.zeros(9, dtype=torch.int64), ("one",))
    spec = ["resized-crop:8x6,0.5,0.9", "pad-crop:2", "mirror:0.3", "trivial:11", "normalise:mean"]
    built = Augmentation(
        RandomResizedCrop((8, 6), scale=(0.5, 0.9)), PadCrop(2), Mirror(0.3), TrivialAugment(11),
        Normalise.fit(data, kind="mean"),
    )  # fmt: skip
    assert Augmentation.parse(spec, data=data) == built
    out = built(data.inputs, seed=0, epoch=0, index=data.index)
    assert out.dtype == torch.float32
    assert out.shape == (9, 3, 8, 6)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (["pad-corp:4"], "unknown transform 'pad-corp'. Did you mean 'pad-crop'?"),
        (["pad-crop:4,5"], r"cannot read 'pad-crop:4,5'. Write pad-crop\[:PIXELS\]"),
        (["mirror:often"], "cannot read 'mirror:often'"),
        (["mirror:"], "cannot read 'mirror:'"),
        (["mirror:1.5"], "probability must lie in 0..1, not 1.5"),
        (["resized-crop"], "cannot read 'resized-crop'"),
        (["resized-crop:32,0.9,0.5"], r"scale must be two shares .* not \(0.9, 0.5\)"),
        (["resize:0"], "size must be one or two whole numbers of pixels ≥ 1, not 0"),
        (["pad-crop:-1"], "not -1"),
        (["trivial:1"], "≥ 2, not 1"),
        (["noise:2x3"], "cannot read 'noise:2x3'. Write noise:SIGMA"),
        (["mirror:2x2"], "cannot read 'mirror:2x2'"),
        (["erase:1x1"], "cannot read 'erase:1x1'"),
        (["resize:1.5"], "cannot read 'resize:1.5'. Write resize:SIZE or resize:HEIGHTxWIDTH"),
        (["resized-crop:8,1x1"], "cannot read 'resized-crop:8,1x1'"),
        (["normalise"], "needs data to fit"),
        ("mirror", r"'mirror' is one word: give a list of them, \['mirror'\]"),
        (["resize:64", "resized-crop:32"], "resize and resized-crop both decide the size of images: give one of them"),
        (["mirror", "mirror"], "each transform may be used only once"),
    ],
)
def test_words_that_cannot_be_meant_are_refused(spec, message):
    with pytest.raises(UsageError, match=message):
        Augmentation.parse(spec)


def test_normalisation_kind_is_suggested_and_its_place_is_last():
    data = Labelled(images(2), torch.zeros(2, dtype=torch.int64), ("one",))
    with pytest.raises(UsageError, match=r"unknown kind 'standart'\. Did you mean 'standard'\?"):
        Augmentation.parse(["normalise:standart"], data=data)
    with pytest.raises(UsageError, match="as the last transform"):
        Augmentation.parse(["normalise", "mirror"], data=data)


def test_data_that_are_not_images_can_be_normalised_but_not_mirrored():
    x, index = torch.tensor([[1.0, 2.0]]), torch.arange(1)
    normalise = Augmentation(Normalise((1.0, 1.0), (1.0, 2.0)))
    assert normalise(x, seed=0, epoch=0, index=index).tolist() == [[0.0, 0.5]]
    with pytest.raises(UsageError, match=r"mirror works on uint8 images N×C×H×W, not on float32 of shape \(1, 2\)"):
        Augmentation(Mirror())(x, seed=0, epoch=0, index=index)


def test_evaluation_keeps_what_is_not_random():
    normalise = Normalise((0.5,) * 3, (0.2,) * 3)
    training = Augmentation(RandomResizedCrop(8), Mirror(), TrivialAugment(), normalise)
    assert training.evaluation == Augmentation(Resize(8), normalise)
