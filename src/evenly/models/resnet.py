"""Residual networks for large images (He et al., 2016a), in torchvision's layout and under its parameter names.

A state dict of torchvision's or timm's `resnet18` and `resnet50` fits as it is, and goes back as it is.
"""

from torch import Tensor, nn
from torch.nn.functional import relu

from evenly.models.headed import Headed
from evenly.models.shapes import image


def resnet18(input_shape: tuple[int, ...], num_classes: int) -> "ResNet":
    """Blocks of two 3×3 convolutions, two a stage: 11,689,512 parameters for a thousand classes.

    >>> sum(p.numel() for p in resnet18((3, 224, 224), 1000).parameters())
    11689512
    """
    return ResNet("resnet18", BasicBlock, (2, 2, 2, 2), input_shape, num_classes)


def resnet50(input_shape: tuple[int, ...], num_classes: int) -> "ResNet":
    """Bottlenecks of 1×1, 3×3, 1×1, three, four, six and three a stage: 25,557,032 parameters for 1000 classes.

    The stride is in the 3×3 convolution, as in torchvision ("v1.5"), not in the paper's first 1×1.

    >>> sum(p.numel() for p in resnet50((3, 224, 224), 1000).parameters())
    25557032
    """
    return ResNet("resnet50", Bottleneck, (3, 4, 6, 3), input_shape, num_classes)


class BasicBlock(nn.Module):
    """relu(x + norm(conv3×3(relu(norm(conv3×3(x))))))."""

    expansion = 1

    def __init__(self, fan_in: int, planes: int, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, planes, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        """The block's output."""
        residual = self.bn2(self.conv2(relu(self.bn1(self.conv1(x)))))
        return relu(residual + (x if self.downsample is None else self.downsample(x)))


class Bottleneck(nn.Module):
    """relu(x + norm(conv1×1(relu(norm(conv3×3(relu(norm(conv1×1(x))))))))), four times as wide outside."""

    expansion = 4

    def __init__(self, fan_in: int, planes: int, stride: int, downsample: nn.Module | None) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(fan_in, planes, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(planes)
        self.conv2 = nn.Conv2d(planes, planes, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(planes)
        self.conv3 = nn.Conv2d(planes, 4 * planes, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * planes)
        self.downsample = downsample

    def forward(self, x: Tensor) -> Tensor:
        """The block's output."""
        inner = relu(self.bn2(self.conv2(relu(self.bn1(self.conv1(x))))))
        residual = self.bn3(self.conv3(inner))
        return relu(residual + (x if self.downsample is None else self.downsample(x)))


class ResNet(Headed):
    """Conv 7×7/2 – pool 3×3/2 – four stages of 64, 128, 256, 512 planes – mean – Linear, which is named `fc`."""

    def __init__(
        self,
        name: str,
        block: type[BasicBlock] | type[Bottleneck],
        num_blocks: tuple[int, int, int, int],
        input_shape: tuple[int, ...],
        num_classes: int,
    ) -> None:
        super().__init__()
        channels, _, _ = image(name, input_shape)
        self.conv1 = nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = _stage(block, 64, 64, num_blocks[0], stride=1)
        self.layer2 = _stage(block, 64 * block.expansion, 128, num_blocks[1], stride=2)
        self.layer3 = _stage(block, 128 * block.expansion, 256, num_blocks[2], stride=2)
        self.layer4 = _stage(block, 256 * block.expansion, 512, num_blocks[3], stride=2)
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    @property
    def head(self) -> nn.Linear:
        """The last layer, `fc` in torchvision's words."""
        return self.fc

    def features(self, x: Tensor) -> Tensor:
        """The mean over the last map, N × 512 or N × 2048."""
        x = self.maxpool(relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return x.mean((2, 3))


def _stage(
    block: type[BasicBlock] | type[Bottleneck], fan_in: int, planes: int, num: int, *, stride: int
) -> nn.Sequential:
    fan_out = planes * block.expansion
    downsample = None
    if stride != 1 or fan_in != fan_out:
        downsample = nn.Sequential(nn.Conv2d(fan_in, fan_out, 1, stride=stride, bias=False), nn.BatchNorm2d(fan_out))
    first = block(fan_in, planes, stride, downsample)
    return nn.Sequential(first, *(block(fan_out, planes, 1, None) for _ in range(num - 1)))
