"""Two gloo processes: replicas stay replicas, and the number of ranks changes nothing but the rounding."""

import json
import os
import socket
import subprocess
import sys

import pytest
import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parallel import DistributedDataParallel

import evenly
from evenly.errors import UsageError
from evenly.optim import RandomPerturbation

FAMILY = {
    "sam": lambda model, **o: evenly.SAM(model, **{"rho": 0.1, **o}),
    "asam": lambda model, **o: evenly.ASAM(model, **{"rho": 0.3, **o}),
    "usam": lambda model, **o: evenly.USAM(model, **{"rho": 0.1, **o}),
    "random": lambda model, **o: RandomPerturbation(model, **{"sigma": 0.1, **o}),
    "gsam": lambda model, **o: evenly.GSAM(model, **{"rho": 0.1, **o}),
    "look": lambda model, **o: evenly.LookSAM(model, **{"rho": 0.1, "k": 3, **o}),
    "friendly": lambda model, **o: evenly.FriendlySAM(model, **{"rho": 0.1, **o}),
    "momentum": lambda model, **o: evenly.MSAM(model, **{"rho": 0.1, **o}),
    "lsam": lambda model, **o: evenly.LSAM(model, **{"rho": 0.1, **o}),
}
BATCH = 32


def network(norm: bool = False) -> nn.Sequential:
    torch.manual_seed(0)
    layers = [nn.Linear(6, 8), nn.BatchNorm1d(8) if norm else nn.Tanh(), nn.Tanh(), nn.Linear(8, 3)]
    return nn.Sequential(*layers)


def data(step: int) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(step)
    return torch.randn(2 * BATCH, 6, generator=rng), torch.randint(3, (2 * BATCH,), generator=rng)


def train(model: nn.Module, sam, steps: int, share: slice) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        x, y = data(step)
        sam.backward(lambda x, y: F.cross_entropy(model(x), y), x[share], y[share])
        optimizer.step()
        optimizer.zero_grad()


def flat(model: nn.Module) -> Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def share_of(rank: int) -> slice:
    return slice(rank * BATCH, (rank + 1) * BATCH)


def replicated(rank: int, names: list[str], steps: int) -> dict[str, Tensor]:
    """Every rule under DDP, one after the other; local perturbation groups of 32."""
    result = {}
    for name in names:
        model = DistributedDataParallel(network())
        train(model, FAMILY[name](model), steps, share_of(rank))
        result[name] = flat(model)
    return result


def shared_group(rank: int) -> dict[str, Tensor]:
    """M = 64 over two ranks of 32: one displacement for all."""
    result = {}
    for name in ("sam", "friendly"):
        model = DistributedDataParallel(network())
        train(model, FAMILY[name](model, m=2 * BATCH), 20, share_of(rank))
        result[name] = flat(model)
    model = DistributedDataParallel(network())
    with pytest.raises(UsageError, match="m=48 does not divide the batch of 32 on each of 2 ranks"):
        train(model, evenly.SAM(model, m=48), 1, share_of(rank))
    return result


def small_groups(rank: int) -> dict[str, Tensor]:
    """M = 16 within ranks of 32, BatchNorm, whose buffers DDP broadcasts, and DDP's search for unused parameters.

    The search fails at the next forward pass if one that it was to see is not followed by its backward.
    """
    model = DistributedDataParallel(network(norm=True), find_unused_parameters=True)
    train(model, evenly.SAM(model, rho=0.1, m=16), 5, share_of(rank))
    return {"weights": flat(model), "counter": model.module[1].num_batches_tracked.float().reshape(1)}


def sharded(rank: int) -> dict[str, Tensor]:
    """FSDP2: parameters lie on both ranks, norms are over all shards."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    result = {}
    mesh = init_device_mesh("cpu", (2,))
    for name in FAMILY:
        model = network()
        fully_shard(model[0], mesh=mesh)
        fully_shard(model, mesh=mesh)
        sam = FAMILY[name](model)
        before = [p.to_local().clone() for p in model.parameters()]
        x, y = data(0)
        x, y = x[share_of(rank)], y[share_of(rank)]
        sam.backward(lambda x, y, model=model: F.cross_entropy(model(x), y), x, y)
        assert all(torch.equal(p.to_local(), old) for p, old in zip(model.parameters(), before, strict=True))
        model.zero_grad()
        sam = FAMILY[name](model)
        train(model, sam, 10, share_of(rank))
        result[name] = torch.cat([p.full_tensor().detach().flatten() for p in model.parameters()])
    return result


WORK = {
    "long": lambda rank: replicated(rank, ["sam"], 200),
    "short": lambda rank: replicated(rank, list(FAMILY), 20),
    "shared": shared_group,
    "small": small_groups,
    "sharded": sharded,
}


@pytest.fixture(scope="module")
def ranks() -> dict[str, list[dict[str, Tensor]]]:
    """What each piece of work returns on rank 0 and on rank 1; a rank is a process that runs this very file."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    processes = [
        subprocess.Popen(
            [sys.executable, __file__],
            env={**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=120) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert all(process.returncode == 0 for process in processes), "\n".join(errors for _, errors in said)
    answers = [json.loads(out.splitlines()[-1]) for out, _ in said]
    return {work: [{name: torch.tensor(v) for name, v in answer[work].items()} for answer in answers] for work in WORK}


def test_replicas_are_bit_equal_after_200_steps_of_sam(ranks) -> None:
    one, other = ranks["long"]
    assert torch.equal(one["sam"], other["sam"])
    model = network()
    train(model, evenly.SAM(model, rho=0.1, m=BATCH), 200, slice(None))
    torch.testing.assert_close(one["sam"], flat(model), rtol=1e-3, atol=1e-4)


def test_two_ranks_of_32_equal_one_rank_with_groups_of_32_for_every_rule(ranks) -> None:
    one, other = ranks["short"]
    for name, build in FAMILY.items():
        assert torch.equal(one[name], other[name]), name
        model = network()
        train(model, build(model, m=BATCH), 20, slice(None))
        torch.testing.assert_close(one[name], flat(model), rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")
        if name != "random":
            whole = network()
            train(whole, build(whole), 20, slice(None))
            assert not torch.allclose(flat(whole), flat(model), rtol=1e-4, atol=1e-5), f"{name}: m makes no difference"


def test_a_group_over_all_ranks_equals_one_rank_with_the_whole_batch(ranks) -> None:
    one, other = ranks["shared"]
    for name in ("sam", "friendly"):
        assert torch.equal(one[name], other[name])
        model = network()
        train(model, FAMILY[name](model), 20, slice(None))
        torch.testing.assert_close(one[name], flat(model), rtol=1e-4, atol=1e-5)


def test_groups_within_ranks_and_batchnorm(ranks) -> None:
    one, other = ranks["small"]
    assert torch.equal(one["weights"], other["weights"])
    assert one["counter"] == 5
    model = network(norm=True)
    train(model, evenly.SAM(model, rho=0.1, m=16), 5, slice(None))
    torch.testing.assert_close(one["weights"], flat(model), rtol=1e-4, atol=1e-5)


def test_fsdp2_equals_one_process(ranks) -> None:
    one, other = ranks["sharded"]
    for name, weights in one.items():
        assert torch.equal(weights, other[name]), name
        model = network()
        train(model, FAMILY[name](model), 10, slice(None))
        torch.testing.assert_close(weights, flat(model), rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")


if __name__ == "__main__":
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", rank=rank, world_size=2)
    print(json.dumps({k: {name: t.tolist() for name, t in work(rank).items()} for k, work in WORK.items()}))
    dist.barrier()
    dist.destroy_process_group()
