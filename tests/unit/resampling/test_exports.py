"""The multiset in other people's formats."""

import csv
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch.utils.data import DataLoader, Dataset, Subset, TensorDataset

from evenly.data.own.folders import folder as class_folders
from evenly.data.own.manifests import manifest
from evenly.errors import DataError, UsageError
from evenly.resampling import Separation, separate
from evenly.resampling.exports import write_csv, write_indices, write_links

LOGITS = torch.tensor([[4.0, 0.0], [0.0, 4.0], [0.2, 0.3], [0.3, 5.0], [5.0, 0.2], [0.4, 0.1]])
LABELS = torch.tensor([0, 1, 0, 1, 0, 1])


@pytest.fixture
def separation() -> Separation:
    return separate(LOGITS, LABELS, classes=["cat", "dog"])


@pytest.fixture
def images(tmp_path: Path) -> list[Path]:
    files = []
    for number in range(6):
        file = tmp_path / "images" / "nested" / f"picture.of.{number}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (4, 4), (40 * number, 0, 0)).save(file)
        files.append(file)
    return files


def test_indices_are_an_array_for_subset(separation: Separation, tmp_path: Path) -> None:
    write_indices(separation, tmp_path / "indices.npy", factor=3, once=[5])
    array = np.load(tmp_path / "indices.npy")
    assert array.tolist() == [0, 1, 2, 3, 4, 5, 2, 2]
    data = TensorDataset(LOGITS, LABELS)
    assert len(Subset(data, array.tolist())) == 8


def test_indices_select_from_a_hugging_face_data_set(separation: Separation) -> None:
    datasets = pytest.importorskip("datasets")
    chosen = datasets.Dataset.from_dict({"number": list(range(6))}).select(separation.indices(2).tolist())
    assert chosen["number"] == [0, 1, 2, 3, 4, 5, 2, 5]


def test_a_manifest_says_how_often_each_example_occurs(separation: Separation, tmp_path: Path) -> None:
    write_csv(separation, tmp_path / "m.csv")
    with (tmp_path / "m.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["repeat"] for row in rows] == ["1", "1", "2", "1", "1", "2"]
    assert [row["hard"] for row in rows] == ["0", "0", "1", "0", "0", "1"]
    assert list(rows[0]) == ["index", "label", "hard", "loss", "repeat"]
    assert float(rows[2]["loss"]) == pytest.approx(float(separation.losses[2]), rel=1e-6)
    assert [row["label"] for row in rows] == ["cat", "dog", "cat", "dog", "cat", "dog"]


class FromCsv(Dataset):
    """What a user writes who knows nothing of evenly: a row per occurrence."""

    def __init__(self, path: Path) -> None:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        names = sorted({row["label"] for row in rows})
        self.items = [
            (path.parent / row["path"], names.index(row["label"])) for row in rows for _ in range(int(row["repeat"]))
        ]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, i: int) -> tuple[torch.Tensor, int]:
        file, label = self.items[i]
        return torch.from_numpy(np.array(Image.open(file))).permute(2, 0, 1).float(), label


def test_a_plain_loop_trains_on_the_manifest_alone(separation: Separation, images: list[Path], tmp_path: Path) -> None:
    write_csv(separation, tmp_path / "out" / "m.csv", files=images)
    data = FromCsv(tmp_path / "out" / "m.csv")
    reds = sorted(int(x[0, 0, 0]) // 40 for x, _ in data)
    assert reds == [0, 1, 2, 2, 3, 4, 5, 5]
    network = torch.nn.Linear(48, 2)
    optimizer = torch.optim.SGD(network.parameters(), lr=1e-6)
    for x, y in DataLoader(data, batch_size=4, shuffle=True):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(network(x.flatten(1)), y).backward()
        optimizer.step()


def test_our_own_reader_takes_the_manifest(separation: Separation, images: list[Path], tmp_path: Path) -> None:
    write_csv(separation, tmp_path / "m.csv", files=images)
    data = manifest(tmp_path / "m.csv").train
    assert data.classes == ("cat", "dog")
    assert data.attribute("index").tolist() == separation.indices(2).tolist()
    assert torch.equal(data.labels, LABELS[separation.indices(2)])
    assert torch.equal(data.attribute("hard").bool(), separation.hard[separation.indices(2)])


@pytest.mark.parametrize("link", ["symbolic", "hard"])
def test_a_folder_of_links_is_a_data_set(separation: Separation, images: list[Path], tmp_path: Path, link: str) -> None:
    assert write_links(separation, tmp_path / "links", files=images, factor=2, link=link) == 8
    names = sorted(str(p.relative_to(tmp_path / "links")) for p in (tmp_path / "links").glob("*/*"))
    assert names == ["cat/0-0.png", "cat/2-0.png", "cat/2-1.png", "cat/4-0.png",
                     "dog/1-0.png", "dog/3-0.png", "dog/5-0.png", "dog/5-1.png"]  # fmt: skip
    data = class_folders(tmp_path / "links").train
    assert (data.gather(range(8))[:, 0, 0, 0] // 40).tolist() == [0, 2, 2, 4, 1, 3, 5, 5]


def test_class_names_cannot_lead_out_of_the_folder(images: list[Path], tmp_path: Path) -> None:
    evil = separate(LOGITS, LABELS, classes=["../../out", ".."])
    write_links(evil, tmp_path / "links", files=images)
    assert sorted(p.name for p in (tmp_path / "links").iterdir()) == ["_", "__.._out"]


def test_a_folder_that_is_not_empty_and_files_that_are_missing_are_refused_before_anything_is_linked(
    separation: Separation, images: list[Path], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="is not empty"):
        write_links(separation, images[0].parent, files=images)
    with pytest.raises(DataError, match="5 files for 6 examples"):
        write_links(separation, tmp_path / "links", files=images[:5])
    with pytest.raises(DataError, match="5 files for 6 examples"):
        write_csv(separation, tmp_path / "m.csv", files=images[:5])
    images[3].unlink()
    with pytest.raises(DataError, match=r"picture\.of\.3\.png: no such file \(1 such\)"):
        write_links(separation, tmp_path / "links", files=images)
    assert not (tmp_path / "links").exists()
    assert not (tmp_path / "m.csv").exists()


def test_indices_are_written_as_npy_only(separation: Separation, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"as \.npy"):
        write_indices(separation, tmp_path / "indices.txt")
