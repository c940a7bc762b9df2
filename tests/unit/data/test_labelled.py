import copy
import pickle

import pytest
import torch
from torch.utils.data import DataLoader

from evenly.data import Labelled
from evenly.errors import DataError, UsageError


def small(**changes: object) -> Labelled:
    fields: dict[str, object] = {
        "inputs": torch.arange(24, dtype=torch.uint8).reshape(6, 1, 2, 2),
        "labels": torch.tensor([0, 1, 2, 0, 1, 2]),
        "classes": ("a", "b", "c"),
        "attributes": {"easy": torch.tensor([1, 0, 1, 0, 1, 0])},
    }
    return Labelled(**(fields | changes))


def test_an_ordinary_data_loader_sees_images_scaled_to_one() -> None:
    inputs, labels = next(iter(DataLoader(small(), batch_size=6)))
    assert torch.equal(inputs, torch.arange(24).reshape(6, 1, 2, 2).float() / 255)
    assert labels.tolist() == [0, 1, 2, 0, 1, 2]


def test_gather_keeps_raw_bytes_and_the_order_asked_for() -> None:
    assert small().gather([5, 0])[:, 0, 0, 0].tolist() == [20, 0]
    assert small().gather(torch.tensor([5])).dtype == torch.uint8


def test_a_subset_of_a_subset_keeps_the_original_index_and_attributes() -> None:
    inner = small().subset([5, 3, 1]).subset([2, 0])
    assert inner.index.tolist() == [1, 5]
    assert inner.attributes["easy"].tolist() == [0, 0]
    assert inner.gather([0])[0, 0, 0, 0] == 4


def test_the_fingerprint_changes_with_pixels_labels_and_order_and_only_then() -> None:
    pixels = small().inputs.clone()
    assert small().fingerprint == small(inputs=pixels).fingerprint
    pixels[0, 0, 0, 0] += 1
    changed = [
        small(inputs=pixels),
        small(labels=torch.tensor([1, 0, 2, 0, 1, 2])),
        small(classes=("a", "b", "d")),
        small().subset([1, 0, 2, 3, 4, 5]),
    ]
    assert len({small().fingerprint, *(data.fingerprint for data in changed)}) == 5


def test_a_label_out_of_range_is_named_with_its_example() -> None:
    with pytest.raises(DataError, match=r"label 7 of example 4 is out of range: 3 classes are numbered 0 to 2"):
        small(labels=torch.tensor([0, 1, 2, 0, 7, 2]))


@pytest.mark.parametrize("labels", [torch.rand(6), torch.zeros(6, 3, dtype=torch.int64)])
def test_float_and_multi_label_targets_are_refused_with_the_way_out(labels: torch.Tensor) -> None:
    with pytest.raises(DataError, match=r"one class number per example.*Bin a continuous target"):
        small(labels=labels)


def test_lengths_that_differ_are_all_listed() -> None:
    with pytest.raises(DataError, match=r"inputs 6, labels 6, index 6, attribute 'easy' 2"):
        small(attributes={"easy": torch.tensor([0, 1])})


def test_an_unknown_attribute_is_answered_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"no attribute 'eazy'. Did you mean 'easy'"):
        small().attribute("eazy")


def test_it_survives_pickling_as_worker_processes_need() -> None:
    twin = pickle.loads(pickle.dumps(small()))
    assert twin.fingerprint == small().fingerprint


@pytest.mark.parametrize("twin", [copy.deepcopy, lambda data: pickle.loads(pickle.dumps(data))])
def test_a_copy_does_not_take_over_the_digest_of_what_its_original_held_before(twin) -> None:
    data = small(inputs=torch.zeros(6, 2))
    data.inputs.add_(1)
    before = data.fingerprint
    data.inputs.add_(1)
    assert twin(data).fingerprint == data.fingerprint != before


def test_label_is_an_attribute_like_any_other() -> None:
    assert torch.equal(small().attribute("label"), small().labels)
