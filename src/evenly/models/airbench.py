"""A small convolutional network for natural images, after airbench (Jordan, 2024), which was made to learn quickly.

Most of its speed comes from the first layer, which is not learned: it whitens small patches. Airbench computes its
filters from the training images. Here they are constants, since natural images all have nearly the same ones: the
principal components of their 2×2 patches are Haar wavelets, of brightness and of opponent colours.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import conv2d

from evenly.errors import UsageError
from evenly.models.headed import Headed
from evenly.models.options import Count
from evenly.models.shapes import image

_HAAR = ((1, 1, 1, 1), (1, 1, -1, -1), (1, -1, 1, -1), (1, -1, -1, 1))
_COLOURS = {1: ((1,),), 3: ((1, 1, 1), (1, 0, -1), (1, -2, 1))}  # brightness; red against blue; green against both
# Their standard deviations in CIFAR-10, channels normalised, a row for each colour. Divided by them, the covariance of
# patches has eigenvalues between 0.65 and 1.31.
_DEVIATIONS = ((3.172, 0.627, 0.573, 0.235), (0.907, 0.129, 0.120, 0.040), (0.433, 0.071, 0.067, 0.025))


def whitening_filters(channels: int) -> Tensor:
    """Filters that whiten the 2×2 patches of natural images, and their negatives: 8 · channels × channels × 2 × 2.

    >>> whitening_filters(3).shape
    torch.Size([24, 3, 2, 2])
    """
    if channels not in _COLOURS:
        raise UsageError(
            f"airbench takes images of 1 or 3 channels, not {channels}. For others choose preact-resnet18 or convnet."
        )
    colours = nn.functional.normalize(torch.tensor(_COLOURS[channels], dtype=torch.float32))
    wavelets = torch.tensor(_HAAR, dtype=torch.float32) / 2
    filters = torch.einsum("oc,hp->ohcp", colours, wavelets) / torch.tensor(_DEVIATIONS[:channels])[..., None, None]
    filters = filters.reshape(-1, channels, 2, 2)
    return torch.cat([filters, -filters])


class Whitening(nn.Module):
    """The fixed filters, and a bias that is learned."""

    filters: Tensor

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.register_buffer("filters", whitening_filters(channels))
        self.bias = nn.Parameter(torch.zeros(len(self.filters)))

    def forward(self, x: Tensor) -> Tensor:
        """Whitened patches, one pixel less on a side."""
        return conv2d(x, self.filters, self.bias)


class Group(nn.Sequential):
    """Two 3×3 convolutions with a pooling by 2 after the first, each with BatchNorm and GELU.

    The convolutions are initialised to pass on their input, as far as they have outputs for it.
    """

    def __init__(self, width_in: int, width: int) -> None:
        first, second = (nn.Conv2d(w, width, 3, padding=1, bias=False) for w in (width_in, width))
        for layer in (first, second):
            nn.init.dirac_(layer.weight.data[: layer.in_channels])
        super().__init__(
            first, nn.MaxPool2d(2), nn.BatchNorm2d(width), nn.GELU(), second, nn.BatchNorm2d(width), nn.GELU()
        )


class Airbench(Headed):
    """Fixed whitening filters, three groups of two convolutions (`width`, then twice `4 · width`), and pooling.

    Images of 1 or 3 channels with 9 pixels on a side or more, their channels normalised. At the default width an epoch
    of CIFAR-10 takes 10 TFLOP; airbench itself has 64.

    >>> sum(p.numel() for p in Airbench((3, 32, 32), 10).parameters())
    497816
    """

    def __init__(self, input_shape: tuple[int, ...], num_classes: int, *, width: Count = 32) -> None:
        super().__init__()
        channels, _, _ = image("airbench", input_shape, least=9)
        whitening = Whitening(channels)
        self.body = nn.Sequential(
            whitening,
            nn.GELU(),
            Group(len(whitening.bias), width),
            Group(width, 4 * width),
            Group(4 * width, 4 * width),
            nn.AdaptiveMaxPool2d(1),
            nn.Flatten(),
        )
        self.head = nn.Linear(4 * width, num_classes, bias=False)

    def features(self, x: Tensor) -> Tensor:
        """The largest activations of the last group, divided by nine so that outputs start small."""
        features: Tensor = self.body(x) / 9
        return features
