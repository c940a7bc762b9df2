"""Layers of K networks at once, forward and backward, written out: one call of `bmm` where a loop has K of `mm`.

A backward pass fills the views of the gradients; only what `forward` returns as saved is kept in between.

Shapes: K members, R rows (examples, or several rows of each), I inputs and O outputs of a layer.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from evenly.training.ensemble.layout import Views


class Layer(Protocol):
    """One layer of all members; `p` holds their parameters and `g` receives the gradients, by name."""

    def forward(self, p: Views, x_KRI: Tensor) -> tuple[Tensor, Any]:
        """The outputs, K × R × O, and what `backward` needs."""

    def backward(self, p: Views, g: Views, saved: Any, d_KRO: Tensor, *, first: bool) -> Tensor | None:
        """Fill `g`, and return the gradient of the inputs, which the first layer may skip."""


class Linear(NamedTuple):
    """A linear layer, z = x Wᵀ + b."""

    weight: str
    bias: str | None

    def forward(self, p: Views, x_KRI: Tensor) -> tuple[Tensor, Tensor]:
        """Saved: the inputs."""
        weight_KIO = p[self.weight].mT
        if self.bias is None:
            return torch.bmm(x_KRI, weight_KIO), x_KRI
        return torch.baddbmm(p[self.bias].unsqueeze(1), x_KRI, weight_KIO), x_KRI

    def backward(self, p: Views, g: Views, saved: Tensor, d_KRO: Tensor, *, first: bool = False) -> Tensor | None:
        """∂W = dᵀx, ∂b = Σ_R d, ∂x = d W."""
        torch.bmm(d_KRO.mT, saved, out=g[self.weight])
        if self.bias is not None:
            torch.sum(d_KRO, 1, out=g[self.bias])
        return None if first else torch.bmm(d_KRO, p[self.weight])


class LayerNorm(NamedTuple):
    """γ·x̂ + β, x̂ the input with mean 0 and variance 1 over its last dimension."""

    weight: str
    bias: str
    eps: float

    def forward(self, p: Views, x_KRI: Tensor) -> tuple[Tensor, tuple[Tensor, ...]]:
        """Saved: inputs, x̂, means and reciprocal deviations."""
        hat_KRI, mean, rstd = torch.native_layer_norm(x_KRI, x_KRI.shape[-1:], None, None, self.eps)
        y_KRI = torch.addcmul(p[self.bias].unsqueeze(1), hat_KRI, p[self.weight].unsqueeze(1))
        return y_KRI, (x_KRI, hat_KRI, mean, rstd)

    def backward(
        self, p: Views, g: Views, saved: tuple[Tensor, ...], d_KRO: Tensor, *, first: bool = False
    ) -> Tensor | None:
        """∂γ = Σ_R d·x̂, ∂β = Σ_R d, and ∂x through x̂."""
        x_KRI, hat_KRI, mean, rstd = saved
        torch.sum(d_KRO * hat_KRI, 1, out=g[self.weight])
        torch.sum(d_KRO, 1, out=g[self.bias])
        if first:
            return None
        inner_KRI = d_KRO * p[self.weight].unsqueeze(1)
        gradients: tuple[Tensor, ...] = torch.ops.aten.native_layer_norm_backward(
            inner_KRI, x_KRI, x_KRI.shape[-1:], mean, rstd, None, None, [True, False, False]
        )
        return gradients[0]


class ReLU(NamedTuple):
    """max(0, x)."""

    def forward(self, p: Views, x_KRI: Tensor) -> tuple[Tensor, Tensor]:
        """Saved: the outputs, which are positive where the inputs are. In place: no earlier layer keeps its output."""
        y_KRI = x_KRI.relu_()
        return y_KRI, y_KRI

    def backward(self, p: Views, g: Views, saved: Tensor, d_KRO: Tensor, *, first: bool = False) -> Tensor | None:
        """∂x = d where the output is positive."""
        return None if first else torch.ops.aten.threshold_backward(d_KRO, saved, 0)


def layers_of(body: nn.Sequential, prefix: str) -> list[Layer] | None:
    """The layers of a `Sequential` whose parameters are named `prefix`.number; None if one is not supported here.

    >>> layers_of(nn.Sequential(nn.Linear(2, 3), nn.ReLU()), "body")
    [Linear(weight='body.0.weight', bias='body.0.bias'), ReLU()]
    >>> layers_of(nn.Sequential(nn.Tanh()), "body") is None
    True
    """
    layers: list[Layer] = []
    for number, module in body.named_children():
        name = f"{prefix}.{number}"
        if type(module) is nn.Linear:
            layers.append(Linear(f"{name}.weight", f"{name}.bias" if module.bias is not None else None))
        elif type(module) is nn.LayerNorm and len(module.normalized_shape) == 1 and module.bias is not None:
            layers.append(LayerNorm(f"{name}.weight", f"{name}.bias", module.eps))
        elif type(module) is nn.ReLU and layers:
            layers.append(ReLU())
        elif not isinstance(module, nn.Flatten | nn.Dropout):  # dropout is checked to be off
            return None
    return layers


def run_forward(layers: Sequence[Layer], p: Views, x_KRI: Tensor) -> tuple[Tensor, list[Any]]:
    """The outputs of the last layer, and what every layer saved."""
    saved = []
    for layer in layers:
        x_KRI, kept = layer.forward(p, x_KRI)
        saved.append(kept)
    return x_KRI, saved


def run_backward(layers: Sequence[Layer], p: Views, g: Views, saved: Sequence[Any], d: Tensor | None) -> None:
    """Fill `g`, from the gradient of the last layer's outputs."""
    for place in reversed(range(len(layers))):
        assert d is not None
        d = layers[place].backward(p, g, saved[place], d, first=place == 0)
