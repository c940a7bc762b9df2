"""Data that nobody has split: a fifth of every class is held out, said, and part of what a run is."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from evenly.data import Labelled, load
from evenly.data.formats.image_files import ImageFiles
from evenly.data.held_out import held_out_mask
from evenly.errors import UsageError
from evenly.rng import generator


def tree(root: Path, num: int = 10) -> Path:
    for kind in ("cat", "dog"):
        (root / kind).mkdir(parents=True)
        for i in range(num):
            Image.new("RGB", (4, 4), (i, 0, 0)).save(root / kind / f"{i}.png")
    return root


def test_a_folder_without_a_test_split_holds_out_a_fifth_of_every_class_and_says_so(tmp_path: Path) -> None:
    splits = load(tree(tmp_path / "photos"))
    assert list(splits) == ["train", "test"]
    assert splits["test"].labels.bincount().tolist() == [2, 2]
    assert splits.train.labels.bincount().tolist() == [8, 8]
    assert not set(splits.train.index.tolist()) & set(splits["test"].index.tolist())
    assert splits.remarks == (
        "photos has no test split: a fifth of every class is held out as test, 4 of 20 examples (--set held_out=0, in "
        "Python held_out=0, trains on all).",
    )


def test_the_same_examples_are_held_out_wherever_the_folder_lies(tmp_path: Path) -> None:
    one, other = load(tree(tmp_path / "a")), load(tree(tmp_path / "b"))
    assert torch.equal(one["test"].index, other["test"].index)


def test_what_is_held_out_can_be_said_and_is_part_of_the_data(tmp_path: Path) -> None:
    photos = tree(tmp_path / "photos")
    assert list(load(photos, held_out=0)) == ["train"]
    assert len(load(photos, held_out=0.5)["test"]) == 10
    assert load(photos).fingerprint != load(photos, held_out=0).fingerprint
    with pytest.raises(UsageError, match=r"held_out = 1\.5 is a share"):
        load(photos, held_out=1.5)


def test_nothing_is_held_out_where_there_is_a_split_or_a_validation_share(tmp_path: Path) -> None:
    tree(tmp_path / "photos" / "train")
    tree(tmp_path / "photos" / "val")
    assert list(load(tmp_path / "photos")) == ["train", "validation"]
    assert list(load(tree(tmp_path / "flat"), validation=0.2)) == ["train", "validation"]
    assert len(load("digits").train) == 1438


def test_arrays_and_manifests_without_a_split_hold_some_out_but_not_of_repeated_rows(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", x=np.zeros((20, 3)), y=np.arange(20) % 2)
    assert list(load(tmp_path / "x.npz")) == ["train", "test"]
    photos = tree(tmp_path / "photos")
    names = sorted(path.relative_to(tmp_path) for path in photos.glob("*/*.png"))
    lines = [f"{name},{name.parent.name},{1 + i % 2}" for i, name in enumerate(names)]
    (tmp_path / "list.csv").write_text("\n".join(["path,label,repeat", *lines]) + "\n")
    repeated = load(tmp_path / "list.csv")
    assert list(repeated) == ["train"]
    assert "list.csv repeats rows and has no test split: nothing is held out" in repeated.remarks[-1]
    with pytest.raises(UsageError, match="repeats rows"):
        load(tmp_path / "list.csv", held_out=0.2)


@pytest.mark.parametrize("share", [0.5, 0.8, 0.99])
def test_every_class_keeps_an_example_to_train_on(share: float) -> None:
    labels = torch.tensor([0, 0, 1, 1, 1, 2])
    kept = labels[~held_out_mask(labels, share=share, key="test")]
    assert set(kept.tolist()) == {0, 1, 2}


def test_the_mask_is_that_of_a_loop_over_the_classes_and_takes_no_pass_over_all_examples_for_each() -> None:
    labels = torch.arange(3000) * 7919 % 1000 // 2
    expected = torch.zeros(len(labels), dtype=torch.bool)
    for label in range(500):
        members = (labels == label).nonzero().flatten()
        chosen = torch.randperm(len(members), generator=generator(0, "held out", "doc", label))
        expected[members[chosen[: max(round(0.2 * len(members)), 1)]]] = True
    with Counting() as counting:
        mask = held_out_mask(labels, share=0.2, key="doc")
    assert torch.equal(mask, expected)
    assert counting.numbers < 20 * len(labels)
    assert held_out_mask(labels[:0], share=0.2, key="doc").shape == (0,)


class Counting(TorchDispatchMode):
    """Counts the numbers that torch computes within it."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, function: Any, types: Any, given: Any = (), options: Any = None) -> Any:
        made = function(*given, **(options or {}))
        if not function._schema.name.endswith("_"):  # what writes in place returns all of its target
            self.numbers += sum(one.numel() for one in tree_leaves(made) if isinstance(one, torch.Tensor))
        return made


@pytest.mark.parametrize("connect", [Path.symlink_to, Path.hardlink_to])
@pytest.mark.parametrize("options", [{}, {"validation": 0.3}])
def test_copies_of_a_held_out_file_are_not_trained_on(connect: Any, options: dict[str, float], tmp_path: Path) -> None:
    photos = tree(tmp_path / "photos")
    for kind in ("cat", "dog"):
        for i in range(0, 10, 2):
            connect(photos / kind / f"copy-of-{i}.png", photos / kind / f"{i}.png")
    splits = load(photos, **options)
    held = splits["validation" if options else "test"]

    def files(part: Labelled) -> list[tuple[str, int]]:
        assert isinstance(part.inputs, ImageFiles)
        return [(Path(name).parent.name, (part.inputs.root / name).stat().st_ino) for name in part.inputs.names]

    assert not set(files(splits.train)) & set(files(held))
    assert len(set(files(held))) == len(held) == (6 if options else 4), "a share of the files, each once"
    assert len(set(files(splits.train))) == 20 - len(held)
    left_out = 30 - len(splits.train) - len(held)
    assert left_out > 0
    assert any(f"{left_out} further cop" in remark for remark in splits.remarks)


def test_data_that_hold_out_both_know_that_their_test_split_is_held_out(tmp_path: Path) -> None:
    photos = tree(tmp_path / "photos")
    assert load(photos).test_is_held_out
    assert load(photos, held_out=0.2, validation=0.2).test_is_held_out
    assert not load(photos, validation=0.2).test_is_held_out


def test_a_file_in_two_classes_is_trained_on_in_both(tmp_path: Path) -> None:
    photos = tree(tmp_path / "photos", num=2)
    (photos / "cow").mkdir()
    (photos / "cow" / "0.png").symlink_to(photos / "cat" / "0.png")
    splits = load(photos, held_out=0.5)
    assert set(splits.train.labels.tolist()) == {0, 1, 2}
    assert splits["test"].labels.tolist() == [2], "cat and cow have one file that is theirs alone, or none"
