"""The kept examples name their files and the nearest easy example."""

import os
from pathlib import Path

import torch
from PIL import Image

from evenly.data import Labelled
from evenly.data.formats.image_files import open_images
from evenly.resampling import separate
from evenly.resampling.gallery import gallery


def test_kept_examples_name_their_files_probabilities_and_nearest_easy_example(tmp_path: Path) -> None:
    names = [*(f"{i}.png" for i in range(5)), os.fsdecode(b"\xff.png")]  # files may have any name, records are UTF-8
    for i, name in enumerate(names):
        Image.new("L", (4, 4), 40 * i).save(tmp_path / name)
    labels = torch.tensor([0, 0, 0, 1, 1, 1])
    logits = torch.tensor([[4.0, 0.0], [5.0, 0.0], [0.2, 0.3], [0.0, 4.0], [0.0, 5.0], [0.4, 0.1]])
    data = Labelled(open_images(tmp_path, names), labels, ("cat", "dog"))
    separation = separate(logits, labels)
    kept = gallery(separation, logits, data, suspects=torch.tensor([], dtype=torch.int64))
    assert kept["files"].tolist() == [[*names[:5], r"\udcff.png"][i] for i in kept["index"]]
    expected = logits.softmax(1).amax(1)[torch.as_tensor(kept["index"])]
    assert torch.allclose(torch.as_tensor(kept["probability"]), expected)
    easy = (~separation.hard).nonzero().flatten().tolist()
    for index, nearest in zip(kept["index"].tolist(), kept["nearest"].tolist(), strict=True):
        others = [row for row in easy if row != index]
        assert nearest == min(others, key=lambda row: float((logits[row] - logits[index]).norm()))


def test_examples_of_a_separated_part_are_shown_from_the_whole_data_set() -> None:
    labels = torch.tensor([0, 0, 0, 1, 1, 1]).repeat(2)
    data = Labelled(torch.arange(24.0).view(12, 2), labels, ("cat", "dog"))
    rows = torch.tensor([1, 3, 5, 7, 9, 11])
    logits = torch.tensor([[4.0, 0.0], [0.0, 5.0], [0.2, 0.3], [3.0, 0.0], [0.0, 4.0], [0.4, 0.1]])
    separation = separate(logits, labels[rows], index=rows)
    kept = gallery(separation, logits, data, suspects=torch.tensor([], dtype=torch.int64))
    assert sorted(kept["index"].tolist()) == rows.tolist()
    assert kept["text"].tolist() == [f"{2 * i} {2 * i + 1}" for i in kept["index"].tolist()]
