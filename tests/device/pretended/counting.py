"""What a piece of work asks of the device: kernels, moments in which the host waits, copies from the host."""

import sys
from collections import Counter
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

import pretended

# Operators that launch nothing: they make views, ask for memory, or look at facts.
_FREE = (
    "view", "as_strided", "expand", "slice", "select", "t.", "t", "transpose", "permute", "unsqueeze", "squeeze",
    "detach", "alias", "split", "split_with_sizes", "unbind", "_unsafe_view", "_reshape_alias", "diagonal", "unfold",
    "view_as_real", "lift_fresh", "empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "set_",
    "is_pinned", "_pin_memory", "_local_scalar_dense", "chunk", "record_stream", "is_same_size",
)  # fmt: skip
# Operators whose result has a size, or a value on the host, that only the device knows.
_WAITING = {
    "_local_scalar_dense", "nonzero", "bincount", "masked_select", "_unique2", "unique_dim", "unique_consecutive",
    "is_nonzero", "equal", "allclose", "_is_all_true", "_is_any_true",
}  # fmt: skip
_COPIES = ("_to_copy", "copy_", "_foreach_copy_")


class Count(TorchDispatchMode):
    """Counts within a `with`; every event is kept with the line of evenly, or of the test, that caused it.

    `kernels` are launches (one for a `_foreach_` call), `waits` what `torch.cuda.set_sync_debug_mode` would warn of,
    `blocking` the copies from the host that wait, being of memory that is not pinned, or not `non_blocking`, `sent` the
    bytes of all copies from the host, and `beside` those of copies on a stream that is not that of the computation.
    """

    def __init__(self) -> None:
        super().__init__()
        self.kernels: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self.blocking: Counter[str] = Counter()
        self.float64: Counter[str] = Counter()
        self.sent: Counter[str] = Counter()
        self.beside: Counter[str] = Counter()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        name = func.name().removeprefix("aten::").split(".")[0]
        given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)]
        made = [t for t in tree_leaves(out) if isinstance(t, torch.Tensor)]
        if not any(t.is_cuda for t in (*given, *made)):
            return out
        if any(t.is_cuda and t.dtype == torch.float64 for t in made):
            self.float64[f"{name} at {_line()}"] += 1
        if name == "lift_fresh":  # torch.tensor(…, device=): its copy from the host is not dispatched
            self._copy("_to_copy", [made[0].cpu()], made, non_blocking=False)
            return out
        if name in _COPIES:
            self._copy(name, given, made, kwargs.get("non_blocking", False) or (len(args) > 2 and args[2] is True))
            return out
        mask = name in ("index", "index_put_", "_index_put_impl_") and any(
            t.dtype == torch.bool or not t.is_cuda for t in given[1:] if t.ndim
        )
        if name in _WAITING or mask or (name == "repeat_interleave" and kwargs.get("output_size") is None):
            self.waits[f"{name} at {_line()}"] += 1
        if name not in _FREE:
            self.kernels[name] += 1
        return out

    def _copy(self, name: str, given: list[Any], made: list[Any], non_blocking: bool) -> None:
        source, target = (given[0], made[0]) if name == "_to_copy" else (given[-1], given[0])
        if source.is_cuda and target.is_cuda:
            self.kernels[name] += 1
            return
        if source.is_cuda:
            if not (non_blocking and target.is_pinned()):
                self.waits[f"read at {_line()}"] += 1
            return
        (self.beside if pretended.streams else self.sent)[_line()] += source.nbytes
        if not (non_blocking and source.is_pinned()) and source.numel():
            self.blocking[f"{(*source.shape,)} {source.dtype} at {_line()}"] += 1
            if not non_blocking:
                self.waits[f"copy at {_line()}"] += 1


class HostBytes(TorchDispatchMode):
    """The bytes of all tensors that operators make on the host within a `with`, views apart."""

    made = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        out = func(*args, **(kwargs or {}))
        if func.name().removeprefix("aten::").split(".")[0] not in _FREE:
            self.made += sum(t.nbytes for t in tree_leaves(out) if isinstance(t, torch.Tensor) and t.is_cpu)
        return out


def _line() -> str:
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        if "/src/evenly/" in name or "/tests/device/check" in name:
            return f"{name.rpartition('/src/evenly/')[2].rpartition('/')[2]}:{frame.f_lineno}"
        frame = frame.f_back  # type: ignore[assignment]
    return "?"
