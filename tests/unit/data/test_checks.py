"""What is wrong with data before training starts."""

from pathlib import Path

import pytest
import torch
from PIL import Image

from evenly.data.checks import check, problems
from evenly.data.labelled import Labelled, Splits
from evenly.data.own.folders import folder
from evenly.errors import DataError

CLASSES = ("cat", "dog", "owl")


def part(labels: list[int], inputs: torch.Tensor | None = None) -> Labelled:
    given = torch.arange(2.0 * len(labels)).reshape(-1, 2) if inputs is None else inputs
    return Labelled(given, torch.tensor(labels, dtype=torch.int64), CLASSES)


def test_sound_data_have_no_problem() -> None:
    splits = Splits("pets", {"train": part([0, 0, 1, 1, 2, 2]), "test": part([0])})
    assert problems(splits) == []
    check(splits)


def test_lone_missing_and_test_only_classes_are_told_apart() -> None:
    found = problems(Splits("pets", {"train": part([0, 0, 1]), "test": part([0, 2])}))
    assert len(found) == 2
    assert found[0].startswith("class 'dog' has one training example")
    assert found[1].startswith("class 'owl' has no training example, only in 'test'")
    assert "nor any other" in problems(Splits("pets", {"train": part([0, 0, 1, 1])}))[0]


def test_empty_splits_are_named() -> None:
    found = problems(Splits("pets", {"train": part([0, 0, 1, 1, 2, 2]), "validation": part([])}))
    assert found == ["the split 'validation' is empty."]
    assert problems(Splits("pets", {"train": part([])})) == ["the split 'train' is empty."]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_inputs_that_are_not_finite_are_counted_also_late_ones(bad: float) -> None:
    inputs = torch.arange(12000.0).reshape(6000, 2)
    inputs[5999, 1] = inputs[17, 0] = bad
    assert problems(Splits("pets", {"train": part([0, 1, 2] * 2000, inputs)})) == [
        "2 inputs of 'train' hold NaN or infinity. Remove or replace these values."
    ]


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_constant_inputs_are_told_unless_the_last_one_differs(dtype: torch.dtype) -> None:
    inputs = torch.full((6000, 2), 3, dtype=dtype)
    labels = [0, 1, 2] * 2000
    assert "all inputs of 'train' are the same" in problems(Splits("pets", {"train": part(labels, inputs)}))[0]
    inputs[5999, 1] = 4
    assert problems(Splits("pets", {"train": part(labels, inputs)})) == []


def test_files_are_sampled(tmp_path: Path) -> None:
    for name in ("a/1", "a/2", "b/1", "b/2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / f"{name}.png")
    assert "all inputs of 'train' are the same" in problems(folder(tmp_path))[0]
    Image.new("RGB", (4, 4), "red").save(tmp_path / "b/2.png")
    assert problems(folder(tmp_path)) == []


def test_check_lists_all_problems_in_one_error() -> None:
    splits = Splits("pets", {"train": part([0, 0, 1]), "test": part([])})
    with pytest.raises(DataError, match=r"pets has 3 problems:\n- the split 'test' is empty.\n- class 'dog'") as caught:
        check(splits)
    assert caught.value.exit_code == 3
