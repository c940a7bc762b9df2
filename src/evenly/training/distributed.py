"""One run on many devices: the rank of this process, and how the model is replicated or sharded.

`torchrun -m evenly train …` starts the processes. Batches are the same as in one process; each process takes its share
of every batch, and gradients are averaged so that the step is the same too.
"""

import atexit
import gc
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
from torch import Tensor, nn

from evenly import device as devices

#: Steps between two exchanges of `any_of`.
AGREE_EVERY = 10
_SUMMED = 1 << 22  # bytes
_BACKENDS = {"cuda": "nccl", "xpu": "xccl"}


@dataclass(frozen=True)
class World:
    """The processes that train one run together; this one is number `rank` of `size`."""

    rank: int = 0
    size: int = 1
    device: torch.device = torch.device("cpu")  # noqa: RUF009  # a device is immutable

    @classmethod
    def join(cls, device: str = "auto") -> "World":
        """The world in which `torchrun` started this process, or a world of one.

        >>> World.join("cpu").size
        1
        """
        chosen = devices.choose_device(device, local=int(os.environ.get("LOCAL_RANK", 0)))
        devices.enter(chosen)
        if "WORLD_SIZE" not in os.environ or int(os.environ["WORLD_SIZE"]) == 1:
            return cls(device=chosen)
        if not torch.distributed.is_initialized():
            torch.distributed.init_process_group(_BACKENDS.get(chosen.type, "gloo"))
            atexit.register(_leave)
        return cls(torch.distributed.get_rank(), torch.distributed.get_world_size(), chosen)

    @property
    def leads(self) -> bool:
        """Whether this process writes the records."""
        return self.rank == 0

    @property
    def kind(self) -> str:
        """The device as checkpoints record it: its kind and name, not its number.

        >>> World().kind
        'cpu'
        """
        name = devices.facts(self.device).get("name")
        return self.device.type if name is None else f"{self.device.type} ({name})"

    def wrap(self, model: nn.Module, *, sharded: bool) -> nn.Module:
        """The model as it is trained: alone, in DDP, or with its parameters sharded by FSDP2."""
        if self.size == 1:
            return model
        if sharded:
            from torch.distributed.fsdp import fully_shard

            fully_shard(model)
            return model
        from torch.nn.parallel import DistributedDataParallel

        where = None if self.device.type == "cpu" else [self.device.index]
        return DistributedDataParallel(model, device_ids=where)

    def sum(self, values: Tensor) -> Tensor:
        """The sum of a few numbers over all processes, on the device of the arguments."""
        if self.size == 1:
            return values
        there = values.to(self.device)
        torch.distributed.all_reduce(there)
        return there.to(values.device)

    def any_of(self, *flags: bool, step: int = 0) -> tuple[bool, ...]:
        """For each question, whether any process says yes, so that all stop and save together.

        This costs an all-reduce and a wait for the device. Within an epoch pass the `step`: the processes then exchange
        answers only every few steps, all at the same ones; in between the answer is no.
        """
        if self.size == 1:
            return flags
        if step % AGREE_EVERY:
            return (False,) * len(flags)
        return tuple(bool(yes) for yes in self.sum(torch.tensor(flags, dtype=torch.int32)))

    def broadcast(self, value: Any) -> Any:
        """The leading process's value, in every process."""
        if self.size == 1:
            return value
        box = [value]
        torch.distributed.broadcast_object_list(box, src=0, device=self.device)
        return box[0]

    def check_replicas(self, model: nn.Module) -> None:
        """Raise unless the model is bit-identical in all processes."""
        if self.size == 1:
            return
        # Parameters only: BatchNorm's running statistics are each process's own between two steps.
        whole = gather([p.detach() for p in model.parameters()])
        own = torch.stack([checksum(p) for p in whole])
        most = own.clone()
        torch.distributed.all_reduce(own, torch.distributed.ReduceOp.MIN)
        torch.distributed.all_reduce(most, torch.distributed.ReduceOp.MAX)
        if not torch.equal(own, most):
            raise RuntimeError("the replicas of the model differ: please report this as a bug in evenly")

    def finish(self) -> None:
        """Wait until the device has finished its queued work."""
        if self.device.type != "cpu":
            torch.get_device_module(self.device).synchronize()

    def wait(self) -> None:
        """Wait for all processes."""
        if self.size > 1:
            torch.distributed.barrier()


def _leave() -> None:
    """Close the process group before the interpreter exits: threads that outlive it may abort a finished run.

    A process that exited at once would close its connections while another may still be reading from them. So each
    process announces through the store that it is done, and waits a while for the others, one of which may be dead.
    """
    if not torch.distributed.is_initialized():
        return
    with suppress(RuntimeError, AttributeError):  # the store has gone with its process, or has moved
        store = torch.distributed.distributed_c10d._get_default_store()
        ranks = range(torch.distributed.get_world_size())
        store.set(f"evenly/through/{torch.distributed.get_rank()}", "yes")
        store.wait([f"evenly/through/{rank}" for rank in ranks], timedelta(seconds=5))
    gc.collect()  # models that keep a reference to the group
    torch.distributed.destroy_process_group()


def checksum(tensor: Tensor) -> Tensor:
    """The sum of a tensor's bytes, in pieces: each byte takes eight while it is added.

    >>> checksum(torch.tensor([1, 256], dtype=torch.int16))
    tensor(2)
    """
    flat = tensor.contiguous().view(-1).view(torch.uint8)
    return torch.stack([piece.long().sum() for piece in torch.split(flat, _SUMMED)]).sum()


def gather(state: Any) -> Any:
    """A state dict with all shards of FSDP2 reassembled; every process must call it.

    >>> gather({"w": torch.ones(1), "lr": 0.1})
    {'w': tensor([1.]), 'lr': 0.1}
    """
    from torch.distributed.tensor import DTensor
    from torch.utils._pytree import tree_map

    return tree_map(lambda leaf: leaf.full_tensor() if isinstance(leaf, DTensor) else leaf, state)


def restore(
    model: nn.Module, optimizer: torch.optim.Optimizer, weights: dict[str, Tensor], state: dict[str, Any]
) -> None:
    """Load two state dicts from `gather`, sharded again where parameters are sharded."""
    mine = model.state_dict()
    model.load_state_dict({name: _like(tensor, mine[name]) for name, tensor in weights.items()})
    params = [p for group in optimizer.param_groups for p in group["params"]]
    for number, entries in state["state"].items():
        state["state"][number] = {
            name: _like(value, params[number]) if isinstance(value, Tensor) and value.ndim else value
            for name, value in entries.items()
        }
    optimizer.load_state_dict(state)


def _like(whole: Tensor, model: Tensor) -> Tensor:
    """The tensor in the layout of its target: this process's shard if the target is sharded."""
    from torch.distributed.tensor import DTensor, distribute_tensor

    if not isinstance(model, DTensor):
        return whole
    return distribute_tensor(whole.to(model.device), model.device_mesh, model.placements)
