"""Vector algebra on lists of tensors: a network's parameters as one vector.

Each function makes a handful of `torch._foreach_*` calls, whatever the number of tensors.
"""

import contextlib
import math
from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor

Params = list[Tensor] | tuple[Tensor, ...]

# Reading a few numbers one by one is quicker than stacking them first; beyond this many it is not.
_FEW = 6
_PLAIN = frozenset({Tensor, torch.nn.Parameter})
_HALF = torch.finfo(torch.float16).max
_ONE_WIDE = frozenset({torch.float32, torch.float64, torch.complex64, torch.complex128})


def dot(a: Params, b: Params) -> Tensor:
    """⟨a, b⟩ summed over all tensors, as a scalar tensor; complex ones count as pairs of real numbers.

    >>> dot([torch.tensor([1.0, 2.0])], [torch.tensor([3.0, 4.0])]).item()
    11.0
    """
    products = torch._foreach_mul([wide(t) for t in a], [wide(t) for t in b])
    return whole(sum_of([product.sum() for product in products]))


def norm(a: Params) -> Tensor:
    """‖a‖₂ over all tensors, as a scalar tensor; half precision is summed in single, shards over all ranks.

    >>> norm([torch.tensor([3.0]), torch.tensor([[4.0]])]).item()
    5.0
    >>> norm([torch.full((4,), 300.0, dtype=torch.float16)]).item()  # its square overflows in half precision
    600.0
    """
    return whole(torch.linalg.vector_norm(torch.stack(_together(_norms(a)))))


def length(a: Params, *, few: int = _FEW) -> float:
    """‖a‖₂ over all tensors, as a number on the host: the same as `norm`, a little quicker on the CPU.

    Up to `few` norms are read one by one, an operator each; more are stacked first.

    >>> length([torch.tensor([3.0]), torch.tensor([[4.0]])])
    5.0
    >>> length([])
    0.0
    """
    if not a:
        return 0.0
    first = a[0].dtype
    # The usual case first and flat: between two passes of a tiny network every call counts.
    if first in _ONE_WIDE and not [t for t in a if t.dtype is not first or type(t) not in _PLAIN or not t.is_cpu]:
        each = torch._foreach_norm(a)
        return math.hypot(*([n.item() for n in each] if len(each) <= few else torch.stack(each).tolist()))
    norms = _norms(a)
    if is_shard(norms[0]):
        return float(whole(torch.linalg.vector_norm(torch.stack(norms))))
    return math.hypot(*torch.stack(_together(norms)).tolist())


def plain_alike(tensors: Params) -> bool:
    """Whether all are ordinary dense tensors on the CPU, of one real type that sums may be taken in.

    >>> plain_alike([torch.zeros(1)]), plain_alike([torch.zeros(1), torch.zeros(1, dtype=torch.float64)])
    (True, False)
    """
    first = tensors[0].dtype if tensors else None
    wide = first is torch.float32 or first is torch.float64
    return wide and not [t for t in tensors if t.dtype is not first or type(t) not in _PLAIN or not t.is_cpu]


def scale(a: Params, factor: float | Tensor) -> list[Tensor]:
    """The product factor · a.

    >>> [t.item() for t in scale([torch.tensor(1.0), torch.tensor(2.0)], 3.0)]
    [3.0, 6.0]
    """
    return list(torch._foreach_mul(list(a), factor))


def as_addend(a: Params, factor: float) -> tuple[Params, float]:
    """The product factor · a as a vector and a factor that `_foreach_add` takes.

    Torch refuses a factor that the precision of a tensor does not hold, although the product may be small.

    >>> a = [torch.tensor([2**-20], dtype=torch.float16)]
    >>> as_addend(a, 2.0**20), as_addend(a, 8.0)[1]
    (([tensor([1.], dtype=torch.float16)], 1.0), 8.0)
    """
    if abs(factor) > _HALF and any(t.dtype is torch.float16 for t in a):
        return scale(a, factor), 1.0
    return a, factor


def add(a: Params, b: Params, factor: float = 1.0) -> list[Tensor]:
    """The sum a + factor · b.

    >>> add([torch.tensor([1.0, 1.0])], [torch.tensor([1.0, 2.0])], 0.5)[0].tolist()
    [1.5, 2.0]
    """
    b, factor = as_addend(b, factor)
    return list(torch._foreach_add(list(a), list(b), alpha=factor))


def swappable(params: Params) -> bool:
    """Whether the parameters' storage may be swapped, since nothing else refers to it: plain tensors on the CPU.

    >>> swappable([torch.zeros(1)])
    True
    """
    return all(t.is_cpu and type(t) in _PLAIN for t in params)


class Home(NamedTuple):
    """The original values of displaced parameters, for `restore`."""

    params: list[Tensor]
    values: list[Tensor]
    swapped: bool


def displace(
    params: Params,
    direction: Params,
    size: float | Tensor = 1.0,
    *,
    swap: bool | None = None,
    aside: Params | None = None,
) -> Home:
    """Move `params` to params + size · direction, and return what `restore` needs.

    With `swap` the parameters point at the new values until restored and their own storage is not written: one pass
    over memory instead of three. Without it the values are copied and changed in place, which shards, captured graphs
    and packed recurrent weights rely on. By default plain tensors on the CPU are swapped. `aside` is memory for the
    copy, the `values` of an earlier displacement: on a device, new memory takes longer than the copy itself.

    >>> w = torch.tensor([1.0, 2.0])
    >>> home = displace([w], [torch.tensor([1.0, 1.0])], 0.5)
    >>> w.tolist(), restore(home), w.tolist()
    ([1.5, 2.5], None, [1.0, 2.0])
    """
    tensors = list(params)
    if not isinstance(size, Tensor):
        direction, size = as_addend(direction, size)
    if swap if swap is not None else swappable(tensors):
        values = [t.data for t in tensors]
        for tensor, new in zip(tensors, torch._foreach_add(values, direction, alpha=cast(float, size)), strict=True):
            tensor.data = new
        return Home(tensors, values, True)
    with torch.no_grad():
        local = [_local(t) for t in tensors]
        values = list(aside) if aside is not None and alike(aside, local) else [torch.empty_like(t) for t in local]
        torch._foreach_copy_(values, local)  # one launch on a GPU, where clones would be one for each tensor
        along = [_local(t) for t in direction]
        if isinstance(size, Tensor):  # on a device, where reading it would block
            torch._foreach_add_(local, torch._foreach_mul(along, size))
        else:
            torch._foreach_add_(local, along, alpha=size)
    return Home(tensors, values, False)


def alike(a: Params, b: Params) -> bool:
    """Whether the tensors match pairwise in type, shape and layout, so that one list can be copied into the other.

    >>> alike([torch.zeros(2)], [torch.ones(2)]), alike([torch.zeros(2)], [torch.ones(3)])
    (True, False)
    """
    facts = [[(t.dtype, t.device, t.shape, t.stride()) for t in each] for each in (a, b)]
    return facts[0] == facts[1]


def restore(home: Home) -> None:
    """Restore displaced parameters bit for bit: never by subtracting, since (w + ε) − ε ≠ w."""
    if home.swapped:
        for tensor, value in zip(home.params, home.values, strict=True):
            tensor.data = value
    else:
        with torch.no_grad():
            torch._foreach_copy_([_local(t) for t in home.params], home.values)


@contextlib.contextmanager
def displaced(params: Params, offset: Params, *, swap: bool | None = None) -> Iterator[None]:
    """Within the context `params` hold params + offset; afterwards they have their old values, bit for bit.

    >>> w = torch.tensor([0.1])
    >>> with displaced([w], [torch.tensor([1e8])]):
    ...     inside = w.item()
    >>> inside, w.item() == torch.tensor(0.1).item()
    (100000000.0, True)
    """
    home = displace(params, offset, swap=swap)
    try:
        yield
    finally:
        restore(home)


def sum_of(scalars: Params) -> Tensor:
    """The sum of scalar tensors, as a scalar tensor.

    >>> sum_of([torch.tensor(1.0), torch.tensor(2.0)]).item()
    3.0
    """
    return torch.stack(list(scalars)).sum()


def is_shard(t: Tensor) -> bool:
    """Whether t is one rank's part of a tensor spread over several ranks (DTensor, as FSDP2 makes them).

    >>> is_shard(torch.zeros(1))
    False
    """
    return type(t) not in _PLAIN and hasattr(t, "device_mesh")


def whole(t: Tensor) -> Tensor:
    """A tensor with all its shards, which all ranks gather together; any other tensor as it is.

    >>> whole(torch.ones(2))
    tensor([1., 1.])
    """
    full: Tensor = cast(Any, t).full_tensor() if is_shard(t) else t
    return full


def sharded_like(full: Tensor, t: Tensor) -> Tensor:
    """A full tensor, present on every rank, in the layout of t: sharded if t is.

    >>> sharded_like(torch.ones(2), torch.zeros(2))
    tensor([1., 1.])
    """
    if not is_shard(t):
        return full
    from torch.distributed.tensor import distribute_tensor

    return distribute_tensor(full, cast(Any, t).device_mesh, cast(Any, t).placements)


def _norms(a: Params) -> list[Tensor]:
    """‖t‖ for every tensor, in one dtype wide enough not to overflow."""
    tensors = list(a)
    dtypes = {t.dtype for t in tensors}
    if dtypes <= _ONE_WIDE and len(dtypes) == 1:
        return list(torch._foreach_norm(tensors))
    real = [_real(t) for t in tensors]
    dtype = torch.float64 if any(t.dtype == torch.float64 for t in real) else torch.float32
    return list(torch._foreach_norm(real, 2, dtype=dtype))


def _together(scalars: list[Tensor]) -> list[Tensor]:
    """The scalars on one device."""
    home = scalars[0].device
    return scalars if home.type == "cpu" else [t.to(home) for t in scalars]


def wide(t: Tensor) -> Tensor:
    """The tensor as real numbers whose products neither overflow nor vanish.

    >>> wide(torch.tensor([1 + 2j])), wide(torch.ones(1, dtype=torch.float16)).dtype
    (tensor([[1., 2.]]), torch.float32)
    """
    return t.float() if t.dtype in (torch.float16, torch.bfloat16) else _real(t)


def _real(t: Tensor) -> Tensor:
    return torch.view_as_real(t.resolve_conj()) if t.is_complex() else t


def _local(t: Tensor) -> Tensor:
    """The part on this rank of a sharded tensor (DTensor); any other tensor as it is."""
    local: Tensor = cast(Any, t).to_local() if is_shard(t) else t
    return local
