"""The two-layer network of Chang & Khanna (2025)."""

from torch import Tensor, nn

from evenly.models.headed import Headed
from evenly.models.options import Count
from evenly.models.shapes import binary, vector


class ReLU2(Headed):
    """f(x) = W₂·ReLU(W₁x + b): one output and no bias on it, trained with squared loss on y = ±1.

    The features are the hidden activations, `head.weight` is W₂. Width 50 is figure 1d's; table 1 has 10.

    >>> sum(p.numel() for p in ReLU2((100,), 2).parameters())
    5100
    """

    def __init__(self, input_shape: tuple[int, ...], num_classes: int, *, width: Count = 50) -> None:
        super().__init__()
        binary("relu2", num_classes)
        self.hidden = nn.Linear(vector("relu2", input_shape), width)
        self.head = nn.Linear(width, 1, bias=False)

    def features(self, x_ND: Tensor) -> Tensor:
        """ReLU(W₁x + b)."""
        return nn.functional.relu(self.hidden(x_ND))
