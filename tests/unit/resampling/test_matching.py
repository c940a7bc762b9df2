"""Separations and data sets whose examples have numbers of their own, come in parts, or are held out."""

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import Subset, TensorDataset

import evenly
from evenly.data import load
from evenly.data.labelled import Labelled
from evenly.errors import DataError, UsageError
from evenly.resampling import Separation, baselines, separate, storage

LOGITS = torch.tensor([[4.0, 0.0], [0.0, 4.0], [0.2, 0.3], [0.3, 5.0], [5.0, 0.2], [0.4, 0.1]])
LABELS = torch.tensor([0, 1, 0, 1, 0, 1])


def labelled(**changes: object) -> Labelled:
    return dataclasses.replace(Labelled(LOGITS.clone(), LABELS, ("a", "b")), **changes)


def held_out(folder: Path) -> Labelled:
    """The training split of a file whose test split was held out: its index has gaps."""
    rng = np.random.default_rng(0)
    np.savez(folder / "mine.npz", x=rng.normal(size=(60, 4)).astype(np.float32), y=np.arange(60) % 2)
    return load(str(folder / "mine.npz"), validation=0.2).train


@pytest.mark.filterwarnings("ignore::evenly.resampling.SeparationWarning")
@pytest.mark.parametrize("kind", ["digits", "held out", "permuted"])
def test_rows_without_numbers_are_matched_by_position_whatever_the_index(kind: str, tmp_path: Path) -> None:
    if kind == "permuted":
        data = labelled().subset([4, 5, 2, 1, 0, 3])  # the labels of which are those of another order too
    else:
        data = load("digits").train if kind == "digits" else held_out(tmp_path)
    assert not torch.equal(data.index, torch.arange(len(data)))
    torch.manual_seed(0)
    model = nn.Identity() if kind == "permuted" else nn.Sequential(nn.Flatten(), nn.LazyLinear(10))
    model(data[0][0][None])
    found = separate(*evenly.outputs(model, data))
    rows = found.hard.nonzero().flatten().tolist()
    assert rows
    assert found.subset(data).indices == [*range(len(data)), *rows]
    assert baselines.upweight(found, dataset=data).tolist() == [2.0 if hard else 1.0 for hard in found.hard]


def test_numbers_that_were_given_follow_the_index_of_a_permuted_labelled() -> None:
    turned = labelled().subset([4, 5, 2, 1, 0, 3])
    found = separate(LOGITS, LABELS, index=range(6))
    assert not found.by_position
    assert found.subset(turned).indices == [0, 1, 2, 3, 4, 5, 1, 2]  # examples 5 and 2


@pytest.mark.parametrize("index", [None, range(6)])
@pytest.mark.parametrize("suffix", ["npz", "json"])
def test_files_keep_whether_numbers_were_given(index: object, suffix: str, tmp_path: Path) -> None:
    found = separate(LOGITS, LABELS, index=index)
    storage.save(found, tmp_path / f"s.{suffix}")
    assert storage.load(tmp_path / f"s.{suffix}").by_position is found.by_position is (index is None)


def without_the_fact(found: Separation, path: Path) -> None:
    """Write what earlier versions wrote."""
    import json

    storage.save(found, path)
    content = json.loads(path.read_text())
    del content["by_position"]
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(("index", "by_position"), [(None, True), ([0, 1, 2, 3, 4, 9], False)])
def test_files_that_do_not_say_count_rows_from_zero_as_positions(
    index: list[int] | None, by_position: bool, tmp_path: Path
) -> None:
    found = separate(LOGITS, LABELS, index=index)
    without_the_fact(found, tmp_path / "s.json")
    storage.save(found, tmp_path / "s.csv")
    for name in ("s.json", "s.csv"):
        assert storage.load(tmp_path / name).by_position is by_position


@pytest.mark.parametrize("kind", ["pairs", "labelled"])
def test_numbers_of_a_part_give_the_multiset_of_the_part(kind: str) -> None:
    inputs, labels = torch.arange(8.0)[:, None], torch.tensor([1, 0, 1, 0, 1, 0, 1, 0])
    data = TensorDataset(inputs, labels) if kind == "pairs" else Labelled(inputs, labels, ("a", "b"))
    index = torch.tensor([7, 6, 5, 4, 3, 2])
    found = separate(LOGITS, LABELS, index=index)
    assert found.subset(data).indices == [2, 3, 4, 5, 6, 7, 2, 5]
    assert sorted(found.sampler(data)) == [2, 2, 3, 4, 5, 5, 6, 7]
    with pytest.raises(DataError, match="another data set"):
        found.subset(TensorDataset(inputs, labels * 0))
    with pytest.raises(DataError, match="in another order"):
        found.subset(TensorDataset(inputs, 1 - labels))
    with pytest.raises(DataError, match=r"6 examples.*has 8"):
        separate(LOGITS, LABELS).subset(data)
    with pytest.raises(DataError, match=r"6 examples.*has 8"):  # the weight of the other examples is not known
        baselines.upweight(found, dataset=data)


@pytest.mark.parametrize("labels", [LABELS, LABELS.tolist(), LABELS.numpy(), LABELS.numpy()[::-1].copy()[::-1]])
def test_labels_are_given_in_any_form(labels: Tensor) -> None:
    assert len(separate(LOGITS, LABELS).subset(list(range(6)), labels=labels)) == 8


def test_too_few_labels_are_refused_with_both_numbers() -> None:
    with pytest.raises(DataError, match="labels: 4 for the 6 examples of list: give one for each"):
        separate(LOGITS, LABELS).subset(list(range(6)), labels=LABELS[:4])


def test_a_part_of_an_evaluation_split_is_refused_as_the_split_is() -> None:
    part = Subset(Subset(labelled(split="test"), range(6)), range(6))
    with pytest.raises(UsageError, match="data test is for evaluation"):
        separate(LOGITS, LABELS).subset(part)


def test_the_parts_of_a_data_set_are_not_taken_for_one() -> None:
    with pytest.raises(UsageError, match=r"Splits has several parts: give one of them, such as data\['train'\]"):
        separate(LOGITS, LABELS).subset(load("digits"))
