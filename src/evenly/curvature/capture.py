"""Per-example gradients of one chunk, layer by layer, from each layer's input and output gradient; and their check.

Shapes: N examples, C rows of one example's Jacobian.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import GradientEdge, get_gradient_edge

from evenly.curvature.layers import RULES, Piece, Wanted, Whole, layer_gradients, totals
from evenly.curvature.per_example import jacobians
from evenly.curvature.row_graph import is_row_wise

Pieces = list[Piece]
Chunk = tuple[Tensor, Tensor | None]
Layers = dict[nn.Module, Wanted]
Seen = dict[nn.Module, tuple[Tensor, GradientEdge]]
PROBE = 2  # examples on which the layers are checked
# From outputs (N × …) and labels to the vectors that are pulled back: N × C × …, one set of C per example.
Slopes = Callable[[Tensor, Tensor | None], Tensor]


def capture(
    model: nn.Module,
    chunk: Chunk,
    slopes: Slopes,
    params: Mapping[str, nn.Parameter],
    layers: Layers | None,
    *,
    check: bool = True,
) -> Pieces | None:
    """The gradients of one chunk in pieces: one piece a layer, or all in one where `layers` is None.

    None if the check that the layers passed on the first examples fails on these.
    """
    if layers is not None:
        return capture_layers(model, chunk, slopes, layers, check=check)
    return [Whole(_capture_examples(model, *chunk, slopes, list(params)))]


def find_layers(model: nn.Module, params: Mapping[str, nn.Parameter], chunk: Chunk, slopes: Slopes) -> Layers | None:
    """The layers that own `params`, if gradients can be computed layer by layer; None if only example by example.

    Every parameter must belong to one layer that has a rule and is called once. Hooks cannot show whether the weights
    are used elsewhere too, or whether the layer gets the examples in another order. So the gradients of a few examples
    are compared with those of autograd.
    """
    names = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    if len(names) != len(list(model.parameters())):
        return None  # tied weights
    chosen = {id(p) for p in params.values()}
    layers: Layers = {}
    for module in model.modules():
        own = {name for name, p in module._parameters.items() if p is not None and id(p) in chosen}
        if own:
            if type(module) not in RULES or not own <= {"weight", "bias"}:
                return None
            layers[module] = ("weight" in own, "bias" in own)
    x, y = chunk
    return (
        layers if _agrees_with_autograd(model, (x[:PROBE], None if y is None else y[:PROBE]), slopes, layers) else None
    )


def capture_layers(
    model: nn.Module, chunk: Chunk, slopes: Slopes, layers: Layers, *, check: bool = True
) -> Pieces | None:
    """One piece per layer, from one forward and C backward passes; None where a layer was not called exactly once.

    With `check`, the graph must prove that the pieces are right for all examples (`row_graph`). Where it cannot, one
    more backward pass of a random mixture of all rows must equal that of the pieces. It fails if a weight is used
    outside of its layer, or examples change places within the network, be it for some of them only; then a warning is
    given and None returned.
    """
    x, y = chunk
    outputs, seen = _forward_with_hooks(model, x, layers)
    if seen is None:
        return None
    pulled_NC = slopes(outputs, y)
    params = _layer_parameters(seen, layers)
    if not check or is_row_wise(outputs, params):
        return _pieces(outputs, seen, pulled_NC, layers, keep=False)
    pieces = _pieces(outputs, seen, pulled_NC, layers, keep=True)
    if pieces is None:
        return None
    z_NC = _random_weights(pulled_NC)
    mixed = torch.einsum("nc,nck->nk", z_NC, pulled_NC.flatten(2)).reshape(outputs.shape)
    expected = torch.autograd.grad(outputs, params, mixed, materialize_grads=True)
    if _mixture_agrees(expected, seen, layers, pieces, z_NC):
        return pieces
    warnings.warn(
        f"{type(model).__name__}: gradients layer by layer are not those of the whole network, which uses a weight "
        "outside of its layer or reorders its examples. They are taken example by example instead, more slowly.",
        stacklevel=2,
    )
    return None


def _random_weights(pulled_NC: Tensor) -> Tensor:
    """A random weight for every row, no two alike: with equal weights, swapped rows would go unnoticed."""
    rng = torch.Generator().manual_seed(len(pulled_NC))
    return torch.randn(pulled_NC.shape[:2], generator=rng).to(pulled_NC.device, pulled_NC.dtype)


def _mixture_agrees(expected: Sequence[Tensor], seen: Seen, layers: Layers, pieces: Pieces, z_NC: Tensor) -> bool:
    """Whether Σ z_r g_r over all rows r is the gradient of that mixture which autograd gives, parameter by parameter.

    It is P numbers that must agree; 1ᵀK1 = ‖∇Σf‖² and zᵀKz = ‖∇Σzf‖² follow from it.
    """
    own = [
        part for layer, piece in zip(seen, pieces, strict=True) for part in totals(piece, layer, layers[layer], z_NC)
    ]
    largest = max(float(theirs.abs().max()) for theirs in expected)
    return all(
        float((ours - theirs).abs().max()) <= 2e-3 * float(theirs.abs().max()) + 1e-5 * largest + 1e-12
        for ours, theirs in zip(own, expected, strict=True)
    )


def _layer_parameters(seen: Seen, layers: Layers) -> list[Tensor]:
    """The wanted parameters of the layers, in the order of `totals`."""
    return [
        getattr(layer, name)
        for layer in seen
        for name, wants in zip(("weight", "bias"), layers[layer], strict=True)
        if wants
    ]


def _pieces(outputs: Tensor, seen: Seen, pulled_NC: Tensor, layers: Layers, *, keep: bool) -> Pieces | None:
    """One piece per layer; `keep` keeps the graph for another pass."""
    edges = [edge for _, edge in seen.values()]
    num_rows = pulled_NC.shape[1]
    slopes_of: list[list[Tensor]] = [[] for _ in edges]
    for c in range(num_rows):
        slopes: Sequence[Tensor | None] = torch.autograd.grad(
            outputs,
            edges,
            pulled_NC[:, c].reshape(outputs.shape),
            retain_graph=keep or c + 1 < num_rows,
            allow_unused=True,
        )
        for held, slope in zip(slopes_of, slopes, strict=True):
            if slope is None:
                return None
            held.append(slope)
    pieces: Pieces = []
    for (layer, (a, _)), held in zip(seen.items(), slopes_of, strict=True):
        d_NC = held[0][:, None] if num_rows == 1 else torch.stack(held, dim=1)
        piece = layer_gradients(layer, a, d_NC, layers[layer]) if len(a) == len(d_NC) == len(outputs) else None
        if piece is None:
            return None
        pieces.append(piece)
    return pieces


def _forward_with_hooks(model: nn.Module, x: Tensor, layers: Layers) -> tuple[Tensor, Seen | None]:
    """The outputs, and for every layer its input and the graph edge of its output."""
    seen: Seen = {}
    calls = 0

    def watch(layer: nn.Module, inputs: tuple[Any, ...], output: Tensor) -> None:
        nonlocal calls
        calls += 1
        # The edge, not the tensor, which an in-place activation would change.
        seen[layer] = (inputs[0].detach(), get_gradient_edge(output))

    handles = [layer.register_forward_hook(watch) for layer in layers]
    try:
        outputs = model(x)
    finally:
        for handle in handles:
            handle.remove()
    return outputs, seen if calls == len(seen) == len(layers) else None


def _agrees_with_autograd(model: nn.Module, probe: Chunk, slopes: Slopes, layers: Layers) -> bool:
    """Whether every example's gradients, layer by layer, are those that autograd gives for that example."""
    outputs, seen = _forward_with_hooks(model, probe[0], layers)
    if seen is None:
        return False
    pulled_NC = slopes(outputs, probe[1])
    pieces = _pieces(outputs, seen, pulled_NC, layers, keep=True)
    if pieces is None:
        return False
    summed = pulled_NC.sum(1).reshape(outputs.shape)
    params = _layer_parameters(seen, layers)
    for e in range(len(outputs)):
        expected = torch.autograd.grad(outputs[e], params, summed[e], retain_graph=True, materialize_grads=True)
        own = (
            part
            for layer, piece in zip(seen, pieces, strict=True)
            for part in totals(piece.rows(slice(e, e + 1)), layer, layers[layer])
        )
        for ours, theirs in zip(own, expected, strict=True):
            if not torch.allclose(ours, theirs, rtol=1e-3, atol=1e-4 * float(theirs.abs().max()) + 1e-12):
                return False
    return True


def _capture_examples(model: nn.Module, x: Tensor, y: Tensor | None, slopes: Slopes, names: list[str]) -> Tensor:
    with torch.no_grad():
        outputs = model(x)
    pulled_NC = slopes(outputs, y).flatten(2)

    def value(f: Tensor, rows_C: Tensor | None) -> Tensor:
        assert rows_C is not None
        return rows_C @ f.reshape(-1)

    parts = []
    # Full gradients of many examples are large: a few at a time, whatever the chunk.
    for start in range(0, len(x), 64):
        rows = slice(start, start + 64)
        parts.append(jacobians(model, x[rows], pulled_NC[rows], value, names))
    return torch.cat(parts)
