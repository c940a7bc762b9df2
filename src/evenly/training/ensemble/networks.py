"""The networks of an ensemble: a body that makes features and a linear head, each with a backward pass.

`disentangled`, `relu2`, `mlp` and `cubic` are written out in batched algebra; every other module goes through
`torch.func`.

Shapes: K members, N examples, F features, C outputs, P patches, D dimensions, J filters.
"""

from typing import Any, Protocol

import torch
from torch import Tensor, nn
from torch.nn import functional

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
        """The numbers that the widest layer computes per example, which decides how a pass is cut into pieces."""

    @property
    def head(self) -> "Linear | Sum | NoHead":
        """The layer from features to outputs."""

    def prepare(self, inputs_N: Tensor) -> Tensor:
        """Preprocessing that every pass would otherwise repeat, done once per data set."""

    def features(self, p: Views, x_KN: Tensor) -> tuple[Tensor, Any]:
        """The features, K × N × F, and what `backward` needs."""

    def backward(self, p: Views, g: Views, saved: Any, d_KNF: Tensor) -> None:
        """Fill `g` with the gradients of the body."""

    def model_features(self, features_KNF: Tensor) -> Tensor:
        """The features as the model's own `features` gives them."""


class Sum:
    """`cubic`'s head: the features summed per output; a product with fixed zeros and ones."""

    def __init__(self, outputs: int, num_filters: int, num_patches: int) -> None:
        mine_CJ = torch.eye(outputs).repeat_interleave(num_filters // outputs, dim=1)
        self.ones_CF = mine_CJ.repeat(1, num_patches)

    def forward(self, p: Views, features_KNF: Tensor) -> tuple[Tensor, Tensor]:
        """Saved: the zeros and ones, a row per output."""
        if self.ones_CF.dtype != features_KNF.dtype or self.ones_CF.device != features_KNF.device:
            self.ones_CF = self.ones_CF.to(features_KNF)
        return torch.matmul(features_KNF, self.ones_CF.T), self.ones_CF

    def backward(self, p: Views, g: Views, saved: Tensor, d_KNC: Tensor, *, first: bool = False) -> Tensor:
        """Every feature gets the gradient of its output."""
        return torch.matmul(d_KNC, saved)


class NoHead:
    """The head of a network without a separate head: its outputs are the body's."""

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

    def model_features(self, features_KNF: Tensor) -> Tensor:
        """As they are."""
        return features_KNF


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
    """`cubic`: (⟨w_j, x⁽ᵖ⁾⟩ + b_j)³ for every patch p and filter j; the head adds them up.

    The elementwise work between two matrix products costs as much as they do, so it is kept to long contiguous
    loops: patches and filters are one dimension, and the bias is a weight on an input that is always 1.
    """

    def __init__(self, model: Cubic, num_patches: int) -> None:
        self.bias = model.filters.bias is not None
        self.num_patches, self.num_filters = num_patches, model.filters.out_features
        self.width = num_patches * self.num_filters
        self.head = Sum(model.head.outputs, self.num_filters, num_patches)

    def prepare(self, inputs_NPD: Tensor) -> Tensor:
        """With the input that is always 1, where there is a bias."""
        return functional.pad(inputs_NPD, (0, 1), value=1.0) if self.bias else inputs_NPD

    def features(self, p: Views, x_KNPD: Tensor) -> tuple[Tensor, Any]:
        """The cubes, K × N × PJ. Saved: the inputs and z²."""
        weight_KJD, x_KRD = p["filters.weight"], x_KNPD.flatten(1, 2)
        if self.bias:
            weight_KJD = torch.cat([weight_KJD, p["filters.bias"].unsqueeze(2)], dim=2)
        z_KRJ = torch.bmm(x_KRD, weight_KJD.mT)
        square_KNF = (z_KRJ * z_KRJ).view(*x_KNPD.shape[:2], self.width)
        return z_KRJ.view_as(square_KNF).mul_(square_KNF), (x_KRD, square_KNF)

    def backward(self, p: Views, g: Views, saved: Any, d_KNF: Tensor) -> None:
        """∂z = 3z²·d."""
        x_KRD, square_KNF = saved
        d_KRJ = square_KNF.mul_(d_KNF).view(*x_KRD.shape[:2], self.num_filters)
        g_KJD = torch.bmm(d_KRJ.mT, x_KRD).mul_(3.0)
        g["filters.weight"].copy_(g_KJD[:, :, :-1] if self.bias else g_KJD)
        if self.bias:
            g["filters.bias"].copy_(g_KJD[:, :, -1])

    def model_features(self, features_KNF: Tensor) -> Tensor:
        """Summed over the patches, K × N × J."""
        return features_KNF.view(*features_KNF.shape[:2], self.num_patches, self.num_filters).sum(2)


def by_hand(model: nn.Module, input_shape: tuple[int, ...]) -> Network | None:
    """The network written out for models of this type, or None.

    >>> type(by_hand(ReLU2((4,), 2), (4,))).__name__, by_hand(nn.Linear(2, 1), (2,))
    ('Chain', None)
    """
    head = Linear("head.weight", "head.bias" if getattr(model, "head", None) and _has_bias(model) else None)
    if type(model) is Cubic:
        return Filters(model, input_shape[0])
    if type(model) is ReLU2:
        return Chain([Linear("hidden.weight", "hidden.bias"), ReLU()], head, model.hidden.out_features)
    if type(model) is Disentangled and (layers := layers_of(model.phi, "phi")):
        return TwoViews(layers, head, 2 * _widest(model.phi))
    if type(model) is MLP and (layers := layers_of(model.features, "features")):
        return Chain(layers, head, _widest(model.features))
    return None


def _has_bias(model: Any) -> bool:
    return getattr(model.head, "bias", None) is not None


def _widest(body: nn.Sequential) -> int:
    return max(module.out_features for module in body if isinstance(module, nn.Linear))
