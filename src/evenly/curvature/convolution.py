"""Convolutions whose second derivative uses the same fast kernels as the first.

torch forms the weight's second derivative as a dilated convolution with kernels as large as the image, which no fast
CPU kernel serves; here it is an ordinary weight gradient. A Hessian product of a small CNN takes about 0.6 of the time.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

_DIMS: dict[Any, int] = {F.conv1d: 1, F.conv2d: 2, F.conv3d: 3}
Geometry = tuple[list[int], list[int], list[int], bool, list[int], int]


class TwiceDifferentiableConvolutions(TorchFunctionMode):
    """Within this mode convolutions have a fast second derivative, and no third one.

    >>> w = torch.ones(1, 1, 1, 1, requires_grad=True)
    >>> with TwiceDifferentiableConvolutions():
    ...     y = F.conv2d(torch.full((1, 1, 1, 1), 2.0), w).square().sum()
    >>> (g,) = torch.autograd.grad(y, w, create_graph=True)
    >>> g.item(), torch.autograd.grad(g.sum(), w)[0].item()
    (8.0, 8.0)
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: Iterable[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        given = dict(kwargs or {})
        dims = _DIMS.get(func)
        # padding="same" and the like, and inputs without a batch dimension, are left to torch.
        if dims is not None and not isinstance(given.get("padding", ([*args] + [0] * 5)[4]), str):
            return _convolution(dims, *args, **given)
        return func(*args, **given)


def _convolution(
    dims: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: int | Iterable[int] = 1,
    padding: int | Iterable[int] = 0,
    dilation: int | Iterable[int] = 1,
    groups: int = 1,
) -> Tensor:
    def each(value: int | Iterable[int]) -> list[int]:
        values = [value] if isinstance(value, int) else list(value)
        return values * dims if len(values) == 1 else values

    geometry: Geometry = (each(stride), each(padding), each(dilation), False, [0] * dims, groups)
    if input.ndim != dims + 2:
        return torch.convolution(input[None], weight, bias, *geometry)[0]
    output: Tensor = _Forward.apply(input, weight, bias, geometry)  # type: ignore[no-untyped-call]  # untyped in torch
    return output


class _Forward(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor | None, geometry: Geometry) -> Tensor:
        ctx.save_for_backward(x, w)
        ctx.geometry, ctx.bias = geometry, b is not None
        return torch.convolution(x, w, b, *geometry)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        x, w = ctx.saved_tensors
        wanted = [ctx.needs_input_grad[0], ctx.needs_input_grad[1], ctx.bias and ctx.needs_input_grad[2]]
        return (*_Backward.apply(slopes[0], x, w, ctx.geometry, wanted), None)  # type: ignore[no-untyped-call]  # untyped in torch


class _Backward(Function):
    @staticmethod
    def forward(ctx: Any, slope: Tensor, x: Tensor, w: Tensor, geometry: Geometry, wanted: list[bool]) -> Any:
        ctx.save_for_backward(slope, x, w)
        ctx.geometry = geometry
        ctx.set_materialize_grads(False)
        return _backward(slope, x, w, geometry, wanted)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, to_x: Tensor | None, to_w: Tensor | None, to_b: Tensor | None) -> Any:
        slope, x, w = ctx.saved_tensors
        for_slope, for_x, for_w = ctx.needs_input_grad[:3]
        d_slope = d_x = d_w = None
        if for_slope:
            parts = [torch.convolution(to_x, w, None, *ctx.geometry)] if to_x is not None else []
            if to_w is not None:
                parts.append(torch.convolution(x, to_w, to_b, *ctx.geometry))
            elif to_b is not None:
                parts.append(to_b.view(-1, *[1] * (slope.ndim - 2)).expand_as(slope))
            d_slope = sum(parts[1:], start=parts[0]) if parts else None
        if for_x and to_w is not None:
            d_x = _backward(slope, x, to_w, ctx.geometry, [True, False, False])[0]
        if for_w and to_x is not None:
            d_w = _backward(slope, to_x, w, ctx.geometry, [False, True, False])[1]
        return d_slope, d_x, d_w, None, None


def _backward(slope: Tensor, x: Tensor, w: Tensor, geometry: Geometry, wanted: list[bool]) -> Any:
    return torch.ops.aten.convolution_backward(slope, x, w, [w.shape[0]], *geometry, wanted)
