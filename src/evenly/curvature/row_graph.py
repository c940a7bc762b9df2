"""What the graph of a forward pass proves: that each weight is used once, and that no operation mixes examples.

If row n of a layer's output reaches row n of the network's outputs only, and the layer's weight is used nowhere else,
then the gradient of output n is that of the layer at row n alone. Both can be read off the graph, for all examples and
without arithmetic. If the graph proves nothing, a numerical check decides (`capture.capture_layers`).
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from torch import Tensor

ACCUMULATE = "torch::autograd::AccumulateGrad"
# Each acts on one row at a time whatever its settings, for tensors whose first axis is the examples.
PLAIN_NAMES = (
    "Abs", "Add", "AvgPool1D", "AvgPool2D", "AvgPool3D", "AdaptiveAvgPool2D", "AdaptiveAvgPool3D",
    "AdaptiveMaxPool2D", "Clamp", "Clone", "Cos", "Div", "Elu", "Exp", "Gelu", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LeakyRelu", "Log", "LogSigmoid", "MaxPool2DWithIndices", "MaxPool3DWithIndices", "Mish", "Mul",
    "NativeGroupNorm", "Neg", "Pow", "Relu", "Rsqrt", "Sigmoid", "Silu", "Sin", "Softplus", "Sqrt", "Sub", "Tanh",
    "Threshold", "ToCopy",
)  # fmt: skip
PLAIN = frozenset(f"{name}Backward0" for name in PLAIN_NAMES)
VIEWS = ("ViewBackward0", "UnsafeViewBackward0", "ReshapeAliasBackward0")


def is_row_wise(outputs: Tensor, params: Sequence[Tensor]) -> bool:
    """Whether the graph of `outputs` (N × …) uses every parameter once and keeps the examples apart.

    >>> import torch
    >>> layer = torch.nn.Linear(2, 2)
    >>> f = layer(torch.ones(3, 2)).relu()
    >>> [is_row_wise(g, [layer.weight]) for g in (f, f.flip(0), f @ layer.weight)]  # the last uses the weight twice
    [True, False, False]
    """
    num, root = len(outputs), outputs.grad_fn
    if root is None:
        return False
    uses: Counter[int] = Counter()
    seen, waiting = {root}, [root]
    while waiting:
        node = waiting.pop()
        if node.name() == ACCUMULATE:
            continue
        if not _is_weight(node) and not (_has_rows(node, num, outermost=node is root) and _keeps_rows(node)):
            return False
        for after, _ in node.next_functions:
            if after is None:
                continue
            if after.name() == ACCUMULATE:
                uses[id(after.variable)] += 1  # type: ignore[attr-defined]  # such nodes have one
            if after not in seen:
                seen.add(after)
                waiting.append(after)
    return all(uses[id(p)] == 1 for p in params)


def _has_rows(node: Any, num: int, *, outermost: bool) -> bool:
    """Whether the node's result has a row per example, and, within the network, more than one axis.

    A vector of N numbers would be broadcast along the wrong axis of a matrix with N columns.
    """
    shapes = [tuple(one.shape) for one in getattr(node, "_input_metadata", ())]
    return len(shapes) > 0 and len(shapes[0]) > (0 if outermost else 1) and shapes[0][0] == num


def _keeps_rows(node: Any) -> bool:
    name = node.name()
    return (name in PLAIN and _same_axes(node)) or (name in RULES and RULES[name](node))


def _same_axes(node: Any) -> bool:
    """Whether no tensor that depends on the examples is broadcast to further axes, which would shift the first."""
    axes = len(node._input_metadata[0].shape)
    return all(
        _is_weight(after) or len(after._input_metadata[index].shape) == axes for after, index in node.next_functions
    )


def _is_weight(node: Any) -> bool:
    """Whether it is a parameter, its transpose, or a constant."""
    if node is None or node.name() == ACCUMULATE:
        return True
    return bool(node.name() == "TBackward0" and node.next_functions[0][0].name() == ACCUMULATE)


def _product(node: Any) -> bool:
    """X W, or B + X W: the right factor does not depend on the examples."""
    return _is_weight(node.next_functions[-1][0])


def _convolution(node: Any) -> bool:
    return all(_is_weight(after) for after, _ in node.next_functions[1:])


def _view(node: Any) -> bool:
    shape = node._input_metadata[0].shape
    return len(shape) > 0 and bool(node._saved_self_sym_sizes[0] == shape[0])


def _reduction(node: Any) -> bool:
    """A mean, sum, squeeze or choice along other axes than the first; torch keeps negative axes as unsigned."""
    saved, axes = node._saved_dim, len(node._saved_self_sym_sizes)
    dims = saved if isinstance(saved, tuple) else (saved,)
    return len(dims) > 0 and all((d - 2**64 if d >= 2**63 else d) % axes != 0 for d in dims)


def _join(node: Any) -> bool:
    """Concatenation along another axis than the first; an axis counted from the end is not trusted."""
    return bool(0 < node._saved_dim < 2**63)


RULES: dict[str, Callable[[Any], bool]] = {
    "MmBackward0": _product,
    "AddmmBackward0": _product,
    "ConvolutionBackward0": _convolution,
    **dict.fromkeys(VIEWS, _view),
    **dict.fromkeys(("MeanBackward1", "SumBackward1", "SqueezeBackward1", "SelectBackward0"), _reduction),
    "CatBackward0": _join,
    "NativeBatchNormBackward0": lambda node: not node._saved_training,
    "NativeLayerNormBackward0": lambda node: len(node._saved_normalized_shape) < len(node._input_metadata[0].shape),
}
