"""DenseNet-121 (Huang et al., 2017), in torchvision's layout and under its parameter names."""

from collections import OrderedDict
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from evenly.models.headed import Headed
from evenly.models.shapes import image

GROWTH, BOTTLENECK, STEM = 32, 128, 64
BLOCKS = (6, 12, 24, 16)


class DenseNet121(Headed):
    """Conv 7×7/2 – pool 3×3/2 – four blocks in which every layer reads all before it – mean – Linear.

    7,978,856 parameters for a thousand classes. Nguyen et al. (2024) used "the official PyTorch implementation" on
    32×32 as it is: the last block then works on single pixels.

    >>> sum(p.numel() for p in DenseNet121((3, 32, 32), 1000).parameters())
    7978856
    """

    # The published file is older than torchvision's present names: norm.1 there is norm1 here.
    published_names: ClassVar = ((r"(denselayer\d+\.(?:norm|conv))\.([12])\.", r"\1\2."),)

    def __init__(self, input_shape: tuple[int, ...], num_classes: int) -> None:
        super().__init__()
        # Five halvings, the first two rounding up: from 29 pixels on a pixel remains.
        channels, _, _ = image("densenet121", input_shape, least=29)
        layers: OrderedDict[str, nn.Module] = OrderedDict(
            conv0=nn.Conv2d(channels, STEM, 7, stride=2, padding=3, bias=False),
            norm0=nn.BatchNorm2d(STEM),
            relu0=nn.ReLU(),
            pool0=nn.MaxPool2d(3, stride=2, padding=1),
        )
        fan_in = STEM
        for number, num_layers in enumerate(BLOCKS, 1):
            layers[f"denseblock{number}"] = DenseBlock(fan_in, num_layers)
            fan_in += num_layers * GROWTH
            if number < len(BLOCKS):
                layers[f"transition{number}"] = transition(fan_in)
                fan_in //= 2
        layers["norm5"] = nn.BatchNorm2d(fan_in)
        layers["relu5"] = nn.ReLU()
        layers["mean"] = nn.AdaptiveAvgPool2d(1)
        layers["flatten"] = nn.Flatten()
        self.features = nn.Sequential(layers)
        self.classifier = nn.Linear(fan_in, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight)
        nn.init.zeros_(self.classifier.bias)

    @property
    def head(self) -> nn.Linear:
        """The last layer, `classifier` in torchvision's words."""
        return self.classifier


class DenseBlock(nn.Sequential):
    """Layers that each add 32 channels, computed from all channels so far."""

    def __init__(self, fan_in: int, num_layers: int) -> None:
        super().__init__()
        for number in range(num_layers):
            self.add_module(f"denselayer{number + 1}", DenseLayer(fan_in + number * GROWTH))

    def forward(self, x: Tensor) -> Tensor:
        """All channels, the given ones first."""
        for layer in self:
            x = torch.cat([x, layer(x)], dim=1)
        return x


class DenseLayer(nn.Module):
    """conv3×3(relu(norm(conv1×1(relu(norm(x)))))): 128 channels inside, 32 out."""

    def __init__(self, fan_in: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(fan_in)
        self.conv1 = nn.Conv2d(fan_in, BOTTLENECK, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(BOTTLENECK)
        self.conv2 = nn.Conv2d(BOTTLENECK, GROWTH, 3, padding=1, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The new channels."""
        out: Tensor = self.conv2(relu(self.norm2(self.conv1(relu(self.norm1(x))))))
        return out


def transition(fan_in: int) -> nn.Sequential:
    """Half the channels, half the sides."""
    return nn.Sequential(
        OrderedDict(
            norm=nn.BatchNorm2d(fan_in),
            relu=nn.ReLU(),
            conv=nn.Conv2d(fan_in, fan_in // 2, 1, bias=False),
            pool=nn.AvgPool2d(2),
        )
    )
