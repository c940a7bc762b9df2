"""The three-layer convolutional network of Springer et al. (2024), appendix B."""

from torch import nn

from evenly.models.headed import Headed
from evenly.models.shapes import image


class ConvNet(Headed):
    """Conv 5×5/2 to 32, 3×3/2 to 64, 3×3/2 to 128, each with ReLU; the flattened map is what the head reads.

    102,978 parameters for the paper's 3×64×32 and two classes; images of any size.

    >>> sum(p.numel() for p in ConvNet((3, 64, 32), 2).parameters())
    102978
    """

    def __init__(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        channels, height, width = image("convnet", input_shape)
        self.features = nn.Sequential(
            nn.Conv2d(channels, 32, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(32, 64, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(64, 128, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
        )
        # Each layer halves a side and rounds up: ⌈side/8⌉ after three.
        self.head = nn.Linear(128 * -(-height // 8) * -(-width // 8), num_classes)
