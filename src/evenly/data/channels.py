"""Where the channels of an image are: first in tensors (C×H×W), last in arrays and pictures (H×W×C)."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

if TYPE_CHECKING:
    from PIL import Image


def has_channels_last(shape: Sequence[int]) -> bool:
    """Whether an input of this shape is an image H×W×C, as arrays hold it.

    One or three channels are last, and not first; or the first two sides are equal and the last is shorter.

    >>> has_channels_last((8, 8, 3)), has_channels_last((3, 8, 8)), has_channels_last((3, 8, 3))
    (True, False, False)
    >>> has_channels_last((8, 8, 5)), has_channels_last((5, 8, 8)), has_channels_last((8, 8, 8))
    (True, False, False)
    """
    if len(shape) != 3:
        return False
    first, second, last = shape
    colours_last = last in (1, 3) and first not in (1, 3) and second > 3
    return colours_last or first == second > max(last, 3)


def channels_first(input: Tensor) -> Tensor:
    """One input, with the channels of an image H×W×C moved to the front.

    >>> channels_first(torch.zeros(8, 8, 3)).shape, channels_first(torch.zeros(5)).shape
    (torch.Size([3, 8, 8]), torch.Size([5]))
    """
    return input.permute(2, 0, 1) if has_channels_last(input.shape) else input


def pixels_of(picture: "Image.Image") -> Tensor:
    """The pixels of a decoded picture, C×H×W."""
    pixels = np.array(picture)
    return torch.from_numpy(pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1).copy())
