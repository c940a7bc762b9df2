"""The toy network of Springer et al. (2024), section 5 and appendix B: one Φ for two features, and two weights.

Shapes: N examples, D inputs, half of them the easy feature's.
"""

import torch
from torch import Tensor, nn

from evenly.errors import UsageError
from evenly.models.headed import Headed
from evenly.models.options import Count
from evenly.models.shapes import binary, vector


class Disentangled(Headed):
    """f(x) = v_easy·Φ([x_easy, 0]) + v_hard·Φ([0, x_hard]), with v = (1, 1) at first and all of it trained.

    Φ: Linear – LayerNorm – ReLU – Linear – LayerNorm – ReLU – Linear to one number, 100 wide. `features(x)` is
    (Φ_easy, Φ_hard), `head.weight` is (v_easy, v_hard), and `phi` is Φ itself, for decision surfaces.

    >>> model = Disentangled((4,), 2)
    >>> model.head.weight.tolist(), model.features(torch.randn(5, 4)).shape
    ([[1.0, 1.0]], torch.Size([5, 2]))
    """

    def __init__(self, input_shape: tuple[int, ...], num_classes: int, *, width: Count = 100) -> None:
        super().__init__()
        dim = vector("disentangled", input_shape)
        if dim % 2:
            raise UsageError(
                f"disentangled takes [x_easy, x_hard], two halves, but the inputs have {dim} numbers. "
                "Give an even number, such as the 4 of the data set spirals."
            )
        binary("disentangled", num_classes)
        self.phi = nn.Sequential(
            nn.Linear(dim, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Linear(width, 1),
        )
        self.head = nn.Linear(2, 1, bias=False)
        nn.init.ones_(self.head.weight)

    def features(self, x_ND: Tensor) -> Tensor:
        """(Φ_easy, Φ_hard), N × 2."""
        x_easy, x_hard = x_ND.chunk(2, dim=1)
        zero = torch.zeros_like(x_easy)
        # Both views of every example in one pass: for networks this small, calls cost more than arithmetic.
        views_N2D = torch.stack([torch.cat([x_easy, zero], 1), torch.cat([zero, x_hard], 1)], dim=1)
        out: Tensor = self.phi(views_N2D)
        return out.squeeze(2)
