"""What is wrong with data before training starts."""

from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from evenly.cli import main
from evenly.data.checks import check, problems
from evenly.data.labelled import Labelled
from evenly.data.own.folders import folder
from evenly.data.splits import Splits
from evenly.errors import DataError

CLASSES = ("cat", "dog", "owl")


def part(labels: list[int], inputs: torch.Tensor | None = None) -> Labelled:
    given = torch.arange(2.0 * len(labels)).reshape(-1, 2) if inputs is None else inputs
    return Labelled(given, torch.tensor(labels, dtype=torch.int64), CLASSES)


def test_sound_data_have_no_problem() -> None:
    splits = Splits("pets", {"train": part([0, 0, 1, 1, 2, 2]), "test": part([0])})
    assert problems(splits) == []
    assert check(splits) == []


def test_lone_missing_and_test_only_classes_are_told_apart() -> None:
    found = problems(Splits("pets", {"train": part([0, 0, 1]), "test": part([0, 2])}))
    assert len(found) == 2
    assert found[0].startswith("class 'owl' has no training example, only in 'test'")
    assert found[1].startswith("class 'dog' has one training example")
    assert "nor any other" in problems(Splits("pets", {"train": part([0, 0, 1, 1])}))[0]


def test_empty_splits_are_named() -> None:
    found = problems(Splits("pets", {"train": part([0, 0, 1, 1, 2, 2]), "validation": part([])}))
    assert found == [
        "the split 'validation' is empty: nothing can be measured on it. Add examples, or leave the split out."
    ]
    assert problems(Splits("pets", {"train": part([])})) == [
        "the split 'train' is empty: there is nothing to learn from. Add examples."
    ]


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_inputs_that_are_not_finite_are_counted_also_late_ones(bad: float) -> None:
    inputs = torch.arange(12000.0).reshape(6000, 2)
    inputs[5999, 1] = inputs[17, 0] = bad
    assert problems(Splits("pets", {"train": part([0, 1, 2] * 2000, inputs)})) == [
        "2 inputs of 'train' hold NaN or infinity (the first is example 17). Remove or replace these values."
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


def test_files_of_another_size_are_named_unless_they_are_resized(tmp_path: Path) -> None:
    for number in range(40):
        path = tmp_path / f"{'ab'[number % 2]}/{number}.png"
        path.parent.mkdir(exist_ok=True)
        Image.new("RGB", (5 if number == 21 else 4, 4), (number, 0, 0)).save(path)
    [found] = problems(folder(tmp_path))
    assert found.startswith("1 of 40 images of 'train' are not 4×4 as the first is: ")
    assert "21.png (4×5)" in found
    assert problems(folder(tmp_path, size=4)) == []


def test_one_single_class_is_a_problem_also_where_others_have_names() -> None:
    for name, classes in (("train", ("cat",)), ("train", CLASSES)):
        lone = Labelled(torch.eye(3), torch.zeros(3, dtype=torch.int64), classes)
        assert problems(Splits("pets", {name: lone}))[0].startswith("the data have one class, 'cat'")
        with pytest.raises(DataError, match="the data have one class, 'cat': there is nothing to tell apart"):
            check(Splits("pets", {name: lone}))


def test_check_lists_all_fatal_problems_in_one_error() -> None:
    splits = Splits("pets", {"train": part([0, 0, 1]), "test": part([]), "probe": part([2])})
    with pytest.raises(
        DataError, match=r"pets has 2 problems:\n- the split 'test' is empty.*\n- class 'owl'"
    ) as caught:
        check(splits)
    assert caught.value.exit_code == 3
    assert "dog" not in str(caught.value)


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_check_refuses_inputs_that_are_not_finite(bad: float) -> None:
    inputs = torch.eye(6)
    inputs[3, 3] = bad
    with pytest.raises(DataError, match="pets: 1 input of 'train' holds NaN or infinity"):
        check(Splits("pets", {"train": part([0, 0, 1, 1, 2, 2], inputs)}))


@pytest.mark.parametrize("kind", [torch.int64, torch.float32])
def test_numbers_of_another_scale_than_the_bytes_of_another_split_are_refused(kind: torch.dtype) -> None:
    pixels = torch.randint(0, 256, (4, 3), dtype=torch.uint8)
    splits = Splits("pets", {"train": part([0, 1, 2, 0], pixels), "test": part([0, 1, 2, 0], pixels.to(kind))})
    with pytest.raises(DataError, match=r"'train' are bytes, .* 'test' numbers from \d+ to \d+.* both as bytes"):
        check(splits)
    for alike in (pixels / 255, pixels > 100, pixels):
        check(Splits("pets", {"train": part([0, 1, 2, 0], pixels), "test": part([0, 1, 2, 0], alike)}))


def test_check_returns_lone_and_unused_classes_as_remarks() -> None:
    [lone, unused] = check(Splits("pets", {"train": part([0, 0, 1])}))
    assert lone.startswith("class 'dog' has one training example: it cannot be split into easy and hard, and is kept")
    assert unused.startswith("class 'owl' has no training example nor any other")
    [both] = check(Splits("pets", {"train": part([0, 0, 1, 2])}))
    assert both.startswith("classes 'dog', 'owl' have one training example each: they cannot be split")


def test_check_decodes_no_image(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a/1", "a/2", "b/1", "b/2"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / f"{name}.png")
    splits = folder(tmp_path)

    def refuse(*_: object) -> None:
        raise AssertionError("an image was read")

    monkeypatch.setattr("evenly.data.formats.image_files.ImageFiles.read", refuse)
    assert check(splits) == []


def test_verify_names_inputs_that_are_not_scaled(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    for name, size in (("large", 800), ("usual", 1)):
        np.savez(tmp_path / f"{name}.npz", x=size * rng.normal(size=(40, 3)).astype("float32"), y=np.arange(40) % 2)
        assert main(["data", "verify", str(tmp_path / f"{name}.npz")]) == 0
        assert ("augment=[normalise]" in capsys.readouterr().err) == (name == "large")
