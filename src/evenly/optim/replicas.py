"""Which processes share gradients when the model is replicated (DDP) or sharded (FSDP2), and when they do."""

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from evenly import tree
from evenly.errors import UsageError

_PART_OF_A_MODEL = (
    "FSDP2 shards a part of the parameters only ({whole} is whole), so ranks would climb by different lengths: call "
    "fully_shard on the model itself too, after its parts"
)


class Replicas:
    """The DistributedDataParallel wrappers of a model, and this process's place among their ranks.

    Each rank climbs on the gradient of its own examples, so that the perturbation group is the batch of one rank and
    results do not depend on how gradients are exchanged; `mean` serves rules and options that need more. Lightning's
    wrapper goes around the module and is found through the module's trainer.

    >>> replicas = Replicas(nn.Linear(2, 1), [])
    >>> replicas.count, replicas.rank, replicas.sharded
    (1, 0, False)
    """

    def __init__(self, model: object, params: dict[str, Tensor] | list[Any]) -> None:
        named = params if isinstance(params, dict) else {}
        modules = list(model.modules()) if isinstance(model, nn.Module) else []
        self.wrappers = [m for m in modules if isinstance(m, DistributedDataParallel)]
        if not self.wrappers and (outer := _lightning_wrapper(model)) is not None:
            self.wrappers = [outer]
        shards = [name for name, p in named.items() if tree.is_shard(p)]
        self.sharded = bool(shards)
        if shards and len(shards) < len(named):
            raise UsageError(_PART_OF_A_MODEL.format(whole=next(name for name in named if name not in shards)))
        self._mesh = next((p.device_mesh for p in named.values() if tree.is_shard(p)), None)  # type: ignore[attr-defined]

    @property
    def group(self) -> Any:
        """The process group of the wrappers."""
        return self.wrappers[0].process_group

    @property
    def count(self) -> int:
        """How many ranks average their gradients."""
        if self._mesh is not None:
            return int(self._mesh.size())
        return torch.distributed.get_world_size(self.group) if self.wrappers else 1

    @property
    def rank(self) -> int:
        """The rank of this process."""
        return torch.distributed.get_rank(self.group) if self.wrappers else 0

    @property
    def unidentified(self) -> bool:
        """Whether there are other processes, but nothing in the model that shares gradients with them."""
        if self.wrappers or self.sharded or not torch.distributed.is_available():
            return False
        return torch.distributed.is_initialized() and torch.distributed.get_world_size() > 1

    def no_sync(self) -> contextlib.AbstractContextManager[None]:
        """A context in which forward and backward passes do not average gradients between ranks."""
        return self._no_sync() if self.wrappers else contextlib.nullcontext()

    @contextlib.contextmanager
    def _no_sync(self) -> Iterator[None]:
        with contextlib.ExitStack() as stack:
            for wrapper in self.wrappers:
                stack.enter_context(_bypass(wrapper) if wrapper.static_graph else wrapper.no_sync())
            yield

    def mean(self, gradients: list[Tensor | None]) -> list[Tensor | None]:
        """The gradients averaged over ranks in one message; bit-identical on every rank."""
        present = [g for g in gradients if g is not None]
        if not self.wrappers or not present:
            return gradients
        flat = torch.cat([g.to_dense().reshape(-1) if g.is_sparse else g.reshape(-1) for g in present])
        torch.distributed.all_reduce(flat, group=self.group)
        flat /= self.count
        parts = iter(torch.split(flat, [g.numel() for g in present]))
        return [None if g is None else next(parts).view(g.shape).clone() for g in gradients]

    # A process group cannot be copied; the wrappers that hold it handle that themselves.
    def __deepcopy__(self, memo: dict[int, Any]) -> "Replicas":
        twin = object.__new__(Replicas)
        twin.wrappers = copy.deepcopy(self.wrappers, memo)
        twin.sharded, twin._mesh = self.sharded, self._mesh
        return twin


def _lightning_wrapper(model: object) -> DistributedDataParallel | None:
    """The DDP wrapper of Lightning's strategy around a LightningModule; None if there is none (yet)."""
    trainer = getattr(model, "_trainer", None)
    wrapper = getattr(getattr(trainer, "strategy", None), "model", None)
    return wrapper if isinstance(wrapper, DistributedDataParallel) else None


@contextlib.contextmanager
def _bypass(wrapper: DistributedDataParallel) -> Iterator[None]:
    """Within the context, calling the wrapper calls the module inside: DDP allows one pass of a static graph a step."""
    own = wrapper.__dict__.get("forward")

    def forward(*args: Any, **kwargs: Any) -> Any:
        if wrapper.device_ids:
            from torch.distributed.utils import _to_kwargs

            moved, moved_kwargs = _to_kwargs(
                args, kwargs, torch.device(wrapper.device_type, wrapper.device_ids[0]), False
            )
            args, kwargs = moved[0], moved_kwargs[0]
        return wrapper.module(*args, **kwargs)

    wrapper.__dict__["forward"] = forward
    try:
        yield
    finally:
        if own is None:
            wrapper.__dict__.pop("forward", None)
        else:
            wrapper.__dict__["forward"] = own
