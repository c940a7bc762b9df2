"""What changes when the model is replicated (DDP) or sharded (FSDP2): who shares a gradient, and when."""

import contextlib
import copy
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from evenly import tree


class Replicas:
    """The DistributedDataParallel wrappers inside a model, and this process's place among their ranks.

    Each rank climbs on the gradient of its own examples, so that the perturbation group is what one rank holds and
    the results do not depend on how gradients travel; `mean` is for the rules and options that need more.

    >>> replicas = Replicas(nn.Linear(2, 1), [])
    >>> replicas.count, replicas.rank, replicas.sharded
    (1, 0, False)
    """

    def __init__(self, model: object, params: Iterable[Tensor]) -> None:
        modules = model.modules() if isinstance(model, nn.Module) else ()
        self.wrappers: list[nn.parallel.DistributedDataParallel] = [
            m for m in modules if isinstance(m, nn.parallel.DistributedDataParallel)
        ]
        self.sharded = any(tree.is_shard(p) for p in params)

    @property
    def group(self) -> Any:
        """The process group of the wrappers."""
        return self.wrappers[0].process_group

    @property
    def count(self) -> int:
        """How many ranks average their gradients."""
        return torch.distributed.get_world_size(self.group) if self.wrappers else 1

    @property
    def rank(self) -> int:
        """Which of them this process is."""
        return torch.distributed.get_rank(self.group) if self.wrappers else 0

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Within the context, forward and backward passes do not average gradients between ranks."""
        with contextlib.ExitStack() as stack:
            for wrapper in self.wrappers:
                stack.enter_context(wrapper.no_sync())
            yield

    def mean(self, gradients: list[Tensor | None]) -> list[Tensor | None]:
        """The gradients averaged over ranks, in one message; the same bits on every rank."""
        present = [g for g in gradients if g is not None]
        if not self.wrappers or not present:
            return gradients
        flat = torch.cat([g.to_dense().reshape(-1) if g.is_sparse else g.reshape(-1) for g in present])
        torch.distributed.all_reduce(flat, group=self.group)
        flat /= self.count
        parts = iter(torch.split(flat, [g.numel() for g in present]))
        return [None if g is None else next(parts).view(g.shape).clone() for g in gradients]

    # A process group cannot be copied or pickled; the wrappers that hold it take care of themselves.
    def __deepcopy__(self, memo: dict[int, Any]) -> "Replicas":
        twin = object.__new__(Replicas)
        twin.wrappers = copy.deepcopy(self.wrappers, memo)
        twin.sharded = self.sharded
        return twin
