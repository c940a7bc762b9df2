"""Data sets of Hugging Face's `datasets`, from a local copy: class names, images and splits as they are there."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from evenly.cli import main
from evenly.data import load
from evenly.data.own.foreign import foreign
from evenly.errors import DataError, UsageError

datasets = pytest.importorskip("datasets")
NAMES = ["cat's", "a dog", "№ 3"]


@pytest.fixture(scope="module")
def tables() -> object:
    rng = np.random.default_rng(0)

    def table(num: int) -> object:
        pictures = [Image.fromarray(rng.integers(0, 255, (8, 6, 3), dtype=np.uint8)) for _ in range(num)]
        features = datasets.Features({"img": datasets.Image(), "animal": datasets.ClassLabel(names=NAMES)})
        return datasets.Dataset.from_dict({"img": pictures, "animal": [i % 3 for i in range(num)]}, features=features)

    return datasets.DatasetDict({"train": table(12), "test": table(6)})


@pytest.fixture(scope="module")
def saved(tables: object, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hub") / "pets"
    tables.save_to_disk(str(folder))  # type: ignore[attr-defined]
    return folder


def test_a_saved_data_set_has_its_splits_class_names_and_pixels(saved: Path, tables: dict) -> None:  # type: ignore[type-arg]
    splits = load(f"hf:{saved}")
    assert list(splits) == ["train", "test"]
    assert splits.classes == tuple(NAMES)
    assert splits.train.labels.tolist() == tables["train"]["animal"][:]
    expected = np.array(tables["train"][5]["img"]).transpose(2, 0, 1)
    assert np.array_equal(splits.train.gather([5])[0].numpy(), expected)
    assert load(f"hf:{saved}", size=4).train.shape == (3, 4, 4)
    assert load(f"hf:{saved}").fingerprint == splits.fingerprint


def _pictures(folder: Path, images: list[Image.Image | bytes]) -> Path:
    files = []
    for number, image in enumerate(images):
        file = folder.parent / f"{number}.png"
        file.write_bytes(image) if isinstance(image, bytes) else image.save(file)
        files.append(str(file))
    features = datasets.Features({"img": datasets.Image(), "animal": datasets.ClassLabel(names=NAMES)})
    kinds = [number % 3 for number in range(len(files))]
    datasets.Dataset.from_dict({"img": files, "animal": kinds}, features=features).save_to_disk(str(folder))
    return folder


def test_pictures_without_colour_among_coloured_ones_are_read_as_coloured_ones(tmp_path: Path) -> None:
    grey, red = Image.new("L", (4, 4), 100), Image.new("RGBA", (4, 4), "red")
    mixed = load(f"hf:{_pictures(tmp_path / 'mixed', [grey, red] * 6)}", held_out=0).train
    assert mixed.shape == (3, 4, 4)
    assert mixed.gather([0, 1])[:, :, 0, 0].tolist() == [[100, 100, 100], [255, 0, 0]]
    (tmp_path / "other").mkdir()
    alike = load(f"hf:{_pictures(tmp_path / 'other' / 'grey', [grey] * 6)}", held_out=0).train
    assert alike.shape == (1, 4, 4)


def test_pictures_of_more_than_8_bits_are_refused_and_not_cut_off_at_255(tmp_path: Path) -> None:
    deep = [Image.fromarray(np.full((4, 4), 1000 * number, np.uint16)) for number in range(6)]
    splits = load(f"hf:{_pictures(tmp_path / 'deep', deep)}", held_out=0)
    with pytest.raises(DataError, match=r"row 0: 'img' has more than 8 bits per pixel \(mode I;16\); scale it"):
        _ = splits.fingerprint


def test_pictures_in_other_columns_are_not_decoded(tmp_path: Path) -> None:
    (tmp_path / "no.png").write_bytes(b"no picture")
    Image.new("RGB", (4, 4), "red").save(tmp_path / "red.png")
    columns = {"img": datasets.Image(), "depth": datasets.Image(), "animal": datasets.ClassLabel(names=NAMES)}
    files = {"img": [str(tmp_path / "red.png")] * 6, "depth": [str(tmp_path / "no.png")] * 6, "animal": [0, 1, 2] * 2}
    table = datasets.Dataset.from_dict(files, features=datasets.Features(columns))
    table.save_to_disk(str(tmp_path / "pets"))
    for data in (load(f"hf:{tmp_path / 'pets'}", input_column="img", held_out=0).train, foreign(table, key="img")):
        assert data.gather([5])[0, :, 0, 0].tolist() == [255, 0, 0]
        assert len(data.fingerprint) == 16
    with pytest.raises(UsageError, match=r"there is no column 'im'\. Did you mean 'img'"):
        foreign(table, key="im")


@pytest.mark.parametrize("size", [0, -1, [4], [4, 4, 4]])
def test_a_size_that_no_picture_has_is_refused(saved: Path, size: object) -> None:
    with pytest.raises(UsageError, match=r"size=.*: (give one number|height and width must)"):
        load(f"hf:{saved}", size=size)


def test_rows_of_numbers_are_refused_where_they_are_not_finite_or_of_several_lengths() -> None:
    table = datasets.Dataset.from_dict({"x": [[1.0, 2.0], [float("nan"), 0.0]], "label": [0, 1]})
    with pytest.raises(DataError, match="row 1: 'x' holds NaN or infinity"):
        _ = foreign(table).fingerprint
    ragged = datasets.Dataset.from_dict({"x": [[1.0, 2.0], [1.0]], "label": [0, 1]})
    with pytest.raises(DataError, match=r"row 1 has the shape 1, the first has 2\. Give each row as many numbers"):
        foreign(ragged).gather([0, 1])


@pytest.mark.parametrize(
    ("labels", "options", "message"),
    [
        ([0.5, 1.2, 0.1, 1.9], {"classes": ["a", "b"]}, "float32 of shape .*Bin a continuous target"),
        ([0, 1, 0, 1], {"key": "x", "labels": [0.5, 1.2, 0.1, 1.9]}, "float32 of shape .*Bin a continuous target"),
        ([0, 1, 0, 1], {"key": "x", "labels": ["a", "b", "a", "b"]}, r"labels are .*names\.index"),
        ([0, 1, 0, 1], {"key": "x", "labels": [0, 1]}, "2 labels for 4 items"),
        ([0, 1, 0, 1], {"labels": [0, 1, 0, 1]}, "which column holds the inputs.*key='NAME', of x, label"),
        ([0, 1, 0, 1], {"classes": "ab"}, "classes='ab', expected the name of each class"),
        ([0, None, 0, 1], {"classes": ["a", "b"]}, r"1 of 4 rows have no label. Leave them out: table\.filter"),
        ([0, None, 0, 1], {}, "1 of 4 rows have no label"),
        ([], {}, "Dataset has no items"),
    ],
)
def test_labels_of_a_table_that_are_no_classes_are_refused(labels: list, options: dict, message: str) -> None:  # type: ignore[type-arg]
    table = datasets.Dataset.from_dict({"x": [[1.0, 2.0]] * len(labels), "label": labels})
    with pytest.raises((DataError, UsageError), match=message):
        foreign(table, **options)


def test_one_round_of_verify_names_rows_that_do_not_decode_and_rows_of_other_sizes(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = [Image.new("RGB", (4, 4), (number, 0, 0)) for number in range(12)]
    folder = _pictures(tmp_path / "pets", [*plain, b"no picture", Image.new("RGB", (5, 4)), plain[0]])
    assert main(["data", "verify", f"hf:{folder}", "--set", "held_out=0"]) == 3
    told = capsys.readouterr().err
    assert "1 of 15 rows cannot be read: row 12 ('img' does not decode" in told
    assert "1 of 15 rows are not 3×4×4 as the first is: row 13 (3×4×5)" in told
    words = [
        "train",
        f"hf:{folder}",
        "--model",
        "mlp",
        "--epochs",
        "1",
        "--batch-size",
        "4",
        "--runs",
        str(tmp_path / "r"),
    ]
    assert main([*words, "--set", "held_out=0", "--set", "size=4"]) == 3
    assert "row 12: 'img' does not decode" in capsys.readouterr().err


def test_a_run_on_it_is_trained_by_the_command_line(
    saved: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        "train",
        f"hf:{saved}",
        "--model",
        "mlp",
        "--epochs",
        "1",
        "--batch-size",
        "4",
        "--device",
        "cpu",
        "--json",
    ]
    assert main([*words, "--runs", str(tmp_path)]) == 0
    folder = Path(json.loads(capsys.readouterr().out)["folder"])
    assert json.loads((folder / "model.json").read_text())["classes"] == NAMES


def test_a_table_given_in_python_keeps_its_class_names(tables: dict) -> None:  # type: ignore[type-arg]
    data = foreign(tables["train"])
    assert data.classes == tuple(NAMES)
    assert data.shape == (3, 8, 6)
    assert torch.equal(data.labels, torch.arange(12) % 3)


def test_a_column_that_cannot_be_guessed_is_asked_for(tmp_path: Path) -> None:
    table = datasets.Dataset.from_dict({"a": [[1.0, 2.0]] * 4, "b": [[0.0, 1.0]] * 4, "kind": ["x", "y", "x", "y"]})
    table.save_to_disk(str(tmp_path / "t"))
    with pytest.raises(UsageError, match=r"which column holds the classes.*label_column"):
        load(f"hf:{tmp_path / 't'}")
    with pytest.raises(UsageError, match=r"which column holds the inputs.*input_column"):
        load(f"hf:{tmp_path / 't'}", label_column="kind")
    splits = load(f"hf:{tmp_path / 't'}", label_column="kind", input_column="a", held_out=0)
    assert splits.classes == ("x", "y")
    assert splits.train.gather([0]).tolist() == [[1.0, 2.0]]


def test_a_name_that_is_not_on_this_machine_is_an_error_with_the_line_that_fetches_it() -> None:
    with pytest.raises(DataError, match=r"could not be loaded from this machine.*save_to_disk"):
        load("hf:no-such/data")


def test_a_folder_that_is_not_there_and_a_name_that_is_missing_are_said_as_that(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"there is no folder .*none\.$"):
        load(f"hf:{tmp_path / 'none'}")
    with pytest.raises(UsageError, match=r"hf: is followed by the name of a data set or by a folder"):
        load("hf:")


def _saved(folder: Path, labels: dict[str, list[object]], *, names: list[str] | None = None) -> str:
    """A data set of two numbers a row, with these labels in each split: of a `ClassLabel`, if `names` are given."""
    columns = {"x": datasets.Sequence(datasets.Value("float32")), "label": datasets.ClassLabel(names=names or [])}
    kind = {"features": datasets.Features(columns)} if names else {}
    tables = {
        split: datasets.Dataset.from_dict({"x": [[float(i), 1.0] for i in range(len(given))], "label": given}, **kind)
        for split, given in labels.items()
    }
    datasets.DatasetDict(tables).save_to_disk(str(folder))
    return f"hf:{folder}"


def test_the_numbers_of_classes_are_those_of_the_training_split(tmp_path: Path) -> None:
    splits = load(_saved(tmp_path / "words", {"train": ["a", "b", "c", "a"], "test": ["c", "b"]}))
    assert splits["test"].classes == splits.classes == ("a", "b", "c")
    assert splits["test"].labels.tolist() == [2, 1]
    with pytest.raises(DataError, match=r"split test: class 'd' has no training example"):
        load(_saved(tmp_path / "more", {"train": ["a", "b"], "test": ["d", "b"]}))


def test_a_split_with_its_own_list_of_names_is_numbered_by_that_of_the_training_split(tmp_path: Path) -> None:
    folder = tmp_path / "two"
    for split, names in (("train", ["a", "b", "c"]), ("test", ["c", "a"])):
        _saved(tmp_path / split, {split: [0, 1]}, names=names)
    tables = {split: datasets.load_from_disk(str(tmp_path / split))[split] for split in ("train", "test")}
    datasets.DatasetDict(tables).save_to_disk(str(folder))
    assert load(f"hf:{folder}")["test"].labels.tolist() == [2, 0]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        ({"train": [0, 1, 0, 1], "test": [-1, -1]}, ["a", "b"]),
        ({"train": [0, 1, 0, 1], "test": [-1, -1]}, None),
        ({"train": ["a", "b", "a", "b"], "test": ["b", None]}, None),
    ],
)
def test_a_split_without_labels_is_left_out_with_a_remark(
    labels: dict[str, list[object]], names: list[str] | None, tmp_path: Path
) -> None:
    splits = load(_saved(tmp_path / "d", labels, names=names), held_out=0)
    assert list(splits) == ["train"]
    assert any("of 2 rows of the split test have no label, so this split is left out" in r for r in splits.remarks)


def test_classes_called_minus_one_are_classes(tmp_path: Path) -> None:
    splits = load(_saved(tmp_path / "signs", {"train": [-1, 1, 1], "test": [-1]}))
    assert splits.classes == ("-1", "1")
    assert splits["test"].labels.tolist() == [0]


def test_training_rows_without_a_label_and_two_splits_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"1 of 3 rows of the split train have no label"):
        load(_saved(tmp_path / "gap", {"train": ["a", None, "b"]}))
    with pytest.raises(DataError, match=r"both 'val' and 'dev' would be the split validation"):
        load(_saved(tmp_path / "twice", {"train": ["a", "b"], "val": ["a"], "dev": ["b"]}))
    with pytest.raises(DataError, match=r"no split 'train' among test"):
        load(_saved(tmp_path / "none", {"test": ["a", "b"]}))


def test_a_table_of_words_given_in_python_is_numbered_by_its_words() -> None:
    table = datasets.Dataset.from_dict({"x": [[0.0], [1.0], [2.0]], "label": ["dog", "cat", "dog"]})
    assert foreign(table).labels.tolist() == [1, 0, 1]
    assert foreign(table, classes=["ant", "cat", "dog"]).labels.tolist() == [2, 1, 2]
