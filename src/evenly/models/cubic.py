"""The two-layer convolutional network σ(z) = z³ of Nguyen et al. (2024), eq. 1, and of the code it descends from.

Shapes: N examples, P patches, D dimensions of a patch, J filters, C outputs.
"""

import torch
from torch import Tensor, nn

from evenly.errors import UsageError
from evenly.models.headed import Headed
from evenly.models.options import Count, Positive
from evenly.models.shapes import binary, shape_text


class Cubic(Headed):
    """Filters over patches, cubed and summed: f_c(x) = Σ_{j ∈ c} Σ_p (⟨w_j, x⁽ᵖ⁾⟩ + b_j)³.

    The default is the form of Deng et al. (2023), from whose code the paper's toy descends: a bias per filter, as
    many filters for each class (20 and 20), PyTorch's first weights times 0.1. The paper's eq. 1 has one logit,
    Σ_j Σ_p ⟨w_j, x⁽ᵖ⁾⟩³, and no bias: `single_logit=True, bias=False`. The bias matters. Without it the network is
    odd, f(−x) = −f(x), and the difficult feature does not move in the paper's 600 iterations; figure 2 needs it.

    The features are Σ_p σ(·) of each filter, N × J, and the head adds them up: it has nothing to learn.

    >>> eq1 = Cubic((3, 50), 2, single_logit=True, bias=False)
    >>> x = torch.randn(4, 3, 50)
    >>> torch.allclose(eq1(-x), -eq1(x)), eq1(x).shape
    (True, torch.Size([4, 1]))
    """

    def __init__(
        self,
        input_shape: tuple[int, ...],
        num_classes: int,
        *,
        num_filters: Count = 40,
        single_logit: bool = False,
        bias: bool = True,
        init_scale: Positive = 0.1,
    ) -> None:
        super().__init__()
        if len(input_shape) != 2:
            raise UsageError(
                f"cubic takes patches×dimensions, such as the 3×50 of the data set patches, but the inputs are "
                f"{shape_text(input_shape)}. For inputs of any shape choose mlp."
            )
        if single_logit:
            binary("cubic with single_logit", num_classes)
        outputs = 1 if single_logit else num_classes
        if num_filters % outputs:
            raise UsageError(
                f"cubic: num_filters = {num_filters} cannot be divided evenly among {outputs} classes. "
                f"For example: num_filters={outputs * max(1, num_filters // outputs)}"
            )
        self.filters = nn.Linear(input_shape[1], num_filters, bias=bias)
        self.head = Sum(outputs)
        with torch.no_grad():
            for parameter in self.filters.parameters():
                parameter.mul_(init_scale)

    def features(self, x_NPD: Tensor) -> Tensor:
        """Σ_p (⟨w_j, x⁽ᵖ⁾⟩ + b_j)³ of every filter, N × J."""
        z_NPJ: Tensor = self.filters(x_NPD)
        return (z_NPJ * z_NPJ * z_NPJ).sum(1)

    def alignment(self, directions: Tensor) -> Tensor:
        """⟨w_j, v⟩ of every filter j with a direction v (D → J) or with several (K × D → K × J).

        The paper plots `max_j |⟨w_j, v⟩|` for the easy and the difficult feature.

        >>> model = Cubic((3, 50), 2)
        >>> v = torch.eye(50)[0]
        >>> torch.equal(model.alignment(v), model.filters.weight[:, 0])
        True
        """
        return directions.to(self.filters.weight) @ self.filters.weight.detach().T


class Sum(nn.Module):
    """Features assigned to outputs in order, and summed: a linear layer of fixed zeros and ones.

    >>> Sum(2)(torch.tensor([[1.0, 2.0, 3.0, 4.0]]))
    tensor([[3., 7.]])
    """

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, features_NJ: Tensor) -> Tensor:
        """N × J to N × C."""
        return features_NJ.reshape(len(features_NJ), self.outputs, -1).sum(2)

    def extra_repr(self) -> str:
        """The arguments that `print` shows."""
        return f"outputs={self.outputs}"
