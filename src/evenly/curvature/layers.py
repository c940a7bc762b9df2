"""The contribution of each kind of layer to the inner products of per-example gradients.

A layer's gradient for one example is a product of its input and its output's gradient; inner products between examples
follow from the two Gram matrices, without the gradient itself (Goodfellow, 2015).

Shapes: N examples, M those they are paired with, C outputs (rows of the Jacobian) of an example, T positions
(pixels, tokens), I inputs and O outputs of the layer at one position, P its parameters.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Factored:
    """Gradients δ ⊗ a of a layer that acts on one position: kept as factors, a_NI and δ_NCO."""

    a_NI: Tensor
    d_NCO: Tensor

    def inner(self, other: "Factored") -> Tensor:
        """⟨δ ⊗ a, δ' ⊗ a'⟩ = ⟨a, a'⟩⟨δ, δ'⟩ for every pair of rows: NC × MC."""
        num, many, dim = len(self.a_NI), len(other.a_NI), self.d_NCO.shape[1]
        a_NM = self.a_NI @ other.a_NI.T
        d_NC_MC = self.d_NCO.flatten(0, 1) @ other.d_NCO.flatten(0, 1).T
        if dim == 1:
            return a_NM.mul_(d_NC_MC)
        return d_NC_MC.view(num, dim, many, dim).mul_(a_NM[:, None, :, None]).view(num * dim, many * dim)

    def rows(self, part: slice) -> "Factored":
        """Those examples only."""
        return Factored(self.a_NI[part], self.d_NCO[part])

    @property
    def bytes(self) -> int:
        """What it holds in memory."""
        return self.a_NI.nbytes + self.d_NCO.nbytes

    def empty(self, size: int) -> Tensor:
        """Room for size × size numbers of the same kind."""
        return self.a_NI.new_empty(size, size)


@dataclass(frozen=True)
class Whole:
    """Gradients as they are, g_NCP."""

    g_NCP: Tensor

    def inner(self, other: "Whole") -> Tensor:
        """⟨g, g'⟩ for every pair of rows: NC × MC."""
        return self.g_NCP.flatten(0, 1) @ other.g_NCP.flatten(0, 1).T

    def rows(self, part: slice) -> "Whole":
        """Those examples only."""
        return Whole(self.g_NCP[part])

    @property
    def bytes(self) -> int:
        """What it holds in memory."""
        return self.g_NCP.nbytes

    def empty(self, size: int) -> Tensor:
        """Room for size × size numbers of the same kind."""
        return self.g_NCP.new_empty(size, size)


FEW = 64  # positions below which unfolding beats a convolution with one group per example
Piece = Factored | Whole
Wanted = tuple[bool, bool]  # whether the gradients of weight and bias are asked for
Rule = Callable[[nn.Module, Tensor, Tensor, Wanted], Piece | None]


def layer_gradients(layer: nn.Module, a: Tensor, d_NC: Tensor, wanted: Wanted) -> Piece | None:
    """The gradients of the layer's parameters, from its input a (N × …) and the slopes at its output (N × C × …).

    None where there is no rule. Exact types only: a subclass may compute something else.

    >>> piece = layer_gradients(nn.Linear(2, 1), torch.ones(3, 2), torch.ones(3, 1, 1), (True, False))
    >>> piece.inner(piece).tolist()[0]
    [2.0, 2.0, 2.0]
    """
    rule = RULES.get(type(layer))
    return rule(layer, a, d_NC, wanted) if rule else None


def totals(piece: Piece, layer: nn.Module, wanted: Wanted, weights_NC: Tensor | None = None) -> list[Tensor]:
    """The gradients of weight and bias (those wanted), summed over examples and outputs, weighted where asked.

    >>> layer = nn.Linear(1, 1)
    >>> piece = layer_gradients(layer, torch.tensor([[2.0], [5.0]]), torch.ones(2, 1, 1), (True, True))
    >>> [t.item() for t in totals(piece, layer, (True, True))]
    [7.0, 2.0]
    """
    names = [name for name, wants in zip(("weight", "bias"), wanted, strict=True) if wants]
    params = [getattr(layer, name) for name in names]
    if isinstance(piece, Factored):
        d_NCO = piece.d_NCO if weights_NC is None else piece.d_NCO * weights_NC[:, :, None]
        sum_OI = d_NCO.sum(1).mT @ piece.a_NI
        return [sum_OI[:, :-1], sum_OI[:, -1]] if wanted == (True, True) else [sum_OI]
    sum_P = piece.g_NCP.sum((0, 1)) if weights_NC is None else weights_NC.reshape(-1) @ piece.g_NCP.flatten(0, 1)
    parts = torch.split(sum_P, [p.numel() for p in params])
    return [part.view(p.shape) for part, p in zip(parts, params, strict=True)]


def _linear(layer: nn.Module, a: Tensor, d_NC: Tensor, wanted: Wanted) -> Piece | None:
    if a.ndim == 2 and wanted[0]:
        a_NI = torch.cat([a, a.new_ones(len(a), 1)], dim=1) if wanted[1] else a
        # With one output the gradient is no larger than its factors and saves one product.
        return Whole(d_NC * a_NI[:, None]) if d_NC.shape[2] == 1 else Factored(a_NI, d_NC)
    a_NTI = a.reshape(len(a), -1, a.shape[-1])
    return _sum_positions(a_NTI, d_NC.reshape(*d_NC.shape[:2], a_NTI.shape[1], -1), wanted)


def _convolution(layer: nn.Module, a: Tensor, d_NC: Tensor, wanted: Wanted) -> Piece | None:
    """Examples as groups of one convolution, whose weight gradient then keeps them apart; by unfolding small images."""
    assert isinstance(layer, nn.Conv1d | nn.Conv2d | nn.Conv3d)
    if layer.padding_mode != "zeros" or isinstance(layer.padding, str):
        return None
    if isinstance(layer, nn.Conv2d) and layer.groups == 1 and d_NC[0, 0, 0].numel() < FEW:
        a_NIT = F.unfold(a, layer.kernel_size, layer.dilation, layer.padding, layer.stride)
        return _sum_positions(a_NIT.mT, d_NC.flatten(3).mT, wanted)
    num, weight = len(a), layer.weight
    geometry = (layer.stride, layer.padding, layer.dilation, False, [0] * len(layer.stride), num * layer.groups)
    gradients = []
    if wanted[0]:
        side_by_side = a.reshape(1, -1, *a.shape[2:])
        shape_only = weight.detach().new_empty(1).expand(num * len(weight), *weight.shape[1:])
        parts = [
            torch.ops.aten.convolution_backward(
                d_N.reshape(1, -1, *d_N.shape[2:]), side_by_side, shape_only, None, *geometry, [False, True, False]
            )[1].view(num, -1)
            for d_N in d_NC.unbind(1)
        ]
        gradients.append(torch.stack(parts, dim=1))
    if wanted[1]:
        gradients.append(d_NC.flatten(3).sum(3))
    return Whole(torch.cat(gradients, dim=2))


def _sum_positions(a_NTI: Tensor, d_NCTO: Tensor, wanted: Wanted) -> Whole:
    """Σ_t δ_t ⊗ a_t over the positions, and Σ_t δ_t for the bias."""
    weight, bias = wanted
    gradients = []
    if weight:
        gradients.append((d_NCTO.mT @ a_NTI[:, None]).flatten(2))
    if bias:
        gradients.append(d_NCTO.sum(2))
    return Whole(torch.cat(gradients, dim=2))


def _normalisation(layer: nn.Module, a: Tensor, d_NC: Tensor, wanted: Wanted) -> Piece | None:
    """Scale and shift of a normalisation: Σ δ·x̂ and Σ δ over the positions."""
    if isinstance(layer, nn.LayerNorm):
        hat = F.layer_norm(a, layer.normalized_shape, eps=layer.eps)
        inner = math.prod(layer.normalized_shape)
        d_NCTO, hat_NTO = d_NC.reshape(*d_NC.shape[:2], -1, inner), hat.reshape(len(a), -1, inner)
    else:
        if isinstance(layer, nn.GroupNorm):
            hat = F.group_norm(a, layer.num_groups, eps=layer.eps)
        else:
            assert isinstance(layer, nn.BatchNorm1d | nn.BatchNorm2d | nn.BatchNorm3d)
            hat = F.batch_norm(a, layer.running_mean, layer.running_var, eps=layer.eps)
        d_NCTO, hat_NTO = d_NC.reshape(*d_NC.shape[:3], -1).mT, hat.reshape(*a.shape[:2], -1).mT
    sums = [(d_NCTO * hat_NTO[:, None]).sum(2), d_NCTO.sum(2)]
    return Whole(torch.cat([part for part, wants in zip(sums, wanted, strict=True) if wants], dim=2))


RULES: dict[type[nn.Module], Rule] = {
    nn.Linear: _linear,
    nn.Conv1d: _convolution,
    nn.Conv2d: _convolution,
    nn.Conv3d: _convolution,
    nn.LayerNorm: _normalisation,
    nn.GroupNorm: _normalisation,
    nn.BatchNorm1d: _normalisation,
    nn.BatchNorm2d: _normalisation,
    nn.BatchNorm3d: _normalisation,
}
