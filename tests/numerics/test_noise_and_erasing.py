"""Pixel noise against the normal distribution and closed forms; erasing against torchvision and its mean area."""

import math
import runpy
from pathlib import Path

import pytest
import torch
from scipy import stats

from evenly.data.augment import Augmentation, Erase, PixelNoise
from evenly.data.draws import Draws
from evenly.errors import UsageError

TORCHVISION = runpy.run_path(str(Path(__file__).with_name("torchvision_guard.py")))["torchvision"]()
NUM = 4_000


def noise_on(level: int, sigma: float) -> torch.Tensor:
    x = torch.full((NUM, 3, 4, 5), level, dtype=torch.uint8)
    return (PixelNoise(sigma)(x, Draws(0, 1, torch.arange(NUM))).double() - level) / 255


def test_noise_has_the_moments_of_a_normal_distribution() -> None:
    z = noise_on(128, 0.1).flatten() / 0.1
    num = len(z)
    rounding = 1 / (12 * (25.5) ** 2)  # of values rounded to steps of 1/255
    assert float(z.mean()) == pytest.approx(0, abs=5 / num**0.5)
    assert float(z.var()) == pytest.approx(1 + rounding, abs=5 * (2 / num) ** 0.5)
    assert float((z**3).mean()) == pytest.approx(0, abs=5 * (15 / num) ** 0.5)
    assert float((z**4).mean()) == pytest.approx(3, abs=5 * (96 / num) ** 0.5)


def test_noise_on_floats_passes_a_kolmogorov_smirnov_test_and_is_not_clamped() -> None:
    x = torch.zeros(NUM, 10)
    noisy = PixelNoise(2.0)(x, Draws(0, 1, torch.arange(NUM)))
    assert noisy.dtype == torch.float32
    assert stats.kstest(noisy.flatten().numpy(), "norm", args=(0, 2)).pvalue > 1e-3
    assert float(noisy.abs().max()) > 5


def test_noise_on_black_has_the_mean_of_the_positive_part_of_a_normal() -> None:
    """E max(0, σz) = σ/√(2π)."""
    found = noise_on(0, 0.2)
    assert float(found.min()) == 0
    assert float(found.mean()) == pytest.approx(0.2 / math.sqrt(2 * math.pi), rel=0.01)


def test_noise_is_independent_from_pixel_to_pixel_image_to_image_and_copy_to_copy() -> None:
    z = noise_on(128, 0.1).flatten(1) / 0.1
    across = z.T.corrcoef() - torch.eye(z.shape[1])
    assert float(across.abs().max()) < 5 / NUM**0.5
    assert abs(float((z[1:] * z[:-1]).mean())) < 5 / z.numel() ** 0.5
    x = torch.full((NUM, 1, 1, 8), 128, dtype=torch.uint8)
    first, second = (
        PixelNoise(0.1)(x, Draws(0, 1, torch.arange(NUM), torch.full((NUM,), copy))).double() - 128 for copy in (0, 1)
    )
    assert abs(float((first * second).mean() / 25.5**2)) < 5 / x.numel() ** 0.5


@pytest.mark.parametrize("shape", [(32, 32), (16, 8), (28, 40)])
def test_erased_rectangles_are_distributed_as_those_of_torchvision(shape: tuple[int, int]) -> None:
    if TORCHVISION is None:
        pytest.skip("torchvision is not installed")
    from torchvision.transforms import RandomErasing

    image = torch.zeros(1, *shape)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        theirs = torch.tensor(
            [RandomErasing.get_params(image, scale=(0.02, 0.33), ratio=(0.3, 3.3), value=[0.0])[:4] for _ in range(NUM)]
        )
    ours = torch.stack(Erase(1.0).boxes(*shape, Draws(0, 0, torch.arange(NUM))), dim=1)
    # theirs: top, left, height, width, as ours.
    for column in range(4):
        assert stats.ks_2samp(ours[:, column].numpy(), theirs[:, column].numpy()).pvalue > 1e-3
    area = (ours[:, 2] * ours[:, 3]).numpy(), (theirs[:, 2] * theirs[:, 3]).numpy()
    assert stats.ks_2samp(*area).pvalue > 1e-3


def test_the_erased_share_is_the_probability_times_the_mean_of_the_scale() -> None:
    """With small rectangles every first try fits: E[area share] = p · (low + high)/2."""
    num = 1_500
    x = torch.full((num, 2, 48, 48), 200, dtype=torch.uint8)
    out = Erase(0.7, scale=(0.05, 0.15), value=7)(x, Draws(0, 0, torch.arange(num)))
    assert torch.equal(out[:, 0], out[:, 1])
    assert bool(((out == 7) | (out == 200)).all())
    gone = out[:, 0] == 7
    erased_N = gone.flatten(1).sum(1).double() / 48**2
    five_sigma = 5 * float(erased_N.std()) / num**0.5
    assert float(erased_N.mean()) == pytest.approx(0.7 * 0.1, abs=five_sigma)
    assert float((erased_N > 0).double().mean()) == pytest.approx(0.7, abs=5 * (0.21 / num) ** 0.5)
    # A rectangle: as many erased pixels as rows times columns that have one.
    assert torch.equal(gone.sum((1, 2)), gone.any(2).sum(1) * gone.any(1).sum(1))


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("noise", "cannot read 'noise'. Write noise:SIGMA"),
        ("noise:0", "σ must be above 0, not 0"),
        ("noise:-1", "σ must be above 0"),
        ("erase:2", "probability must lie in 0..1, not 2"),
        ("erase:0.5,0.4,0.1", "two shares of the area"),
        ("erase:0.5,0.1,0.2,999", "grey level from 0 to 255"),
    ],
)
def test_settings_that_cannot_be_meant_are_refused(word: str, message: str) -> None:
    with pytest.raises(UsageError, match=message.replace("[", r"\[")):
        Augmentation.parse([word])


def test_words_make_the_transforms_they_name() -> None:
    assert Augmentation.parse(["noise:0.2", "erase:0.3,0.1,0.2,9"]).transforms == (
        PixelNoise(0.2),
        Erase(0.3, scale=(0.1, 0.2), value=9),
    )
    assert Augmentation.parse(["erase"]).evaluation.transforms == ()
