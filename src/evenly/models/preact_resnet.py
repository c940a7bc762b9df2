"""Pre-activation residual networks for small images (He et al., 2016b), as the USEFUL paper's lineage has them."""

from torch import Tensor, nn
from torch.nn.functional import relu

from evenly.models.headed import Headed
from evenly.models.options import Count
from evenly.models.shapes import image


def preact_resnet18(input_shape: tuple[int, ...], num_classes: int, *, width: Count = 64) -> "PreActResNet":
    """Two blocks a stage: 11,172,170 parameters for ten classes at width 64.

    >>> sum(p.numel() for p in preact_resnet18((3, 32, 32), 10).parameters())
    11172170
    """
    return PreActResNet("preact-resnet18", (2, 2, 2, 2), input_shape, num_classes, width)


def preact_resnet34(input_shape: tuple[int, ...], num_classes: int, *, width: Count = 64) -> "PreActResNet":
    """Three, four, six and three blocks a stage: 21,326,500 parameters for a hundred classes at width 64.

    >>> sum(p.numel() for p in preact_resnet34((3, 32, 32), 100).parameters())
    21326500
    """
    return PreActResNet("preact-resnet34", (3, 4, 6, 3), input_shape, num_classes, width)


class PreActResNet(Headed):
    """Conv 3×3, four stages of `width`, 2, 4 and 8 times as many channels, BatchNorm – ReLU – mean – Linear.

    The layout and first weights of Andriushchenko & Flammarion (2022): no pooling before the first stage, a
    BatchNorm after the last (kuangliu's widely copied version lacks that one: 11,171,146 parameters), He's normal
    initialisation by fan-out, zero bias in the head. Two departures: two classes have two logits, not one beside a
    zero; and the mean is over the whole map, so that images of any size fit. On 32×32 that is the same.
    """

    def __init__(
        self, name: str, num_blocks: tuple[int, ...], input_shape: tuple[int, ...], num_classes: int, width: int
    ) -> None:
        super().__init__()
        channels, _, _ = image(name, input_shape)
        self.stem = nn.Conv2d(channels, width, 3, padding=1, bias=False)
        blocks: list[nn.Module] = []
        fan_in = width
        for stage, num in enumerate(num_blocks):
            for number in range(num):
                stride = 2 if stage > 0 and number == 0 else 1
                blocks.append(PreActBlock(fan_in, width * 2**stage, stride))
                fan_in = width * 2**stage
        self.blocks = nn.Sequential(*blocks)
        self.norm = nn.BatchNorm2d(fan_in)
        self.head = nn.Linear(fan_in, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        nn.init.zeros_(self.head.bias)

    def features(self, x: Tensor) -> Tensor:
        """The mean over the last map, N × 8·width."""
        return relu(self.norm(self.blocks(self.stem(x)))).mean((2, 3))


class PreActBlock(nn.Module):
    """x + conv(relu(norm(conv(relu(norm(x)))))); where the shape changes, a 1×1 convolution carries relu(norm(x))."""

    def __init__(self, fan_in: int, fan_out: int, stride: int) -> None:
        super().__init__()
        self.norm1 = nn.BatchNorm2d(fan_in)
        self.conv1 = nn.Conv2d(fan_in, fan_out, 3, stride=stride, padding=1, bias=False)
        self.norm2 = nn.BatchNorm2d(fan_out)
        self.conv2 = nn.Conv2d(fan_out, fan_out, 3, padding=1, bias=False)
        self.shortcut = None
        if stride != 1 or fan_in != fan_out:
            self.shortcut = nn.Conv2d(fan_in, fan_out, 1, stride=stride, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """The block's output, its sides halved where it strides."""
        active = relu(self.norm1(x))
        carried = x if self.shortcut is None else self.shortcut(active)
        residual: Tensor = self.conv2(relu(self.norm2(self.conv1(active))))
        return residual + carried
