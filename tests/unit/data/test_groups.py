"""Waterbirds and CelebA from their own metadata files."""

from pathlib import Path

import pytest
from PIL import Image

from evenly.data.formats.groups import celeba, waterbirds
from evenly.errors import DataError

BIRDS = [("a/1.jpg", 0, 0, 0), ("a/2.jpg", 1, 0, 1), ("b/1.jpg", 1, 2, 0), ("b/2.jpg", 0, 1, 1), ("b/3.jpg", 0, 0, 0)]
FACES = [("000001.jpg", -1, 1, 0), ("000002.jpg", 1, -1, 0), ("000003.jpg", 1, 1, 1), ("000004.jpg", -1, -1, 2)]


def save(path: Path, size: tuple[int, int]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new("RGB", size).save(path)


@pytest.fixture
def birds(tmp_path: Path) -> Path:
    folder = tmp_path / "waterbird_complete95_forest2water2"
    rows = ["img_id,img_filename,y,split,place,place_filename"]
    for number, (name, y, split, place) in enumerate(BIRDS):
        save(folder / name, (20 + number, 30))
        rows.append(f"{number},{name},{y},{split},{place},/x/y.jpg")
    (folder / "metadata.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_waterbirds_groups_are_bird_and_place(birds: Path) -> None:
    splits = waterbirds(root=birds)
    assert list(splits) == ["train", "validation", "test"]
    train = splits.train
    assert train.index.tolist() == [0, 1, 4]
    assert train.labels.tolist() == train.attribute("easy").tolist() == [0, 1, 0]
    assert train.attribute("hard").tolist() == train.attribute("place").tolist() == [0, 1, 0]
    assert train.attribute("group").tolist() == [0, 3, 0]
    assert splits["test"].attribute("group").tolist() == [2]
    assert train.values["group"] == (
        "landbird on land",
        "landbird on water",
        "waterbird on land",
        "waterbird on water",
    )
    assert train.gather([0, 1]).shape == (2, 3, 224, 224)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("place,", "plaice,", "has no column 'place'; its columns: img_id, img_filename"),
        ("b/1.jpg,1,2,0", "b/1.jpg,1,9,0", "the split is '9', expected 0"),
        ("a/1.jpg,0,", "a/1.jpg,5,", "y is '5', expected one of 0, 1"),
        ("a/1.jpg", "a/9.jpg", "names 1 file that does not exist .*'a/9.jpg'"),
    ],
)
def test_damaged_waterbirds_metadata_is_told(birds: Path, old: str, new: str, message: str) -> None:
    path = birds / "waterbird_complete95_forest2water2" / "metadata.csv"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(DataError, match=message):
        waterbirds(root=birds)


def write_celeba(root: Path, *, as_csv: bool) -> None:
    folder = root / "celeba"
    folder.mkdir(parents=True)
    columns = ["Bald", "Blond_Hair", "Male", "Young"]
    for name, *_ in FACES:
        save(folder / ("img_align_celeba/img_align_celeba" if as_csv else "img_align_celeba") / name, (178, 218))
    if as_csv:
        lines = [",".join(["image_id", *columns]), *(f"{n},-1,{blond},{male},1" for n, blond, male, _ in FACES)]
        (folder / "list_attr_celeba.csv").write_text("\n".join(lines) + "\n")
        parts = ["image_id,partition", *(f"{name},{split}" for name, *_, split in FACES)]
        (folder / "list_eval_partition.csv").write_text("\n".join(parts) + "\n")
    else:
        lines = [
            str(len(FACES)),
            " ".join(columns) + " ",
            *(f"{n} -1 {blond:2} {male:2}  1" for n, blond, male, _ in FACES),
        ]
        (folder / "list_attr_celeba.txt").write_text("\n".join(lines) + "\n")
        (folder / "list_eval_partition.txt").write_text("".join(f"{name} {split}\n" for name, *_, split in FACES))


def test_celeba_published_and_republished_forms_agree(tmp_path: Path) -> None:
    write_celeba(tmp_path / "text", as_csv=False)
    write_celeba(tmp_path / "csv", as_csv=True)
    splits, again = celeba(root=tmp_path / "text"), celeba(root=tmp_path / "csv")
    assert splits.fingerprint == again.fingerprint
    assert splits.train.labels.tolist() == splits.train.attribute("easy").tolist() == [0, 1]
    assert splits.train.attribute("gender").tolist() == splits.train.attribute("hard").tolist() == [1, 0]
    assert splits.train.attribute("group").tolist() == [1, 2]
    assert splits["validation"].attribute("group").tolist() == [3]
    assert again["test"].attribute("group").tolist() == [0]
    assert splits.train.values["group"][2] == "blond, female"
    assert splits.train.shape == (3, 218, 178)


def test_truncated_celeba_list_is_told_by_its_count(tmp_path: Path) -> None:
    write_celeba(tmp_path, as_csv=False)
    path = tmp_path / "celeba/list_attr_celeba.txt"
    path.write_text("\n".join(path.read_text().splitlines()[:-1]) + "\n")
    with pytest.raises(DataError, match="truncated: announces 4 rows, 3 were found"):
        celeba(root=tmp_path)


def test_celeba_row_cut_short_and_missing_partition_are_told(tmp_path: Path) -> None:
    write_celeba(tmp_path, as_csv=False)
    path = tmp_path / "celeba/list_attr_celeba.txt"
    good = path.read_text()
    path.write_text(good.rstrip()[:-2])
    with pytest.raises(DataError, match=r"000004.jpg has 3 values, expected 4"):
        celeba(root=tmp_path)
    path.write_text(good)
    (tmp_path / "celeba/list_eval_partition.txt").write_text("000001.jpg 0\n")
    with pytest.raises(DataError, match=r"has no line for 000002.jpg and 2 others"):
        celeba(root=tmp_path)
