"""Outputs in the data's order and samplers over multisets, in one process and in two."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)

import evenly
from evenly.data import load
from evenly.data.labelled import Labelled
from evenly.errors import DataError, UsageError
from evenly.resampling.sampler import MultisetSampler


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


SHOWN = {
    "shuffled": lambda d: {"shuffle": True},
    "one's own batches": lambda d: {"batch_sampler": BatchSampler(RandomSampler(d), 7, False)},
    "batches as items": lambda d: {"batch_size": None, "sampler": BatchSampler(SequentialSampler(d), 7, False)},
    "a share": lambda d: {"sampler": DistributedSampler(d, num_replicas=2, rank=1)},
    "a multiset": lambda d: {"sampler": MultisetSampler(torch.arange(50) % 25)},
}


@pytest.mark.parametrize("way", SHOWN)
def test_loaders_that_show_all_examples_are_taken(way: str) -> None:
    model, train = network(), data()
    found = evenly.outputs(model, DataLoader(train, **SHOWN[way](train)))
    torch.testing.assert_close(found.logits, evenly.outputs(model, train).logits)


class Own:
    """Batches of one's own making, which say nothing of what they leave out."""

    def __iter__(self):
        yield [0, 1, 2]

    def __len__(self) -> int:
        return 1


CHOSEN = {
    "SubsetRandomSampler": lambda d: {"sampler": SubsetRandomSampler(range(10))},
    "SubsetRandomSampler ": lambda d: {"batch_sampler": BatchSampler(SubsetRandomSampler(range(10)), 5, False)},
    "SubsetRandomSampler  ": lambda d: {
        "batch_size": None,
        "sampler": BatchSampler(SubsetRandomSampler(range(10)), 5, False),
    },
    "WeightedRandomSampler": lambda d: {"sampler": WeightedRandomSampler(torch.ones(25), 25)},
    "RandomSampler": lambda d: {"sampler": RandomSampler(d, replacement=True)},
    "RandomSampler ": lambda d: {"sampler": RandomSampler(d, num_samples=9)},
    "SequentialSampler": lambda d: {"sampler": SequentialSampler(range(9))},
    "MultisetSampler": lambda d: {"sampler": MultisetSampler(torch.arange(9))},
    "Own": lambda d: {"batch_sampler": Own()},
}


@pytest.mark.parametrize("name", CHOSEN)
def test_loaders_that_show_a_part_are_refused_since_the_rest_would_come_back(name: str) -> None:
    train = data()
    with pytest.raises(UsageError, match=rf"the loader's {name.strip()} chooses examples.*Subset\(dataset, indices\)"):
        evenly.outputs(network(), DataLoader(train, **CHOSEN[name](train)))


class Worked(Dataset):
    """A data set that its workers have to open first."""

    opened = 0

    def __len__(self) -> int:
        return 5

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return torch.full((3,), float(self.opened)), i % 2


def open_it(worker: int) -> None:
    get_worker_info().dataset.opened = 7  # fails on a Subset around the data set


def test_a_loaders_workers_start_as_the_loader_starts_them() -> None:
    loader = DataLoader(
        Worked(), batch_size=2, num_workers=1, worker_init_fn=open_it, timeout=60, multiprocessing_context="fork"
    )
    assert evenly.outputs(nn.Identity(), loader).logits.unique().tolist() == [7.0]


class Drawn(Worked):
    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        return torch.rand(3), i % 2


@pytest.mark.parametrize("source", [data(), Drawn()])
def test_random_numbers_go_on_as_if_no_outputs_were_taken(source: Dataset) -> None:
    model = network()
    before = torch.get_rng_state()
    evenly.outputs(model, source)
    assert torch.equal(before, torch.get_rng_state())


def test_arrays_and_lists_are_pairs_too() -> None:
    model, (x, y) = network(), data().tensors
    expected = evenly.outputs(model, (x, y))
    for pair in ((x.numpy(), y.numpy()), [x, y], (x.numpy().astype(np.float64), y), (x.numpy()[::-1], y.flip(0))):
        found = evenly.outputs(model, pair)
        order = slice(None) if torch.equal(found.labels, y) else torch.arange(24, -1, -1)
        torch.testing.assert_close(found.logits[order], expected.logits)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.float16, torch.float64])
def test_inputs_of_a_labelled_reach_the_model_as_in_training(dtype: torch.dtype) -> None:
    x, y = (255 * torch.eye(3)).to(dtype), torch.tensor([0, 1, 1])
    found = evenly.outputs(nn.Linear(3, 2).double(), Labelled(x, y, ("a", "b")))
    assert found.logits.shape == (3, 2)


class Items(Dataset):
    def __init__(self, *items: object) -> None:
        self.items = items

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> object:
        return self.items[i]


X = torch.ones(3)
REFUSED = {
    "text": (lambda: Items((X, "cat"), (X, "dog")), DataError, r"labels are a .* such as 'cat', not numbers.*index"),
    "text by name": (lambda: Items({"input": X, "label": "cat"}), DataError, "labels are a .* 'cat', not numbers"),
    "two inputs": (lambda: Items(((X, X), 0), ((X, X), 1)), DataError, "input of a batch is a list.*mappings"),
    "bytes": (lambda: (torch.zeros(4, 3).byte(), torch.zeros(4).long()), DataError, r"in uint8 .*x\.float\(\) / 255"),
    "number first": (lambda: Items((0, X, 1), (1, X, 0)), DataError, "weights in float32 and fails on inputs in int64"),
    "batches": (lambda: list(DataLoader(data(), batch_size=10)), UsageError, "list of batches, the first of 10"),
    "splits": (lambda: load("digits"), UsageError, r"Splits has several parts: give one.*data\['train'\]"),
    "words": (lambda: (np.zeros((2, 3)), np.array(["a", "b"])), DataError, "labels are an array of <U1.*unique"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_data_that_do_not_fit_are_refused_in_words(kind: str) -> None:
    make, error, words = REFUSED[kind]
    with pytest.raises(error, match=words):
        evenly.outputs(network(), make())


def test_models_that_cannot_be_evaluated_are_refused_in_words() -> None:
    with pytest.raises(UsageError, match=r"the model is a function: give a torch\.nn\.Module"):
        evenly.outputs(lambda x: x, data())
    with pytest.raises(UsageError, match="Linear is on the device meta, where it has no weights"):
        evenly.outputs(nn.Linear(3, 2, device="meta"), data())
    with pytest.raises(UsageError, match="batch_size=0"):
        evenly.outputs(network(), data(), batch_size=0)


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
    alone = evenly.outputs(wrapped, Subset(data(), [3]))  # one example for two processes
    torch.testing.assert_close(alone.logits[0], result.logits[3])
    assert alone.labels.tolist() == result.labels[3:4].tolist()
    torch.distributed.barrier()
    torch.distributed.destroy_process_group()
