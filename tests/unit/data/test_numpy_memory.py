"""Arrays whose memory torch cannot share."""

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import TensorDataset

import evenly
from evenly.data.input_format import InputFormat
from evenly.data.numpy_memory import as_tensor
from evenly.data.own.foreign import foreign
from evenly.errors import DataError

BASE = np.arange(12.0).reshape(4, 3)
LOOKS = {
    "rows backwards": BASE[::-1].copy()[::-1],
    "columns backwards": BASE[:, ::-1].copy()[:, ::-1],
    "big-endian": BASE.astype(">f8"),
    "little-endian": BASE.astype("<f4"),
    "long": BASE.astype(np.longdouble),
    "transposed": np.asfortranarray(BASE),
}


@pytest.mark.parametrize("look", LOOKS)
def test_the_values_are_those_of_the_array(look: str) -> None:
    assert as_tensor(LOOKS[look]).double().tolist() == BASE.tolist()


@pytest.mark.parametrize("writable", [True, False])
def test_what_torch_can_share_is_not_copied(writable: bool) -> None:
    base = BASE.copy()
    base.flags.writeable = writable
    assert as_tensor(base).data_ptr() == base.ctypes.data


@pytest.mark.parametrize("look", LOOKS)
def test_every_way_in_takes_them(look: str) -> None:
    values = LOOKS[look]
    assert InputFormat((3,))(values).tolist() == BASE.tolist()
    items = [(row, int(label)) for row, label in zip(values, [0, 1, 0, 1], strict=True)]
    data = foreign(items, labels=np.array([1, 0, 1, 0])[::-1])
    assert data.gather([0, 1, 2, 3]).double().tolist() == BASE.tolist()
    assert data.labels.tolist() == [0, 1, 0, 1]


@pytest.mark.parametrize("change", [lambda a: a[::-1].copy()[::-1], lambda a: a.astype(a.dtype.newbyteorder(">"))])
def test_outputs_and_labels_are_separated_in_any_layout(change) -> None:
    logits = np.array([[4.0, 0.0], [0.0, 4.0], [0.2, 0.3], [0.3, 5.0], [5.0, 0.2], [0.4, 0.1]], np.float32)
    labels = np.array([0, 1, 0, 1, 0, 1])
    found = evenly.separate(change(logits), change(labels), index=change(np.arange(6)))
    assert found.hard.tolist() == evenly.separate(logits, labels).hard.tolist()
    assert torch.equal(found.index, torch.arange(6))
    assert len(found.subset(TensorDataset(torch.from_numpy(logits), torch.from_numpy(labels)))) == 8


def test_a_picture_of_more_than_8_bits_is_not_cut_off_at_255() -> None:
    with pytest.raises(DataError, match=r"the picture has more than 8 bits per pixel \(mode I;16\); scale it"):
        InputFormat((1, 2, 2), is_bytes=True)(Image.new("I;16", (2, 2), 1000))


def test_columns_of_a_table_are_read_by_position_whatever_their_index() -> None:
    pandas = pytest.importorskip("pandas")
    part = pandas.Series([10, 20, 30], index=[7, 0, 5])  # as a train/test split of a table leaves it
    assert as_tensor(part).tolist() == [10, 20, 30]
    table = pandas.DataFrame([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], columns=["a", "b"], index=[7, 0, 5])
    assert as_tensor(table).tolist() == [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]


def test_outputs_and_labels_of_a_table_separate_as_their_numbers_do() -> None:
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    label_N = rng.integers(0, 3, 90)
    logits_NC = 4 * np.eye(3)[label_N] * (rng.random((90, 1)) < 0.6) + rng.normal(size=(90, 3))
    order = rng.permutation(200)[:90]
    separation = evenly.separate(pandas.DataFrame(logits_NC, index=order), pandas.Series(label_N, index=order))
    assert separation.hard.tolist() == evenly.separate(logits_NC, label_N).hard.tolist()
    factor = pandas.Series(np.where(separation.hard, 3, 1), index=order)
    assert separation.repeats(factor).tolist() == factor.tolist()


def test_a_table_and_its_column_of_labels_are_inputs_and_labels() -> None:
    pandas = pytest.importorskip("pandas")
    model = torch.nn.Linear(2, 3)
    table = pandas.DataFrame(np.random.default_rng(0).normal(size=(4, 2)).astype(np.float32), index=[3, 1, 9, 8])
    label = pandas.Series([2, 0, 1, 1], index=table.index)
    logits, labels = evenly.outputs(model, (table, label))
    assert labels.tolist() == [2, 0, 1, 1]
    assert torch.allclose(torch.as_tensor(logits), model(torch.tensor(table.to_numpy())).detach())
