"""A symmetric matrix known only by its products, summed over chunks of data whose graphs are kept.

Shapes: P parameters, K vectors.
"""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from evenly.curvature.chunks import Chunks
from evenly.curvature.convolution import TwiceDifferentiableConvolutions
from evenly.device import exact
from evenly.errors import UsageError
from evenly.models.observation import flatten, observing, unflatten

if TYPE_CHECKING:
    from scipy.sparse.linalg import LinearOperator

Product = Callable[[Sequence[Tensor]], Sequence[Tensor]]
Build = Callable[[Tensor, Tensor | None, float], Product]
GIBIBYTE = 2**30


class Operator:
    """Products `operator @ v` of one matrix over all chunks.

    The graph of each chunk is built once and kept for all products while the kept ones fit into `memory` bytes;
    chunks beyond that are built again for each product. The answer is the same to the last digit.

    `size` is P; `products` counts the products taken so far.
    """

    def __init__(
        self, build: Build, *, model: nn.Module, params: Sequence[Tensor], chunks: Chunks, memory: int = GIBIBYTE
    ) -> None:
        self._build, self._model, self._params, self._chunks = build, model, list(params), chunks
        # Values, not versions: a fused optimizer and `p.data` change weights without a trace.
        self._at = [p.detach().clone() for p in self._params]
        self._kept: dict[int, Product] = {}
        self.size = sum(p.numel() for p in self._params)
        self.dtype, self.device = self._params[0].dtype, self._params[0].device
        self.products = 0
        if any(p.dtype != self.dtype or p.device != self.device for p in self._params):
            raise UsageError("the parameters are of several precisions or devices: curvature needs all of one kind.")
        self._room = chunks.num_examples if len(chunks) == 1 else self._num_kept(memory)

    def __matmul__(self, v: Tensor) -> Tensor:
        """H v for a vector of P numbers, or H V for P × K."""
        if v.shape[:1] != (self.size,) or v.ndim > 2:
            raise UsageError(f"the operator takes vectors of {self.size} numbers, not shape {tuple(v.shape)}.")
        if v.ndim == 2:
            return torch.stack([self @ column for column in v.T], dim=1)
        if not all(map(torch.equal, self._at, self._params)):
            raise UsageError("the parameters were changed after this operator was made: make a new one.")
        self.products += 1
        pieces = unflatten(v.to(self.dtype), self._params)
        total: list[Tensor] | None = None
        with exact():
            for position in range(len(self._chunks)):
                part = list(self._product(position)(pieces))
                # Not in place: autograd's result may share memory with v or with a kept graph.
                total = part if total is None else list(torch._foreach_add(total, part))
        return flatten(total or [])

    def as_scipy(self) -> "LinearOperator":
        """The same matrix as a `scipy.sparse.linalg.LinearOperator` in double precision, for eigsh, cg and the like.

        >>> from scipy.sparse.linalg import eigsh
        >>> from evenly.curvature import hessian
        >>> x = torch.tensor([[2.0, 0.0], [0.0, 4.0], [0.0, 0.0]], dtype=torch.float64)
        >>> model = nn.Linear(2, 1, bias=False).double()
        >>> H = hessian(model, (x, torch.zeros(3, dtype=torch.float64)), loss="squared").as_scipy()
        >>> round(float(eigsh(H, k=1, return_eigenvectors=False)[0]), 6)  # 16/3
        5.333333
        """
        from scipy.sparse.linalg import LinearOperator

        def multiply(v: Any) -> Any:
            vector = torch.from_numpy(np.ascontiguousarray(v, dtype=np.float64)).to(self.device, self.dtype)
            return (self @ vector).double().cpu().numpy()

        return LinearOperator(
            (self.size, self.size), matvec=multiply, rmatvec=multiply, matmat=multiply, dtype=np.float64
        )

    def dense(self) -> Tensor:
        """The whole P × P matrix, by P products: for tests and small networks."""
        return self @ torch.eye(self.size, dtype=self.dtype, device=self.device)

    def _product(self, position: int) -> Product:
        if position in self._kept:
            return self._kept[position]
        with observing(self._model, training=None), double_differentiable():
            x, y = self._chunks[position]
            product = self._build(x, y, self._chunks.sizes[position] / self._chunks.num_examples)
        if sum(self._chunks.sizes[: position + 1]) <= self._room:
            self._kept[position] = product
        return product

    def _num_kept(self, memory: int) -> int:
        """How many examples' graphs fit into `memory` bytes, extrapolated from a few examples."""
        many = min(4, self._chunks.sizes[0])
        few = many // 2  # 0 for chunks of one, where the memory shared by all examples counts too
        each = (self._graph_bytes(many) - (self._graph_bytes(few) if few else 0)) / (many - few)
        return int(memory / max(each, 1.0))

    def _graph_bytes(self, num: int) -> int:
        """The bytes that the graph of the first `num` examples keeps, beside the parameters."""
        x, y = (None if part is None else part[:num] for part in self._chunks[0])
        seen: dict[int, int] = {}

        def weigh(tensor: Tensor) -> Tensor:
            address, size = tensor.untyped_storage().data_ptr(), tensor.numel() * tensor.element_size()
            seen[address] = max(size, seen.get(address, 0))
            return tensor

        with (
            observing(self._model, training=None),
            double_differentiable(),
            torch.autograd.graph.saved_tensors_hooks(weigh, lambda tensor: tensor),
        ):
            assert x is not None
            # Keep the product alive, so that none of its tensors' addresses is reused and counted twice.
            _product = self._build(x, y, 1.0)
            return sum(seen.values())


@contextlib.contextmanager
def double_differentiable() -> Iterator[None]:
    """Enable gradients, convolutions with a fast second derivative, and attention that is twice differentiable."""
    with torch.enable_grad(), sdpa_kernel(SDPBackend.MATH), TwiceDifferentiableConvolutions():
        yield
