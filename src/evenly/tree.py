"""Vector algebra on lists of tensors: the parameters of a network as one long vector.

Each function makes a handful of `torch._foreach_*` calls, whatever the number of tensors.
"""

import contextlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

Params = Sequence[Tensor]


def dot(a: Params, b: Params) -> Tensor:
    """⟨a, b⟩ summed over all tensors, as a scalar tensor.

    >>> dot([torch.tensor([1.0, 2.0])], [torch.tensor([3.0, 4.0])]).item()
    11.0
    """
    return torch.stack([product.sum() for product in torch._foreach_mul(list(a), list(b))]).sum()


def norm(a: Params) -> Tensor:
    """‖a‖₂ over all tensors, as a scalar tensor.

    >>> norm([torch.tensor([3.0]), torch.tensor([[4.0]])]).item()
    5.0
    """
    return torch.linalg.vector_norm(torch.stack(torch._foreach_norm(list(a))))


def scale(a: Params, factor: float | Tensor) -> list[Tensor]:
    """Factor · a.

    >>> [t.item() for t in scale([torch.tensor(1.0), torch.tensor(2.0)], 3.0)]
    [3.0, 6.0]
    """
    return list(torch._foreach_mul(list(a), factor))


def add(a: Params, b: Params, factor: float = 1.0) -> list[Tensor]:
    """A + factor · b.

    >>> add([torch.tensor([1.0, 1.0])], [torch.tensor([1.0, 2.0])], 0.5)[0].tolist()
    [1.5, 2.0]
    """
    return list(torch._foreach_add(list(a), list(b), alpha=factor))


@contextlib.contextmanager
def displaced(params: Params, offset: Params) -> Iterator[None]:
    """Within the context `params` hold params + offset; afterwards they are what they were, bit for bit.

    The old values are copied back, never recomputed: in floating point (w + ε) − ε ≠ w.

    >>> w = torch.tensor([0.1])
    >>> with displaced([w], [torch.tensor([1e8])]):
    ...     inside = w.item()
    >>> inside, w.item() == torch.tensor(0.1).item()
    (100000000.0, True)
    """
    tensors = list(params)
    saved = torch._foreach_clone(tensors) if hasattr(torch, "_foreach_clone") else [t.detach().clone() for t in tensors]
    with torch.no_grad():
        torch._foreach_add_(tensors, list(offset))
    try:
        yield
    finally:
        with torch.no_grad():
            torch._foreach_copy_(tensors, saved)
