"""The networks of an ensemble: a body that makes features and a linear head, each with a backward pass.

`disentangled`, `relu2`, `mlp` and `cubic` are written out in batched algebra; every other module goes through
`torch.func`.

Shapes: K members, N examples, F features, C outputs, P patches, D dimensions, J filters.
"""

from typing import Any, Protocol

from torch import Tensor, nn

from evenly.models.cubic import Cubic
from evenly.models.disentangled import Disentangled
from evenly.models.mlp import MLP
from evenly.models.relu2 import ReLU2
from evenly.training.ensemble.layers import Layer, Linear, ReLU, layers_of, run_backward, run_forward
from evenly.training.ensemble.layout import Views


class Network(Protocol):
    """K networks of one shape; `p` holds their parameters by name, `g` receives their gradients."""

    @property
    def width(self) -> int:
        """How many numbers the widest layer makes of one example: what a pass is cut into pieces by."""

    @property
    def head(self) -> "Linear | Sum | Nothing":
        """The layer that makes outputs of features."""

    def prepare(self, inputs_N: Tensor) -> Tensor:
        """What every pass would otherwise do again, once for a data set."""

    def features(self, p: Views, x_KN: Tensor) -> tuple[Tensor, Any]:
        """The features, K × N × F, and what `backward` needs."""

    def backward(self, p: Views, g: Views, saved: Any, d_KNF: Tensor) -> None:
        """Fill `g` with the gradients of the body."""


class Sum:
    """`cubic`'s head: features added up per output."""

    def __init__(self, outputs: int) -> None:
        self.outputs = outputs

    def forward(self, p: Views, features_KNF: Tensor) -> tuple[Tensor, int]:
        """Saved: the number of features."""
        num_members, num, size = features_KNF.shape
        return features_KNF.view(num_members, num, self.outputs, -1).sum(3), size

    def backward(self, p: Views, g: Views, saved: int, d_KNC: Tensor, *, first: bool = False) -> Tensor:
        """Every feature gets the gradient of its output."""
        return d_KNC.unsqueeze(3).expand(-1, -1, -1, saved // self.outputs).flatten(2)


class Nothing:
    """The head of a network that is not divided: its outputs are the body's."""

    def forward(self, p: Views, features_KNF: Tensor) -> tuple[Tensor, None]:
        """The features."""
        return features_KNF, None

    def backward(self, p: Views, g: Views, saved: None, d_KNC: Tensor, *, first: bool = False) -> Tensor:
        """The gradient."""
        return d_KNC


class Chain:
    """`relu2` and `mlp`: one layer after another."""

    def __init__(self, layers: list[Layer], head: Linear, width: int) -> None:
        self.layers = layers
        self.head, self.width = head, width

    def prepare(self, inputs_N: Tensor) -> Tensor:
        """Inputs as vectors."""
        return inputs_N.flatten(1)

    def features(self, p: Views, x_KND: Tensor) -> tuple[Tensor, Any]:
        """The last hidden layer."""
        return run_forward(self.layers, p, x_KND)

    def backward(self, p: Views, g: Views, saved: Any, d_KNF: Tensor) -> None:
        """Layer by layer, from the last."""
        run_backward(self.layers, p, g, saved, d_KNF)


class TwoViews(Chain):
    """`disentangled`: one chain on [x_easy, 0] and on [0, x_hard], whose two numbers are the features."""

    def prepare(self, inputs_ND: Tensor) -> Tensor:
        """Both views of every example, N × 2 × D."""
        views_N2D = inputs_ND.new_zeros(len(inputs_ND), 2, inputs_ND.shape[1])
        half = inputs_ND.shape[1] // 2
        views_N2D[:, 0, :half], views_N2D[:, 1, half:] = inputs_ND[:, :half], inputs_ND[:, half:]
        return views_N2D

    def features(self, p: Views, x_KN2D: Tensor) -> tuple[Tensor, Any]:
        """(Φ_easy, Φ_hard)."""
        phi, saved = super().features(p, x_KN2D.flatten(1, 2))
        return phi.view(*x_KN2D.shape[:2], 2), saved

    def backward(self, p: Views, g: Views, saved: Any, d_KN2: Tensor) -> None:
        """Both views are rows of one batch."""
        super().backward(p, g, saved, d_KN2.reshape(len(d_KN2), -1, 1))


class Filters:
    """`cubic`: Σ_p (⟨w_j, x⁽ᵖ⁾⟩ + b_j)³ for every filter j."""

    def __init__(self, model: Cubic) -> None:
        self.linear = Linear("filters.weight", "filters.bias" if model.filters.bias is not None else None)
        self.head = Sum(model.head.outputs)
        self.width = 3 * model.filters.out_features

    def prepare(self, inputs_NPD: Tensor) -> Tensor:
        """As they are."""
        return inputs_NPD

    def features(self, p: Views, x_KNPD: Tensor) -> tuple[Tensor, Any]:
        """Saved: the inputs and z², which both passes need."""
        z_KRJ, rows = self.linear.forward(p, x_KNPD.flatten(1, 2))
        square_KRJ = z_KRJ * z_KRJ
        shape = (*x_KNPD.shape[:3], -1)
        return z_KRJ.mul_(square_KRJ).view(shape).sum(2), (rows, square_KRJ, shape)

    def backward(self, p: Views, g: Views, saved: Any, d_KNJ: Tensor) -> None:
        """∂z = 3z²·d."""
        rows, square_KRJ, shape = saved
        square_KRJ.view(shape).mul_(3 * d_KNJ.unsqueeze(2))
        self.linear.backward(p, g, rows, square_KRJ, first=True)


def by_hand(model: nn.Module) -> Network | None:
    """The network written out for models of this type, or None.

    >>> type(by_hand(ReLU2((4,), 2))).__name__, by_hand(nn.Linear(2, 1))
    ('Chain', None)
    """
    head = Linear("head.weight", "head.bias" if getattr(model, "head", None) and _has_bias(model) else None)
    if type(model) is Cubic:
        return Filters(model)
    if type(model) is ReLU2:
        layers: list[Layer] = [Linear("hidden.weight", "hidden.bias"), ReLU()]
        return Chain(layers, head, model.hidden.out_features)
    if type(model) is Disentangled and (found := layers_of(model.phi, "phi")):
        return TwoViews(found, head, 2 * _widest(model.phi))
    if type(model) is MLP and (found := layers_of(model.features, "features")):
        return Chain(found, head, _widest(model.features))
    return None


def _has_bias(model: Any) -> bool:
    return getattr(model.head, "bias", None) is not None


def _widest(body: nn.Sequential) -> int:
    return max(module.out_features for module in body if isinstance(module, nn.Linear))
