"""VGG-19 with BatchNorm (Simonyan & Zisserman, 2015): torchvision's layout, or its body under a light head."""

from typing import ClassVar, Literal

from torch import Tensor, nn

from evenly.models.headed import Headed
from evenly.models.options import Share
from evenly.models.shapes import image

STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))


class VGG19(Headed):
    """Sixteen 3×3 convolutions in five stages, each ended by a pool, then the classifier.

    Nguyen et al. (2024) used "the official PyTorch implementation", which is torchvision's: an adaptive pool to
    7×7 and two hidden layers of 4096 with dropout (`classifier="official"`, 139,622,218 parameters for ten
    classes). On 32×32 its last map is a single pixel, which the pool merely repeats 49 times. The light form known
    from CIFAR puts one linear layer on the mean of the last map (`classifier="light"`, 20,040,522 parameters).

    >>> light = VGG19((3, 32, 32), 10, classifier="light")
    >>> sum(p.numel() for p in light.parameters())
    20040522
    """

    published_names: ClassVar = (
        (r"^features\.", "convolutions."),
        (r"^classifier\.([03])\.", r"hidden.\1."),
        (r"^classifier\.6\.", "head."),
    )

    def __init__(
        self,
        input_shape: tuple[int, ...],
        num_classes: int,
        *,
        classifier: Literal["official", "light"] = "official",
        dropout: Share = 0.5,
    ) -> None:
        super().__init__()
        fan_in, _, _ = image("vgg19-bn", input_shape, least=2 ** len(STAGES))
        layers: list[nn.Module] = []
        for fan_out, num in STAGES:
            for _ in range(num):
                layers += [nn.Conv2d(fan_in, fan_out, 3, padding=1), nn.BatchNorm2d(fan_out), nn.ReLU()]
                fan_in = fan_out
            layers.append(nn.MaxPool2d(2))
        self.convolutions = nn.Sequential(*layers)
        self.pool = nn.AdaptiveAvgPool2d(7 if classifier == "official" else 1)
        self.hidden = nn.Sequential()
        if classifier == "official":
            self.hidden = nn.Sequential(
                nn.Linear(7 * 7 * 512, 4096),
                nn.ReLU(),
                nn.Dropout(dropout),
                nn.Linear(4096, 4096),
                nn.ReLU(),
                nn.Dropout(dropout),
            )
        self.head = nn.Linear(4096 if classifier == "official" else 512, num_classes)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, nn.Linear):
                nn.init.normal_(module.weight, 0, 0.01)
            if isinstance(module, nn.Conv2d | nn.Linear) and module.bias is not None:
                nn.init.zeros_(module.bias)

    def features(self, x: Tensor) -> Tensor:
        """What the last linear layer reads: N × 4096, or N × 512 under the light head."""
        out: Tensor = self.hidden(self.pool(self.convolutions(x)).flatten(1))
        return out
