"""Transforms that move or resize whole images: pad-crop, mirror, resize, random resized crop.

Each works on a whole batch at once. N images, C channels, H × W pixels.
"""

import functools
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from evenly.data.draws import Draws, as_words, check_images, whole_below
from evenly.device import upload
from evenly.errors import UsageError

Size = int | tuple[int, int]


@dataclass(frozen=True)
class PadCrop:
    """Shift each image by up to ±`padding` pixels in both directions; what enters is black.

    The same as padding with zeros and cropping back at a random place.

    >>> x = torch.full((1, 1, 8, 8), 9, dtype=torch.uint8)
    >>> PadCrop(2)(x, Draws(0, 0, torch.tensor([4]))).shape
    torch.Size([1, 1, 8, 8])
    """

    padding: int = 4

    def __post_init__(self) -> None:
        if not isinstance(self.padding, int) or self.padding < 0:
            raise UsageError(f"pad-crop: padding must be a whole number of pixels ≥ 0, not {self.padding!r}.")

    def __call__(self, x_NCHW: Tensor, draws: Draws) -> Tensor:
        """Each image, shifted by random numbers from `draws`."""
        check_images(x_NCHW, "pad-crop")
        where_N2 = whole_below(draws.uniform("pad-crop", 2), 2 * self.padding + 1)
        return shifted_windows(x_NCHW, where_N2[:, 0], where_N2[:, 1], self.padding)

    def for_evaluation(self) -> None:
        """Nothing: evaluation sees the image as it is."""


def shifted_windows(x_NCHW: Tensor, top_N: Tensor, left_N: Tensor, padding: int) -> Tensor:
    """Pad each image with zeros and cut its window of the old size at (top, left) of the padded image.

    Rows of the windows are runs of W bytes in the padded batch. Seen through an overlapping view whose row i is
    the run that begins at byte i, cropping is one `index_select`, which copies runs rather than pixels: four
    times faster than advanced indexing of unfolded windows.

    >>> shifted_windows(torch.tensor([[[[1, 2], [3, 4]]]]), torch.tensor([2]), torch.tensor([1]), 1).tolist()
    [[[[3, 4], [0, 0]]]]
    """
    num, channels, height, width = x_NCHW.shape
    tall, wide = height + 2 * padding, width + 2 * padding
    padded = x_NCHW.new_zeros(num, channels, tall, wide)
    padded[:, :, padding : padding + height, padding : padding + width] = x_NCHW
    runs = padded.as_strided((max(padded.numel() - width + 1, 0), width), (1, 1))
    row_NR = _rows(num, channels, height, tall, wide)
    starts = (row_NR + torch.add(left_N, top_N, alpha=wide)[:, None]).view(-1)
    return runs.index_select(0, upload(starts, x_NCHW.device)).view(x_NCHW.shape)


@functools.lru_cache(maxsize=4)
def _rows(num: int, channels: int, height: int, tall: int, wide: int) -> Tensor:
    """Where the first `height` rows of each channel of each padded image begin."""
    return ((torch.arange(num * channels) * tall).view(num, channels, 1) + torch.arange(height)).mul_(wide).flatten(1)


@dataclass(frozen=True)
class Mirror:
    """Mirror each image left to right with the given probability.

    >>> x = torch.tensor([[[[1, 2, 3]]]], dtype=torch.uint8)
    >>> Mirror(1.0)(x, Draws(0, 0, torch.tensor([0]))).flatten().tolist()
    [3, 2, 1]
    """

    probability: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise UsageError(f"mirror: the probability must lie in 0..1, not {self.probability!r}.")

    def __call__(self, x_NCHW: Tensor, draws: Draws) -> Tensor:
        """Each image, mirrored if `draws` says so."""
        check_images(x_NCHW, "mirror")
        where_M = upload((draws.uniform("mirror", 1)[:, 0] < self.probability).nonzero()[:, 0], x_NCHW.device)
        out_NCHW = x_NCHW.clone(memory_format=torch.contiguous_format)
        flipped_MCHW = x_NCHW.index_select(0, where_M).flip(-1).contiguous()
        as_words(out_NCHW).index_copy_(0, where_M, as_words(flipped_MCHW))
        return out_NCHW

    def for_evaluation(self) -> None:
        """Nothing: evaluation sees the image as it is."""


@dataclass(frozen=True)
class Resize:
    """Resize images to `size` (one number, or height and width): bilinear, antialiased when shrinking.

    >>> x = torch.arange(16, dtype=torch.uint8).view(1, 1, 4, 4)
    >>> Resize(2)(x, Draws(0, 0, torch.tensor([0]))).flatten().tolist()
    [4, 5, 10, 11]
    """

    size: Size

    def __post_init__(self) -> None:
        _pair(self.size, "resize")

    def __call__(self, x_NCHW: Tensor, draws: Draws) -> Tensor:
        """Each image at the new size; nothing is drawn."""
        check_images(x_NCHW, "resize")
        num, _, height, width = x_NCHW.shape
        whole = [torch.full((num,), length) for length in (0, 0, height, width)]
        return resized_boxes(x_NCHW, *whole, size=_pair(self.size, "resize"))

    def for_evaluation(self) -> "Resize":
        """Itself, since nothing about it is random."""
        return self


@dataclass(frozen=True)
class RandomResizedCrop:
    """Cut a box of random area and aspect from each image and resize it to `size`, bilinear and antialiased.

    The share of the area is uniform in `scale`, the aspect width/height log-uniform in `ratio`; up to ten boxes
    are drawn until one fits, else the largest central box of admissible aspect is taken (Szegedy et al., 2015,
    as in torchvision).

    >>> x = torch.zeros(1, 3, 40, 40, dtype=torch.uint8)
    >>> RandomResizedCrop(32)(x, Draws(0, 0, torch.tensor([0]))).shape
    torch.Size([1, 3, 32, 32])
    """

    size: Size
    scale: tuple[float, float] = (0.7, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)

    def __post_init__(self) -> None:
        _pair(self.size, "resized-crop")
        if not 0 < self.scale[0] <= self.scale[1] <= 1:
            raise UsageError(f"resized-crop: scale must be two shares 0 < low ≤ high ≤ 1, not {self.scale!r}.")
        if not 0 < self.ratio[0] <= self.ratio[1]:
            raise UsageError(f"resized-crop: ratio must be two aspects 0 < low ≤ high, not {self.ratio!r}.")

    def __call__(self, x_NCHW: Tensor, draws: Draws) -> Tensor:
        """A box of each image at the new size."""
        check_images(x_NCHW, "resized-crop")
        height, width = x_NCHW.shape[-2:]
        return resized_boxes(x_NCHW, *self.boxes(height, width, draws), size=_pair(self.size, "resized-crop"))

    def boxes(self, height: int, width: int, draws: Draws) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """The box of each image: top, left, height and width."""
        u_NK = draws.uniform("resized-crop", 2 * _TRIES + 2).to(torch.float64)
        area_NT = height * width * _rescale(u_NK[:, :_TRIES], *self.scale)
        aspect_NT = _rescale(u_NK[:, _TRIES : 2 * _TRIES], *map(math.log, self.ratio)).exp()
        h_NT = (area_NT / aspect_NT).sqrt().round().to(torch.int64)
        w_NT = (area_NT * aspect_NT).sqrt().round().to(torch.int64)
        fits_NT = (h_NT > 0) & (h_NT <= height) & (w_NT > 0) & (w_NT <= width)
        first_N1 = fits_NT.int().argmax(1, keepdim=True)
        fits_N = fits_NT.any(1)
        h_N, w_N = h_NT.gather(1, first_N1)[:, 0], w_NT.gather(1, first_N1)[:, 0]
        top_N = (u_NK[:, -2] * (height - h_N + 1)).to(torch.int64)
        left_N = (u_NK[:, -1] * (width - w_N + 1)).to(torch.int64)
        central = self._central(height, width)
        boxes = (top_N, left_N, h_N, w_N)
        top, left, h, w = (torch.where(fits_N, a, b) for a, b in zip(boxes, central, strict=True))
        return top, left, h, w

    def _central(self, height: int, width: int) -> tuple[int, int, int, int]:
        low, high = self.ratio
        h = min(height, round(width / low))
        w = min(width, round(height * high))
        return (height - h) // 2, (width - w) // 2, h, w

    def for_evaluation(self) -> Resize:
        """The whole image, at the size that training sees."""
        return Resize(self.size)


_TRIES = 10
_UNIT = 2048


def resized_boxes(
    x_NCHW: Tensor, top_N: Tensor, left_N: Tensor, height_N: Tensor, width_N: Tensor, *, size: tuple[int, int]
) -> Tensor:
    """Cut a box from each image and resize it to `size` with a triangle filter, first across, then down.

    The filter is widened where the box shrinks (antialiasing), and sees nothing outside the box. Each pass is a
    batched matrix product over whole numbers: pixels, and weights in steps of 1/2048. All sums stay below 2²⁴, so
    float32 (and TF32) computes them exactly, and an image comes out the same in any batch on any device.

    >>> x = torch.tensor([[[[0, 100, 7]]]], dtype=torch.uint8)
    >>> box = [torch.tensor([n]) for n in (0, 0, 1, 2)]
    >>> resized_boxes(x, *box, size=(1, 4)).flatten().tolist()
    [0, 25, 75, 100]
    """
    device, (height, width) = x_NCHW.device, x_NCHW.shape[-2:]
    # Only four whole numbers per image are sent to the device, which computes the weights itself.
    top_N, left_N, height_N, width_N = upload(torch.stack([top_N, left_N, height_N, width_N]), device)
    across_NwW = _weights(left_N, width_N, width, size[1])
    down_NhH = _weights(top_N, height_N, height, size[0])
    with torch.autocast(device.type, enabled=False):
        x_NCHw = _round_sums(x_NCHW.to(torch.float32) @ across_NwW[:, None].mT)
        return _round_sums(down_NhH[:, None] @ x_NCHw).to(torch.uint8)


def _weights(start_N: Tensor, length_N: Tensor, full: int, size: int) -> Tensor:
    """The share of each of `full` pixels in each of `size` outputs, in 1/2048, for the box of each image.

    The triangle over output o, of a box of L pixels at size S, gives pixel q the height 1 − |q + ½ − (o + ½)L/S| / w
    with w = max(L/S, 1). Times 2·S·w all of it is whole numbers, so every device computes the same weights; and only
    the few pixels T under the triangle are used.
    """
    device = start_N.device
    num_taps = 2 * -(-max(full, size) // size) + 1
    odd_S = 2 * torch.arange(size, device=device) + 1
    length_N11, widest_N11 = length_N[:, None, None], length_N.clamp_min(size)[:, None, None]
    centre_NS1 = (odd_S * length_N[:, None])[:, :, None]
    # The first pixel under the triangle: (2q + 1)S > centre − 2·widest.
    first_NS1 = (centre_NS1 - 2 * widest_N11 - size).div(2 * size, rounding_mode="floor").add_(1).clamp_min_(0)
    pixel_NST = first_NS1 + torch.arange(num_taps, device=device)
    height_NST = (2 * widest_N11 - ((2 * pixel_NST + 1) * size - centre_NS1).abs_()).clamp_min_(0)
    height_NST *= pixel_NST < length_N11
    total_NS1 = height_NST.sum(-1, keepdim=True)
    whole_NST = _nearest(_UNIT * height_NST, total_NS1)
    # Rounding may lose or gain a few steps; the largest weight takes them, so that a flat image stays flat.
    missing_NS1 = _UNIT - whole_NST.sum(-1, keepdim=True)
    whole_NST.scatter_add_(-1, whole_NST.argmax(-1, keepdim=True), missing_NS1)
    place_NST = (pixel_NST + start_N[:, None, None]).clamp_max_(full - 1)  # beyond the box a weight is zero
    weights_NSF = torch.zeros(len(start_N), size, full, device=device)
    return weights_NSF.scatter_add_(-1, place_NST, whole_NST.to(torch.float32))


def _nearest(above: Tensor, below: Tensor) -> Tensor:
    """The whole number nearest to above/below, the even one of two."""
    quotient = (2 * above + below).div(2 * below, rounding_mode="floor")
    is_tie = (2 * above + below) == 2 * below * quotient
    return quotient - (is_tie & (quotient % 2 == 1)).to(quotient.dtype)


def _round_sums(sums: Tensor) -> Tensor:
    return sums.add_(_UNIT / 2).div_(_UNIT).floor_()


def _rescale(u: Tensor, low: float, high: float) -> Tensor:
    return low + (high - low) * u


def _pair(size: Size, who: str) -> tuple[int, int]:
    pair = (size, size) if isinstance(size, int) else tuple(size)
    if len(pair) != 2 or not all(isinstance(n, int) and n > 0 for n in pair):
        raise UsageError(f"{who}: the size must be one or two whole numbers of pixels ≥ 1, not {size!r}.")
    return pair[0], pair[1]
