"""Gaussian noise on every pixel, or on every coordinate of data that are not images.

Shapes: N examples, V values of an example, T entries of a table.
"""

import functools
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.data.draws import Draws
from evenly.device import upload
from evenly.errors import UsageError

_LEVELS = 1 << 16


@dataclass(frozen=True)
class PixelNoise:
    """x + σ·z with z ~ N(0, 1), independent for every pixel; images are clamped to [0, 1], other data are not.

    σ is in units of [0, 1] for images, which stay uint8 (noise is rounded to 1/255), and in those of the data for the
    rest. A quarter of a 64-bit word makes a pixel: z takes 65,536 values at equal steps of probability, the largest
    4.3. Words are whole numbers, so that every device sees the same noise.

    >>> x = torch.full((1, 1, 2, 2), 128, dtype=torch.uint8)
    >>> noisy = PixelNoise(0.2)(x, Draws(0, 0, torch.tensor([4])))
    >>> noisy.shape, noisy.dtype, bool((noisy != x).any())
    (torch.Size([1, 1, 2, 2]), torch.uint8, True)
    """

    sigma: float

    def __post_init__(self) -> None:
        if not 0 < self.sigma < float("inf"):
            raise UsageError(f"noise: σ must be above 0, not {self.sigma!r}; 0.2 is strong for images in [0, 1].")

    def __call__(self, x_NCHW: Tensor, draws: Draws) -> Tensor:
        """Each example with its own noise, of the type it came in."""
        num_values = x_NCHW[0].numel() if len(x_NCHW) else 0
        words_NW = draws.words("noise", -(-num_values // 4), device=x_NCHW.device)
        level_NV = words_NW.view(torch.int16)[:, :num_values].to(torch.int32).add_(_LEVELS // 2)
        if x_NCHW.dtype == torch.uint8:
            noise = _steps(self.sigma, x_NCHW.device).index_select(0, level_NV.flatten()).view(x_NCHW.shape)
            return noise.add_(x_NCHW).clamp_(0, 255).to(torch.uint8)
        value_T = _values(x_NCHW.dtype, x_NCHW.device)
        noise = value_T.index_select(0, level_NV.flatten()).view(x_NCHW.shape)
        return torch.add(x_NCHW, noise, alpha=self.sigma)

    def for_evaluation(self) -> None:
        """Nothing: evaluation sees the example as it is."""


@functools.lru_cache(maxsize=1)
def normals() -> Tensor:
    """Φ⁻¹((i + ½)/65536): the values a level stands for, each equally likely.

    >>> z = normals()
    >>> abs(float(z.mean())) < 1e-9, round(float(z.square().mean()), 3)
    (True, 1.0)
    """
    share_T = (torch.arange(_LEVELS, dtype=torch.float64) + 0.5) / _LEVELS
    value_T: Tensor = torch.special.ndtri(share_T)
    return value_T


@functools.lru_cache(maxsize=8)
def _steps(sigma: float, device: torch.device) -> Tensor:
    """The noise of every level in steps of a uint8 image, sent to the device once."""
    return upload((255 * sigma * normals()).round().clamp(-255, 255).to(torch.int16), device)


@functools.lru_cache(maxsize=8)
def _values(dtype: torch.dtype, device: torch.device) -> Tensor:
    return upload(normals().to(dtype), device)
