"""CSV and Parquet lists of images."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

from evenly.data.formats.listing import list_dropped
from evenly.data.formats.locate import Missing
from evenly.data.own.manifests import manifest
from evenly.errors import DataError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "images").mkdir()
    for number in range(4):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(tmp_path / "images" / f"{number}.png")
    return tmp_path


def write(root: Path, text: str, name: str = "list.csv") -> Path:
    path = root / name
    path.write_text(text, encoding="utf-8")
    return path


FULL = """path,label,split,place,age,score,repeat
images/3.png,dog,train,sea,7,0.5,2
images/1.png,cat,train,land,8,0.25,1
images/0.png,cat,val,,9,1,1
images/2.png,dog,test,sea,7,nan,1
"""


def test_rows_labels_splits_and_attributes_are_kept(root: Path) -> None:
    splits = manifest(write(root, FULL))
    assert splits.name == "list.csv"
    assert list(splits) == ["train", "validation", "test"]
    train = splits.train
    assert train.classes == ("cat", "dog")
    assert train.labels.tolist() == [1, 0, 1]
    assert train.index.tolist() == [0, 1, 4]
    assert splits["test"].index.tolist() == [3]
    assert train.gather([0, 1, 2])[:, 0, 0, 0].tolist() == [3, 1, 3]
    assert train.attribute("age").tolist() == [7, 8, 7]
    assert train.values["place"] == ("", "land", "sea")
    assert train.attribute("place").tolist() == [2, 1, 2]
    assert "score" not in train.attributes
    assert "repeat" not in train.attributes


def test_empty_cells_of_an_attribute_are_remarked_on_as_a_group(root: Path) -> None:
    text = "path,label,camera,split\nimages/0.png,a,,train\nimages/1.png,b,x,train\nimages/2.png,a,,test\n"
    (remark,) = manifest(write(root, text)).remarks
    assert remark == "column 'camera' is empty in 1 row: it forms a group '(empty)'."  # `test` does not have it at all
    assert manifest(write(root, text.replace("a,,train", "a,y,train"))).remarks == ()
    (remark,) = manifest(write(root, text + "images/3.png,b,x,test\n")).remarks
    assert remark == "column 'camera' is empty in 2 rows: they form a group '(empty)'."


def test_whole_numbers_with_gaps_are_an_attribute_as_pandas_writes_them(root: Path) -> None:
    text = "path,label,place,score\nimages/0.png,a,0.0,0.5\nimages/1.png,b,1.0,\nimages/2.png,a,,1.0\n"
    splits = manifest(write(root, text))
    assert list(splits.train.attributes) == ["place"]
    assert splits.train.values["place"] == ("", "0.0", "1.0")
    assert splits.remarks == ("column 'place' is empty in 1 row: it forms a group '(empty)'.",)


def test_cells_of_parquet_that_are_not_a_number_or_bytes_are_empty_or_text(root: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"path": ["images/0.png", "images/1.png", "images/2.png"], "label": [b"dog", b"cat", b"dog"]}
    parquet.write_table(pyarrow.table({**columns, "place": [0.0, 1.0, float("nan")]}), root / "list.parquet")
    splits = manifest(root / "list.parquet")
    assert splits.classes == ("cat", "dog")
    assert splits.train.values["place"] == ("", "0.0", "1.0")
    parquet.write_table(pyarrow.table({**columns, "label": [0.0, 1.0, float("nan")]}), root / "list.parquet")
    with pytest.raises(DataError, match="column 'label' is empty in row 3"):
        manifest(root / "list.parquet")


def test_a_file_that_is_trained_on_and_held_out_is_named(root: Path) -> None:
    rows = "path,label,split\nimages/3.png,dog,train\nimages/1.png,cat,train\nimages/2.png,cat,train\n"
    assert manifest(write(root, f"{rows}images/0.png,cat,test\n")).remarks == ()
    shared = write(root, f"{rows}images/0.png,cat,test\n./images/1.png,cat,test\n{root}/images/3.png,dog,val\n")
    (remark,) = manifest(shared).remarks
    assert remark.startswith("2 files of 'validation' and 'test' are trained on too ('./images/1.png', '")
    assert remark.endswith("their error is that of examples which were learned. List each file in one split.")
    with pytest.raises(DataError, match="there is no 'train' split"):
        manifest(write(root, "path,label,split\nimages/3.png,dog,test\nimages/3.png,dog,val\n"))


def test_parquet_and_tsv_give_what_csv_gives(root: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    expected = manifest(write(root, FULL))
    rows = [line.split(",") for line in FULL.splitlines()]
    columns = {name: [row[i] for row in rows[1:]] for i, name in enumerate(rows[0])}
    columns |= {name: [int(cell) for cell in columns[name]] for name in ("age", "repeat")}
    columns["score"] = [0.5, 0.25, 1.0, None]
    columns["place"] = [cell or None for cell in columns["place"]]
    parquet.write_table(pyarrow.table(columns), root / "list.parquet")
    for again in (manifest(root / "list.parquet"), manifest(write(root, FULL.replace(",", "\t"), "list.tsv"))):
        assert again.fingerprint == expected.fingerprint
        assert again.train.values == expected.train.values
        assert again.train.attribute("place").tolist() == expected.train.attribute("place").tolist()
        assert list(again.train.attributes) == list(expected.train.attributes)


def test_parquet_without_pyarrow_names_the_extra(root: Path) -> None:
    (root / "list.parquet").write_bytes(b"PAR1")
    code = (
        "import sys; sys.modules['pyarrow'] = None\n"
        "from pathlib import Path\nfrom evenly.errors import SetupError\n"
        "from evenly.data.own.manifests import manifest\n"
        "try:\n    manifest(Path(sys.argv[1]))\nexcept SetupError as error:\n    print(error)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, root / "list.parquet"], capture_output=True, text=True, check=True
    )
    assert 'pip install "evenly[parquet]"' in done.stdout


def test_damaged_parquet_is_told(root: Path) -> None:
    pytest.importorskip("pyarrow")
    (root / "list.parquet").write_bytes(b"PAR1 and then nothing of use")
    with pytest.raises(DataError, match=r"list.parquet: is not a readable Parquet file"):
        manifest(root / "list.parquet")


@pytest.mark.parametrize(
    ("labels", "classes", "numbers"),
    [
        (["10", "2", "2", "10"], ("2", "10"), [1, 0, 0, 1]),
        (["-1", "1", "1", "-1"], ("-1", "1"), [0, 1, 1, 0]),
        (["1.0", "0.0", "1", "0"], ("0", "1"), [1, 0, 1, 0]),
        (["ten", "2", "2", "ten"], ("2", "ten"), [1, 0, 0, 1]),
    ],
)
def test_labels_may_be_numbers_or_names(
    root: Path, labels: list[str], classes: tuple[str, ...], numbers: list[int]
) -> None:
    rows = "".join(f"images/{i}.png,{label}\n" for i, label in enumerate(labels))
    train = manifest(write(root, "path,label\n" + rows)).train
    assert (train.classes, train.labels.tolist()) == (classes, numbers)


def test_columns_of_other_names_can_be_told(root: Path) -> None:
    path = write(root, "file,kind,part\nimages/0.png,cat,train\nimages/1.png,dog,test\n")
    with pytest.raises(DataError, match="class 'dog' has no training example"):
        manifest(path, path_column="file", label_column="kind", split_column="part")
    path = write(root, "file,kind,part\nimages/0.png,cat,train\nimages/1.png,cat,test\n")
    splits = manifest(path, path_column="file", label_column="kind", split_column="part")
    assert {split: len(part) for split, part in splits.items()} == {"train": 1, "test": 1}


@pytest.mark.parametrize(("option", "column"), [("split_column", "Split"), ("repeat_column", "REPEAT")])
def test_a_column_that_differs_by_case_only_is_not_taken_for_an_attribute(root: Path, option: str, column: str) -> None:
    path = write(root, f"path,label,{column}\nimages/0.png,a,1\nimages/1.png,b,1\n")
    with pytest.raises(DataError, match=rf"column '{column}' is not '{column.lower()}'.*--set {option}={column}"):
        manifest(path)


def test_a_split_or_repeat_column_that_was_named_must_exist(root: Path) -> None:
    path = write(root, "path,label,fold\nimages/0.png,a,train\nimages/1.png,b,train\nimages/2.png,b,test\n")
    with pytest.raises(DataError, match=r"no column 'fodl'; its columns: path, label, fold\. Did you mean 'fold'\?"):
        manifest(path, split_column="fodl")
    with pytest.raises(DataError, match="no column 'times'; its columns: path, label, fold"):
        manifest(path, split_column="fold", repeat_column="times")
    path = write(root, "path,label,split,fold\nimages/0.png,a,left,train\nimages/1.png,b,left,train\n")
    with pytest.raises(DataError, match="Did you mean 'fold'"):
        manifest(path, split_column="fodl")
    assert manifest(path, split_column="none").train.values["split"] == ("left",)  # a column of another meaning


@pytest.mark.parametrize(
    ("option", "column"), [("path_column", "label"), ("split_column", "label"), ("repeat_column", "path")]
)
def test_a_column_has_one_meaning(root: Path, option: str, column: str) -> None:
    path = write(root, "path,label\nimages/0.png,a\nimages/1.png,b\n")
    with pytest.raises(DataError, match=rf"column '{column}' is named by two options, .*{option}"):
        manifest(path, **{option: column})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,lable\nimages/0.png,a\n", r"no column 'label'; its columns: path, lable\. Did you mean 'lable'"),
        ("image,label\nimages/0.png,a\n", r"no column 'path'; its columns: image, label.*path_column="),
        (
            "a,label\nx.png,a\n",
            r"its columns: a, label\. Name the column with path_column=, or --set path_column=NAME\.$",
        ),
        ("x,y,label\n0.5,1.5,a\n", r"hold numbers: x, y, label\. A manifest lists image files.*\.npz"),
        ("path,label,split\nimages/0.png,a,train\nimages/1.png,a,trian\n", "'trian' in row 2.*Did you mean 'train'"),
        (
            "path,label,split\nimages/0.png,a,7\n",
            "'7' in row 1, which is not a split .1 such rows.. Known: balanced, pr",
        ),
        (
            "path;label\nimages/0.png;a\n",
            r"no column 'path'; its columns: path;label.*read as one column, 'path;label': separate columns by commas",
        ),
        ("path;label\nimages/a,b.png;a\n", r"line 2 has 2 fields, the header has 1.*by commas, not by semicolons"),
        (
            "images/0.png,cat\nimages/1.png,dog\n",
            r"no column 'path'.*first line, 'images/0.png,cat', was read as the names.*put the line 'path,label' above",
        ),
        ("path,label\n", "there is no row below the header"),
        ("", "is empty. Its first line names the columns"),
        ("path,label\nimages/0.png,\n", "column 'label' is empty in row 1"),
        ("path,label,split\nimages/0.png,a,\n", "column 'split' is empty in row 1"),
        ("path,label\nimages/0.png,a,extra\n", "line 2 has 3 fields, the header has 2"),
        ("path,label,label\nimages/0.png,a,b\n", "two columns have the same name"),
        ("path,label\nimages/0.png,0.5\nimages/1.png,1\n", "holds '0.5': labels are class names.*Bin the target"),
        ("path,label,split\nimages/0.png,a,test\n", "there is no 'train' split among test"),
        ('path,label\n"images/0.png,a\n', "is not a CSV file"),
    ],
)
def test_bad_manifest_is_told(root: Path, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        manifest(write(root, text))


def test_missing_files_are_counted_and_the_first_few_named(root: Path) -> None:
    rows = "".join(f"images/{i}.png,a\n" for i in range(9))
    with pytest.raises(DataError, match=r"names 5 files that do not exist .*images/4.png.*images/6.png' and 2 more"):
        manifest(write(root, "path,label\n" + rows))


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("path,label\nimages\\0.png,a\nimages\\1.png,b\n", "'images/0.png' does: replace the backslashes in the pat"),
        ("path,label\nhere.png,a\nimages/1.png,b\n", "'here.png' is in the current folder: paths are rel"),
        ("path,label\nnowhere.png,a\nimages/1.png,b\n", "Correct the paths, or put the files there"),
    ],
)
def test_files_that_are_nearly_where_they_should_be_are_pointed_out(
    text: str, hint: str, root: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    Image.new("RGB", (4, 4)).save(elsewhere / "here.png")
    monkeypatch.chdir(elsewhere)
    with pytest.raises(DataError, match=hint):
        manifest(write(root, text))


def test_text_that_is_not_utf8_and_a_missing_manifest_are_told(root: Path) -> None:
    path = root / "list.csv"
    path.write_bytes("path,label\nimages/0.png,Möwe\n".encode("latin1"))
    with pytest.raises(DataError, match="is not UTF-8 text"):
        manifest(path)
    path.unlink()
    with pytest.raises(Missing, match=r"list.csv"):
        manifest(path)


def test_byte_order_mark_of_spreadsheets_is_no_part_of_the_first_column(root: Path) -> None:
    path = root / "list.csv"
    path.write_bytes(b"\xef\xbb\xbfpath,label\r\nimages/0.png,a\r\n")
    assert len(manifest(path).train) == 1


def test_broken_images_are_skipped_and_row_numbers_stay(root: Path) -> None:
    (root / "images/3.png").write_bytes(b"broken")
    splits = manifest(write(root, FULL), skip_broken=True)
    assert splits.train.index.tolist() == [1]
    assert splits["test"].index.tolist() == [3]
    assert [b.path.name for b in list_dropped(splits)] == ["3.png"]
    assert splits.remarks == ("1 broken image was left out: images/3.png (not in an image format that is known).",)


@pytest.mark.parametrize("split", ["probe", "Balanced", "target_train", "target_test"])
def test_the_further_splits_of_the_catalogue_may_be_listed(root: Path, split: str) -> None:
    splits = manifest(write(root, f"path,label,split\nimages/0.png,a,Train\nimages/1.png,a,{split}\n"))
    assert list(splits) == ["train", split.lower()]
