"""The multi-layer perceptron of Nguyen et al. (2024), appendix: three layers, 512 wide, dropout 0.1."""

import math

from torch import nn

from evenly.models.headed import Headed
from evenly.models.options import Count, Depth, Share


class MLP(Headed):
    """Flatten – (Linear – ReLU – Dropout) × (depth − 1) – Linear, for inputs of any shape.

    `depth` counts linear layers: the default has two hidden layers, and `depth=1` is multinomial logistic
    regression, whose features are the inputs.

    >>> sum(p.numel() for p in MLP((3, 32, 32), 10).parameters())
    1841162
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        num_classes: int,
        *,
        width: Count = 512,
        depth: Depth = 3,
        dropout: Share = 0.1,
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = [nn.Flatten()]
        fan_in = math.prod(input_shape)
        for _ in range(depth - 1):
            layers += [nn.Linear(fan_in, width), nn.ReLU(), nn.Dropout(dropout)]
            fan_in = width
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(fan_in, num_classes)
