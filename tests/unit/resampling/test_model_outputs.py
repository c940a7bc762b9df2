"""Outputs in the data's order and samplers over multisets, in one process and in two."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

import evenly
from evenly.errors import DataError, UsageError


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5), nn.Linear(4, 2))


def data() -> TensorDataset:
    numbers = torch.Generator().manual_seed(1)
    return TensorDataset(torch.randn(25, 3, generator=numbers), torch.randint(2, (25,), generator=numbers))


def test_outputs_are_in_the_order_of_the_data_whatever_the_loader_does() -> None:
    model, train = network(), data()
    with torch.no_grad():
        expected = model.eval()(train.tensors[0])
    model.train()
    for source in (train, DataLoader(train, batch_size=7, shuffle=True, drop_last=True)):
        found = evenly.outputs(model, source, batch_size=4)
        torch.testing.assert_close(found.logits, expected)
        assert torch.equal(found.labels, train.tensors[1])
    assert model.training
    assert model[1].num_batches_tracked == 0


def test_data_without_labels_or_examples_say_so() -> None:
    with pytest.raises(DataError, match="no examples"):
        evenly.outputs(network(), TensorDataset(torch.zeros(0, 3), torch.zeros(0)))
    with pytest.raises(DataError, match=r"give \(input, label\) pairs"):
        evenly.outputs(network(), [torch.zeros(3)])
    with pytest.raises(DataError, match="without `labels`"):
        evenly.outputs(network(), [{"x": torch.zeros(3)}])


class Stream(IterableDataset):
    def __iter__(self):
        yield torch.zeros(3), 0


class Named(Dataset):
    """Items as people name them."""

    def __init__(self, **more: object) -> None:
        self.more = more

    def __len__(self) -> int:
        return 25

    def __getitem__(self, i: int) -> dict:
        x, y = data()[i]
        return {"image": x, "label": int(y), "file": f"{i}.png", **self.more}


def test_streams_and_loaders_are_refused_where_items_need_numbers() -> None:
    found, train = separation()
    for call in (lambda: evenly.outputs(network(), Stream()), lambda: found.subset(Stream())):
        with pytest.raises(UsageError, match="Stream cannot be indexed: give a map-style data set"):
            call()
    with pytest.raises(UsageError, match=r"give its data set, loader\.dataset"):
        found.subset(DataLoader(train))


def test_a_pair_of_tensors_is_a_data_set() -> None:
    model, train = network(), data()
    torch.testing.assert_close(evenly.outputs(model, train.tensors).logits, evenly.outputs(model, train).logits)
    found, pairs = separation()
    chosen = found.subset(pairs.tensors)
    assert [int(chosen[i][1]) for i in range(len(chosen))] == [int(y) for _, y in found.subset(pairs)]
    with pytest.raises(DataError, match="24 labels for 25 inputs"):
        evenly.outputs(model, (train.tensors[0], train.tensors[1][:-1]))


def test_items_by_name_reach_a_model_that_knows_other_names() -> None:
    model = network()
    torch.testing.assert_close(evenly.outputs(model, Named()).logits, evenly.outputs(model, data()).logits)
    with pytest.raises(DataError, match=r"mappings of image, file, mask beside the label, and Sequential takes input"):
        evenly.outputs(model, Named(mask=torch.ones(3)))


def separation():
    logits, labels = torch.tensor([[4.0, 0], [0, 1], [0, 4], [1, 0]]), torch.tensor([0, 0, 1, 1])
    return evenly.separate(logits, labels), TensorDataset(logits, labels)


def test_a_sampler_shows_the_multiset_in_a_new_order_every_epoch() -> None:
    found, train = separation()
    sampler = found.sampler(train, factor=3)
    orders = []
    for epoch in range(6):
        sampler.set_epoch(epoch)
        orders.append(list(sampler))
        assert sorted(orders[-1]) == sorted(found.positions(train, 3).tolist())
    assert len({tuple(order) for order in orders}) > 1
    sampler.set_epoch(0)
    assert list(sampler) == orders[0]
    assert torch.equal(found.weights(3), torch.where(found.hard, 3.0, 1.0))


def test_shares_of_processes_cover_the_multiset() -> None:
    from evenly.resampling.sampler import MultisetSampler

    positions = torch.tensor([0, 1, 2, 2, 3])
    shares = [MultisetSampler(positions, rank=rank, num_replicas=2) for rank in range(2)]
    assert [len(list(share)) for share in shares] == [3, 3]
    together = [i for share in shares for i in share]
    assert set(together) == {0, 1, 2, 3}


def test_two_processes_collect_what_one_does(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    environment = {**os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
    processes = [
        subprocess.Popen([sys.executable, __file__, str(tmp_path)], env={**environment, "RANK": str(rank)})
        for rank in range(2)
    ]
    assert [process.wait(timeout=120) for process in processes] == [0, 0]
    alone = evenly.outputs(network(), data())
    for rank in range(2):
        logits, labels = torch.load(tmp_path / f"{rank}.pt", weights_only=True)
        torch.testing.assert_close(logits, alone.logits)
        assert torch.equal(labels, alone.labels)


if __name__ == "__main__":
    torch.distributed.init_process_group("gloo")
    wrapped = nn.parallel.DistributedDataParallel(network())
    result = evenly.outputs(wrapped, data(), batch_size=4)
    torch.save(tuple(result), Path(sys.argv[1]) / f"{os.environ['RANK']}.pt")
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
