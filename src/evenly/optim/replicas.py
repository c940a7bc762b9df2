"""Which processes share gradients when the model is replicated (DDP) or sharded (FSDP2), and when they do."""

import contextlib
import copy
from collections.abc import Iterable, Iterator
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parallel import DistributedDataParallel

from evenly import tree
from evenly.errors import UsageError

Gradients = list[Tensor | None]

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
        self._sharding: list[Any] = [m for m in modules if hasattr(m, "set_requires_gradient_sync")] if shards else []
        if shards and len(shards) < len(named):
            raise UsageError(_PART_OF_A_MODEL.format(whole=next(name for name in named if name not in shards)))
        self._mesh = next((p.device_mesh for p in named.values() if tree.is_shard(p)), None)  # type: ignore[attr-defined]  # shards have it

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
    def rebuckets(self) -> bool:
        """Whether a forward pass may move `.grad` to other memory, because DDP keeps gradients in its buckets."""
        return any(wrapper.gradient_as_bucket_view for wrapper in self.wrappers)

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

    @contextlib.contextmanager
    def reducing(self) -> Iterator[None]:
        """Within the context, every pass of a sharded model gathers its weights and reduces its gradients.

        `set_requires_gradient_sync(False)` would leave the gradient of a pass where SAM cannot see it. Weights that
        stay gathered, after `set_reshard_after_backward(False)` or an evaluation, would not show the displacement,
        which is that of the shards.
        """
        parts = [part for module in self._sharding for part in _reduced_together(module)]
        held = [[getattr(part, name) for name in _WHEN] for part in parts]
        for part in parts:
            part.reshard()
            for name in _WHEN:
                setattr(part, name, True)
        try:
            yield
        finally:
            for part, values in zip(parts, held, strict=True):
                part.reshard()
                for name, value in zip(_WHEN, values, strict=True):
                    setattr(part, name, value)

    def part_weight(self, used: int, given: int, device: torch.device) -> Tensor | None:
        """The factor on this rank's loss where it uses so many of its examples; None where there is one rank.

        A rank's mean loss counts for the examples it was given, n of N in all. Where it uses u of them, and all ranks
        use U, the factor (u/U) / (n/N) counts every used example the same: exactly 1 if all ranks use equal shares.
        """
        if self.count == 1:
            return None
        totals = torch.tensor([used, given], device=device)
        groups = [self.group] if self._mesh is None else self._mesh.get_all_groups()
        for group in groups:
            torch.distributed.all_reduce(totals, group=group)
        return used * totals[1] / (max(1, given) * totals[0])  # stays on the device: reading it would wait

    def mean(self, gradients: Gradients, params: list[Tensor], among: Iterable[int] | None = None) -> Gradients:
        """The gradients (of the parameters `among` all) averaged over ranks, bit-identical on every rank.

        As in DDP, a rank whose examples do not reach a parameter counts as zero; None is left where no rank has one.
        """
        if not self.wrappers:
            return gradients
        totals = self._totals(gradients, params, among)
        return [None if total is None else total[0] / self.count for total in totals]

    def mean_of_present(self, vectors: Gradients, params: list[Tensor], among: Iterable[int] | None) -> Gradients:
        """The same over the ranks that have each vector."""
        totals = self._totals(vectors, params, among)
        return [None if total is None else total[0] / total[1] for total in totals]

    def _totals(
        self, vectors: Gradients, params: list[Tensor], among: Iterable[int] | None
    ) -> list[tuple[Tensor, Tensor] | None]:
        """The sum of each vector over ranks and how many ranks have it, in one message for each type of parameter."""
        totals: list[tuple[Tensor, Tensor] | None] = [None] * len(params)
        learning = [i for i in (range(len(params)) if among is None else among) if params[i].requires_grad]
        for dtype in dict.fromkeys(params[i].dtype for i in learning):
            at = [i for i in learning if params[i].dtype is dtype]
            has = torch.tensor([vectors[i] is not None for i in at], dtype=dtype, device=params[at[0]].device)
            message = torch.cat([*(_flat(vectors[i], params[i]) for i in at), has])
            torch.distributed.all_reduce(message, group=self.group)
            *sums, counts = torch.split(message, [*(params[i].numel() for i in at), len(at)])
            complete = all(vectors[i] is not None for i in at)  # then the counts need not be read, which would wait
            somewhere = [True] * len(at) if complete else counts.real.bool().tolist()
            for i, total, count, exists in zip(at, sums, counts.real, somewhere, strict=True):
                if exists:
                    totals[i] = total.view(params[i].shape), count
        return totals

    # A process group cannot be copied; the wrappers that hold it handle that themselves.
    def __deepcopy__(self, memo: dict[int, Any]) -> "Replicas":
        twin = object.__new__(Replicas)
        twin.wrappers = copy.deepcopy(self.wrappers, memo)
        twin._sharding = copy.deepcopy(self._sharding, memo)
        twin.sharded, twin._mesh = self.sharded, self._mesh
        return twin


# When FSDP2 scatters and reduces gradients, and gives up gathered weights: after every pass, if true.
_WHEN = ("reduce_grads", "all_reduce_grads", "reshard_after_backward")


def _flat(vector: Tensor | None, param: Tensor) -> Tensor:
    """The vector in one dimension; zeros if there is none."""
    if vector is None:
        return param.new_zeros(param.numel())
    return (vector.to_dense() if vector.is_sparse else vector).reshape(-1)


def _reduced_together(module: Any) -> list[Any]:
    """The groups of parameters that FSDP2 reduces together; older versions of torch have one for each module."""
    state = module._get_fsdp_state()
    if hasattr(state, "_fsdp_param_groups"):
        return list(state._fsdp_param_groups)
    return [state._fsdp_param_group] if state._fsdp_param_group is not None else []


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
