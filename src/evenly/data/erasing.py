"""Random erasing: a rectangle of each image made black.

Shapes: N images, C channels, H × W pixels, T tries.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.data.draws import Draws, check_images, whole_below
from evenly.device import upload
from evenly.errors import UsageError

_TRIES = 10


@dataclass(frozen=True)
class Erase:
    """With the given probability, erase a rectangle of random area, aspect and place (Zhong et al., 2020).

    The share of the area is uniform in `scale`, the aspect height/width log-uniform in `ratio`, the place uniform among
    those where it fits; up to ten rectangles are drawn until one is smaller than the image in both directions, else
    nothing is erased (as in torchvision). `value`, 0 to 255, fills it.

    >>> x = torch.full((1, 1, 8, 8), 9, dtype=torch.uint8)
    >>> erased = Erase(1.0, scale=(0.25, 0.25), ratio=(1.0, 1.0))(x, Draws(0, 0, torch.tensor([0])))
    >>> int((erased == 0).sum())
    16
    """

    probability: float = 0.5
    scale: tuple[float, float] = (0.02, 0.33)
    ratio: tuple[float, float] = (0.3, 3.3)
    value: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise UsageError(f"erase: the probability must lie in 0..1, not {self.probability!r}.")
        if not 0 < self.scale[0] <= self.scale[1] < 1:
            raise UsageError(f"erase: scale must be two shares of the area 0 < low ≤ high < 1, not {self.scale!r}.")
        if not 0 < self.ratio[0] <= self.ratio[1]:
            raise UsageError(f"erase: ratio must be two aspects 0 < low ≤ high, not {self.ratio!r}.")
        if self.value not in range(256):
            raise UsageError(f"erase: value must be a grey level from 0 to 255, not {self.value!r}.")

    def __call__(self, x_NCHW: Tensor, draws: Draws) -> Tensor:
        """Each image, with its rectangle erased if `draws` says so."""
        check_images(x_NCHW, "erase")
        height, width = x_NCHW.shape[-2:]
        top_N, left_N, h_N, w_N = upload(torch.stack(self.boxes(height, width, draws)), x_NCHW.device)
        row_H, column_W = (torch.arange(length, device=x_NCHW.device) for length in (height, width))
        rows_NH = (row_H >= top_N[:, None]) & (row_H < (top_N + h_N)[:, None])
        columns_NW = (column_W >= left_N[:, None]) & (column_W < (left_N + w_N)[:, None])
        inside_N1HW = (rows_NH[:, :, None] & columns_NW[:, None, :])[:, None]
        return x_NCHW.masked_fill(inside_N1HW, self.value)

    def boxes(self, height: int, width: int, draws: Draws) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The rectangle of each image: top, left, height and width; height 0 where nothing is erased."""
        u_NK = draws.uniform("erase", 2 * _TRIES + 3).to(torch.float64)
        low, high = self.scale
        area_NT = height * width * (low + (high - low) * u_NK[:, :_TRIES])
        low, high = map(math.log, self.ratio)
        aspect_NT = (low + (high - low) * u_NK[:, _TRIES : 2 * _TRIES]).exp()
        h_NT = (area_NT * aspect_NT).sqrt().round().to(torch.int64)
        w_NT = (area_NT / aspect_NT).sqrt().round().to(torch.int64)
        fits_NT = (h_NT < height) & (w_NT < width)
        first_N1 = fits_NT.int().argmax(1, keepdim=True)
        h_N, w_N = h_NT.gather(1, first_N1)[:, 0], w_NT.gather(1, first_N1)[:, 0]
        erased_N = fits_NT.any(1) & (u_NK[:, -3] < self.probability)
        h_N = torch.where(erased_N, h_N, 0)
        top_N = whole_below(u_NK[:, -2], (height - h_N + 1))
        left_N = whole_below(u_NK[:, -1], (width - w_N + 1).clamp_min(1))
        return top_N, left_N, h_N, w_N

    def for_evaluation(self) -> None:
        """Nothing: evaluation sees the image as it is."""
