"""What a separation leaves for a page: plain numbers, a view in two dimensions, and the examples themselves."""

import io
import json
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import Tensor

from evenly.data.labelled import Labelled
from evenly.resampling import Separation, separate
from evenly.resampling.evidence import evidence, principal_plane, view
from evenly.resampling.gallery import extremes, gallery
from evenly.resampling.health import health


def early_outputs(num: int, num_classes: int) -> tuple[Tensor, Tensor]:
    rng = torch.Generator().manual_seed(0)
    labels = torch.arange(num) % num_classes
    logits = torch.randn(num, num_classes, generator=rng) * 0.3
    logits[torch.arange(num), labels] += torch.where(torch.arange(num) % 3 == 0, 0.5, 6.0)
    return logits, labels


def separated(num: int = 300, num_classes: int = 3) -> tuple[Separation, Tensor]:
    logits, labels = early_outputs(num, num_classes)
    return separate(logits, labels, max_accuracy=1), logits


def test_the_evidence_is_json_without_a_word_for_nan() -> None:
    logits, labels = early_outputs(21, 2)
    labels[-1] = 2  # a class of one example, which cannot be split
    logits = torch.nn.functional.pad(logits, (0, 1))
    with pytest.warns(UserWarning, match="only one example"):
        separation = separate(logits, labels, classes=["a", "b", "<script>"])
    found = evidence(separation, logits, health(separation, logits))
    lone = found["classes"][2]
    assert (lone["name"], lone["easy"], lone["hard"]) == ("<script>", 1, 0)
    assert lone["loss_hard"] is lone["silhouette"] is lone["distinct"] is None
    json.dumps(found, allow_nan=False)


def test_sizes_losses_and_suspects_are_those_of_the_separation() -> None:
    separation, logits = separated()
    logits = logits.clone()
    logits[5] = torch.tensor([12.0, 0.0, 0.0])  # of class 2, and surely taken for class 0
    separation = separate(logits, separation.labels, index=torch.arange(300) + 1000)
    found = evidence(separation, logits, health(separation, logits))
    for split, row in zip(separation.splits, found["classes"], strict=True):
        assert (row["easy"], row["hard"], row["loss_hard"]) == (split.num_easy, split.num_hard, split.loss_hard)
        assert isinstance(row["distinct"], bool)
    assert found["num_suspects"] == 1
    assert found["suspects"][0] == {"index": 1005, "label": 2, "predicted": 0, "loss": pytest.approx(12.0, abs=0.01)}


def test_other_rules_have_no_clusters_to_be_distinct() -> None:
    _, logits = separated()
    separation = separate(logits, torch.arange(300) % 3, method="quantile")
    assert {row["distinct"] for row in evidence(separation, logits, health(separation, logits))["classes"]} == {None}


def test_the_plane_is_that_of_the_singular_vectors() -> None:
    x = torch.randn(50, 6, generator=torch.Generator().manual_seed(1)) * torch.tensor([5.0, 3.0, 1.0, 1.0, 1.0, 1.0])
    u, s, _ = np.linalg.svd((x.double() - x.double().mean(0)).numpy(), full_matrices=False)
    expected = u[:, :2] * s[:2]
    found = principal_plane(x).numpy()
    for column in range(2):
        sign = np.sign(found[:, column] @ expected[:, column])
        np.testing.assert_allclose(found[:, column], sign * expected[:, column], atol=1e-9)


def test_a_single_logit_has_a_flat_view() -> None:
    logits, labels = torch.linspace(-3, 3, 20)[:, None], torch.arange(20) // 10
    separation = separate(logits, labels, max_accuracy=1)
    shown = view(separation, logits)
    assert set(shown["y"]) == {0.0}
    assert len(set(shown["x"])) == 20


def test_the_view_has_as_many_points_of_a_rare_class_as_there_are_and_no_more_than_asked() -> None:
    labels = torch.tensor([0] * 500 + [1] * 30 + [2] * 500)
    logits = torch.randn(1030, 3, generator=torch.Generator().manual_seed(0))
    shown = view(separate(logits, labels, max_accuracy=1), logits, most=130)
    assert torch.tensor(shown["label"]).bincount().tolist() == [50, 30, 50]
    assert shown["index"] == sorted(set(shown["index"]))


def test_the_extremes_are_the_least_and_the_greatest_losses_of_each_class() -> None:
    losses = torch.rand(2000, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(2000) % 2
    rows = extremes(labels, losses)
    assert len(rows) == 64
    own = losses[labels == 1].sort().values
    torch.testing.assert_close(losses[rows[32:]], torch.cat([own[:16], own[-16:]]))
    assert set(labels[rows[:32]].tolist()) == {0}


def test_no_example_is_kept_twice_and_many_classes_keep_few() -> None:
    labels = torch.arange(20) % 2
    assert sorted(extremes(labels, torch.rand(20)).tolist()) == list(range(20))
    many = torch.arange(5000) % 1000
    assert len(extremes(many, torch.rand(5000))) == 2000


class Disk:
    """Inputs on disk that say which of them were read."""

    def __init__(self, images: Tensor) -> None:
        self.images, self.asked = images, []

    def __len__(self) -> int:
        return len(self.images)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.images.shape[1:])

    def read(self, positions: Sequence[int]) -> Tensor:
        self.asked += list(positions)
        return self.images[list(positions)]

    def select(self, positions: Sequence[int]) -> "Disk":
        return Disk(self.images[list(positions)])

    def identity(self) -> Iterator[bytes]:
        yield b"disk"


def test_of_images_on_disk_only_those_that_are_kept_are_read_and_made_small() -> None:
    separation, logits = separated()
    images = torch.randint(256, (300, 3, 128, 96), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    disk = Disk(images)
    data = Labelled(disk, separation.labels, ("a", "b", "c"))
    kept = gallery(separation, logits, data, suspects=torch.tensor([], dtype=torch.int64))
    assert kept["pictures"].shape == (96, 3, 64, 48)
    assert kept["pictures"].dtype == np.uint8
    assert sorted(disk.asked) == sorted(kept["index"].tolist())
    first = images[kept["index"][0]].float()
    block = first.view(3, 64, 2, 48, 2).mean((2, 4))
    assert np.abs(kept["pictures"][0].astype(float) - block.numpy()).mean() < 20  # smoothed, but the same picture


def test_examples_are_found_by_their_number_whatever_the_order_of_rows() -> None:
    separation, logits = separated()
    order = torch.randperm(300, generator=torch.Generator().manual_seed(0))
    images = torch.arange(300).to(torch.float32)[:, None].expand(300, 10).contiguous()
    data = Labelled(images, separation.labels, ("a", "b", "c"), index=torch.arange(300) + 7)
    shuffled = separate(logits[order], separation.labels[order], index=order + 7, max_accuracy=1)
    kept = gallery(shuffled, logits[order], data, suspects=torch.tensor([0]))
    assert [text.split()[0] for text in kept["text"]] == [f"{i - 7:.3g}" for i in kept["index"].tolist()]
    assert kept["text"][0].endswith("… (10 numbers)")
    assert kept["index"][kept["suspect"]].tolist() in ([], [int(order[0]) + 7])
    content = io.BytesIO()
    np.savez_compressed(content, **kept)
    content.seek(0)
    with np.load(content, allow_pickle=False) as again:
        assert again["text"].tolist() == kept["text"].tolist()


def test_floating_images_are_shown_in_the_range_of_a_screen() -> None:
    separation, logits = separated(30, 2)
    images = torch.linspace(-2, 2, 30).view(30, 1, 1, 1).expand(30, 1, 4, 4).contiguous()
    data = Labelled(images, separation.labels, ("a", "b"))
    pictures = gallery(separation, logits, data, suspects=torch.zeros(0).long())["pictures"]
    assert (pictures.min(), pictures.max()) == (0, 255)
    within = replace(data, inputs=images.clamp(0.25, 0.75))
    pictures = gallery(separation, logits, within, suspects=torch.zeros(0).long())["pictures"]
    assert (pictures.min(), pictures.max()) == (64, 191)
