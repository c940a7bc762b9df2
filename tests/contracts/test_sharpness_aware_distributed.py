"""Two gloo processes: replicas stay replicas, and the number of ranks changes nothing but the rounding."""

import io
import itertools
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
from evenly.rules import RULES

SET = {"asam": {"rho": 0.3}, "random": {"sigma": 0.1}, "looksam": {"k": 3, "rho": 0.1}}


def builder(name: str):
    return lambda model, **o: getattr(evenly, RULES[name].kind)(model, **{**SET.get(name, {"rho": 0.1}), **o})


FAMILY = {name: builder(name) for name in RULES}
BATCH = 32


def network(norm: bool = False) -> nn.Sequential:
    torch.manual_seed(0)
    layers = [nn.Linear(6, 8), nn.BatchNorm1d(8) if norm else nn.Tanh(), nn.Tanh(), nn.Linear(8, 3)]
    return nn.Sequential(*layers)


def data(step: int) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(step)
    return torch.randn(2 * BATCH, 6, generator=rng), torch.randint(3, (2 * BATCH,), generator=rng)


def train(model: nn.Module, sam, steps: int, share: slice, *, evaluate: bool = False) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(steps):
        x, y = data(step)
        if evaluate:
            with torch.no_grad():
                model(x[share])
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
    for name in FAMILY:
        model = DistributedDataParallel(network())
        train(model, FAMILY[name](model, m="all"), 20, share_of(rank))
        result[name] = flat(model)
    model = DistributedDataParallel(network())
    train(model, evenly.GSAM(model, rho=0.1, m=2 * BATCH), 20, share_of(rank))
    assert torch.equal(flat(model), result["gsam"])
    with pytest.raises(UsageError, match="m=48 does not divide the batch of 32 on each of 2 ranks"):
        train(model, evenly.SAM(model, m=48), 1, share_of(rank))
    return result


def resumed(rank: int) -> dict[str, Tensor]:
    """Six steps, and six with all state taken from rank 0's files after three: their difference."""
    result = {}
    for name in FAMILY:
        straight, stopped = (DistributedDataParallel(network()) for _ in range(2))
        sam = FAMILY[name](straight)
        optimizer = torch.optim.SGD(straight.parameters(), lr=0.05)
        for step in range(6):
            if step == 3:
                file = [io.BytesIO()]
                torch.save({"model": straight.module.state_dict(), "sam": sam.state_dict()}, file[0])
                dist.broadcast_object_list(file, src=0)
                file[0].seek(0)
                state = torch.load(file[0], weights_only=True)
                stopped.module.load_state_dict(state["model"])
                other = FAMILY[name](stopped)
                other.load_state_dict(state["sam"])
                other_optimizer = torch.optim.SGD(stopped.parameters(), lr=0.05)
            x, y = (t[share_of(rank)] for t in data(step))
            for m, s, o in [(straight, sam, optimizer)] + ([(stopped, other, other_optimizer)] if step >= 3 else []):
                s.backward(lambda m=m, x=x, y=y: F.cross_entropy(m(x), y))
                o.step()
                o.zero_grad()
        result[name] = (flat(straight) - flat(stopped)).abs().max().reshape(1)
    return result


def static_graph(rank: int) -> dict[str, Tensor]:
    """A static graph is passed once a step, whatever the rule."""
    result = {}
    for name in ("sam", "gsam", "lsam", "msam"):
        for static in (False, True):
            model = DistributedDataParallel(network(), static_graph=static)
            train(model, FAMILY[name](model), 5, share_of(rank))
            result[f"{name} {static}"] = flat(model)
    return result


def refused(rank: int) -> dict[str, Tensor]:
    """What would go wrong in silence says so: several processes and no wrapper, FSDP2 without m or on a part."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    model = network()
    with pytest.raises(UsageError, match="no DDP or FSDP2 by which they share gradients"):
        train(model, evenly.SAM(model), 1, share_of(rank))
    train(model, evenly.SAM(model, backward=Tensor.backward), 1, share_of(rank))
    mesh = init_device_mesh("cpu", (2,))
    fully_shard(model[0], mesh=mesh)
    with pytest.raises(UsageError, match=r"shards a part of the parameters only \(3.weight is whole\)"):
        evenly.SAM(model, m="all")
    fully_shard(model, mesh=mesh)
    with pytest.raises(UsageError, match='give m="all"'):
        train(model, evenly.SAM(model), 1, share_of(rank))
    with pytest.raises(UsageError, match='m=16: under FSDP2 all processes share one displacement: give m="all"'):
        train(model, evenly.SAM(model, m=16), 1, share_of(rank))
    return {}


def small_groups(rank: int) -> dict[str, Tensor]:
    """M = 16 within ranks of 32, BatchNorm, whose buffers DDP broadcasts, and DDP's search for unused parameters.

    The search fails at the next forward pass if one that it was to see is not followed by its backward.
    """
    model = DistributedDataParallel(network(norm=True), find_unused_parameters=True)
    train(model, evenly.SAM(model, rho=0.1, m=16), 5, share_of(rank))
    return {"weights": flat(model), "counter": model.module[1].num_batches_tracked.float().reshape(1)}


class Experts(nn.Module):
    """The examples of a batch all go to one expert; another layer is never used, and the types are mixed."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.experts = nn.ModuleList(nn.Linear(6, 8) for _ in range(2))
        self.unused, self.head = nn.Linear(2, 2), nn.Linear(8, 3, dtype=torch.float64)

    def forward(self, x: Tensor, which: Tensor) -> Tensor:
        return self.head(torch.tanh(self.experts[int(which[0])](x)).double())


def train_experts(model: nn.Module, sam, share: slice) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for step in range(6):
        (x, y), which = data(step), torch.arange(2 * BATCH) // BATCH * (step % 3 > 0)
        sam.backward(lambda x, y, w: F.cross_entropy(model(x, w), y), x[share], y[share], which[share])
        optimizer.step()
        optimizer.zero_grad(set_to_none=step % 2 == 0)


def experts(rank: int) -> dict[str, Tensor]:
    """Ranks that use different parameters of different types."""
    result = {}
    for name in FAMILY:
        model = DistributedDataParallel(Experts(), find_unused_parameters=True, gradient_as_bucket_view=True)
        train_experts(model, FAMILY[name](model), share_of(rank))
        assert model.module.unused.weight.grad is None
        result[name] = flat(model)
    return result


def infinite(rank: int) -> dict[str, Tensor]:
    """In two steps rank 1 meets infinite inputs; the optimizer leaves those steps out, as a GradScaler does."""
    result = {}
    for name in FAMILY:
        model = DistributedDataParallel(network())
        sam, optimizer = FAMILY[name](model), torch.optim.SGD(model.parameters(), lr=0.05)
        for step in range(6):
            x, y = (t[share_of(rank)] for t in data(step))
            broken = step in (2, 3)
            sam.backward(lambda x=x / (0 if broken and rank else 1), y=y, m=model: F.cross_entropy(m(x), y))
            if not broken:
                optimizer.step()
            optimizer.zero_grad()
        result[name] = flat(model)
        result[f"{name} remembers"] = torch.cat([torch.zeros(1), *(t.flatten() for t in sam.memory.known.values())])
    return result


def sharded_scripts(rank: int) -> dict[str, Tensor]:
    """FSDP2 with micro-batches that are not to be reduced, a leaf outside it, and a state that rank 0 saved."""
    from torch.distributed.fsdp import fully_shard

    result = {}
    for name in FAMILY:
        model, twin = network(), network()
        for module in (model[0], model, twin[0], twin):
            fully_shard(module)
        outside = torch.zeros(6, requires_grad=True)
        steps = [(model, FAMILY[name](model, m="all", backward=Tensor.backward))]
        for step in range(4):
            if step == 2:
                file = [io.BytesIO()]
                torch.save(steps[0][1].state_dict(), file[0])
                dist.broadcast_object_list(file, src=0)
                file[0].seek(0)
                twin.load_state_dict(model.state_dict())
                steps.append((twin, FAMILY[name](twin, m="all")))
                steps[1][1].load_state_dict(torch.load(file[0], weights_only=True))
            for net, sam in steps:
                for micro in range(2):
                    x, y = (t[share_of(rank)] for t in data(10 * step + micro))
                    net.set_requires_gradient_sync(micro == 1)
                    sam.backward(lambda x=x, y=y, n=net, o=outside: F.cross_entropy(n(x + o), y))
                torch.optim.SGD(net.parameters(), lr=0.05).step()
                net.zero_grad()
        for which, net in (("", model), (" resumed", twin)):
            result[name + which] = torch.cat([p.full_tensor().detach().flatten() for p in net.parameters()])
        dist.all_reduce(outside.grad)
        result[f"{name} outside"] = outside.grad / 2
    return result


def sharded(rank: int) -> dict[str, Tensor]:
    """FSDP2: parameters lie on both ranks, norms are over all shards; weights that stay gathered are no others."""
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    result = {}
    mesh = init_device_mesh("cpu", (2,))
    for name, gathered in itertools.product(FAMILY, (False, True)):
        model = network()
        fully_shard(model[0], mesh=mesh)
        fully_shard(model, mesh=mesh)
        model.set_reshard_after_backward(not gathered)
        sam = FAMILY[name](model, m="all")
        before = [p.to_local().clone() for p in model.parameters()]
        x, y = data(0)
        x, y = x[share_of(rank)], y[share_of(rank)]
        sam.backward(lambda x, y, model=model: F.cross_entropy(model(x), y), x, y)
        assert all(torch.equal(p.to_local(), old) for p, old in zip(model.parameters(), before, strict=True))
        model.zero_grad()
        sam = FAMILY[name](model, m="all")
        train(model, sam, 10, share_of(rank), evaluate=gathered)
        key = f"{name} gathered" if gathered else name
        result[key] = torch.cat([p.full_tensor().detach().flatten() for p in model.parameters()])
    return result


ON_A_PART = [name for name in FAMILY if name not in ("random", "msam")]  # the others make no pass before they move


def climb_on_half(model: nn.Module, name: str, *, rank: int = 0, ranks: int = 1) -> None:
    """Steps on five examples, whose loss is the mean over all ranks, that climb on the first half of each share."""
    sam = FAMILY[name](model, fraction=0.5, m="all" if ranks > 1 else None)
    for step in range(5):
        x, y = (t[:5] for t in data(step))
        share = slice(rank, None, ranks)

        def loss(x: Tensor, y: Tensor) -> Tensor:
            return F.cross_entropy(model(x), y) * (ranks * len(range(rank, 5, ranks)) / 5)

        sam.backward(loss, x[share], y[share])
        torch.optim.SGD(model.parameters(), lr=0.5).step()
        model.zero_grad()


def uneven(rank: int) -> dict[str, Tensor]:
    """Shares of three and two examples, of which two and one are climbed on; replicated and sharded."""
    from torch.distributed.fsdp import fully_shard

    result = {}
    for name in ON_A_PART:
        model = DistributedDataParallel(network())
        climb_on_half(model, name, rank=rank, ranks=2)
        result[name] = flat(model)
        model = network()
        fully_shard(model)
        climb_on_half(model, name, rank=rank, ranks=2)
        result[f"{name} sharded"] = torch.cat([p.full_tensor().detach().flatten() for p in model.parameters()])
    return result


WORK = {
    "long": lambda rank: replicated(rank, ["sam"], 200),
    "short": lambda rank: replicated(rank, list(FAMILY), 20),
    "shared": shared_group,
    "small": small_groups,
    "sharded": sharded,
    "resumed": resumed,
    "static": static_graph,
    "refused": refused,
    "experts": experts,
    "infinite": infinite,
    "sharded scripts": sharded_scripts,
    "uneven": uneven,
}


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[dict[str, Tensor]]]:
    """What each piece of work returns on rank 0 and on rank 1; a rank is a process that runs this very file."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = tmp_path_factory.mktemp("ranks")
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, str(folder / f"{rank}.pt")],
            env={**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        said = [process.communicate(timeout=120)[1] for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert all(process.returncode == 0 for process in processes), "\n".join(said)
    answers = [torch.load(folder / f"{rank}.pt", weights_only=True) for rank in range(2)]
    return {work: [answer[work] for answer in answers] for work in WORK}


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
        if getattr(evenly, RULES[name].kind).rule_type.needs_gradient:
            whole = network()
            train(whole, build(whole), 20, slice(None))
            assert not torch.allclose(flat(whole), flat(model), rtol=1e-4, atol=1e-5), f"{name}: m makes no difference"


@pytest.mark.parametrize("name", FAMILY)
def test_a_group_over_all_ranks_equals_one_rank_with_the_whole_batch(name: str, ranks) -> None:
    one, other = ranks["shared"]
    assert torch.equal(one[name], other[name])
    model = network()
    train(model, FAMILY[name](model), 20, slice(None))
    torch.testing.assert_close(one[name], flat(model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FAMILY)
def test_every_rank_resumes_bit_for_bit_from_the_state_of_rank_0(name: str, ranks) -> None:
    assert [float(each[name]) for each in ranks["resumed"]] == [0.0, 0.0]


@pytest.mark.parametrize("name", ["sam", "gsam", "lsam", "msam"])
def test_a_static_graph_gives_the_same_bits(name: str, ranks) -> None:
    one, other = ranks["static"]
    assert torch.equal(one[f"{name} True"], one[f"{name} False"])
    assert torch.equal(one[f"{name} True"], other[f"{name} True"])


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
        train(model, FAMILY[name.removesuffix(" gathered")](model), 10, slice(None))
        torch.testing.assert_close(weights, flat(model), rtol=1e-4, atol=1e-5, msg=lambda m, n=name: f"{n}: {m}")


@pytest.mark.parametrize("how", ["", " sharded"])
@pytest.mark.parametrize("name", ON_A_PART)
def test_a_part_of_uneven_shares_counts_every_example_the_same(name: str, how: str, ranks) -> None:
    one, other = ranks["uneven"]
    assert torch.equal(one[name + how], other[name + how])
    model = network()
    climb_on_half(model, name)
    torch.testing.assert_close(one[name + how], flat(model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FAMILY)
def test_ranks_that_use_different_parameters_equal_one_process_with_groups(name: str, ranks) -> None:
    one, other = ranks["experts"]
    assert torch.equal(one[name], other[name])
    model = Experts()
    train_experts(model, FAMILY[name](model, m=BATCH), slice(None))
    torch.testing.assert_close(one[name], flat(model), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", FAMILY)
def test_an_infinite_gradient_on_one_rank_leaves_all_ranks_equal_and_what_they_remember_finite(
    name: str, ranks
) -> None:
    one, other = ranks["infinite"]
    for key in (name, f"{name} remembers"):
        assert torch.equal(one[key], other[key])
        assert one[key].isfinite().all()


@pytest.mark.parametrize("name", FAMILY)
def test_fsdp2_with_accumulation_resume_and_leaves_outside_equals_one_process(name: str, ranks) -> None:
    one, other = ranks["sharded scripts"]
    model, outside = network(), torch.zeros(6, requires_grad=True)
    sam = FAMILY[name](model)
    for step in range(4):
        for micro in range(2):
            x, y = data(10 * step + micro)
            sam.backward(lambda x=x, y=y: F.cross_entropy(model(x + outside), y))
        if step == 1:
            first = outside.grad.clone()
        torch.optim.SGD(model.parameters(), lr=0.05).step()
        model.zero_grad()
    expected = {name: flat(model), f"{name} resumed": flat(model), f"{name} outside": 2 * outside.grad - first}
    for key, value in expected.items():
        assert torch.equal(one[key], other[key])
        torch.testing.assert_close(one[key], value, rtol=1e-4, atol=1e-5)


if __name__ == "__main__":
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    dist.init_process_group("gloo", rank=rank, world_size=2)
    torch.save({name: work(rank) for name, work in WORK.items()}, sys.argv[1])
    dist.barrier()
    dist.destroy_process_group()
