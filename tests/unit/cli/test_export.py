"""`evenly export` gives what the run trained on, and the names that the data have."""

import csv
import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evenly.cli import main
from evenly.data import Labelled, load
from evenly.data.formats.image_files import ImageFiles
from evenly.records import Run
from evenly.training.trained_model import data_of

EPOCHS = 4
QUICK = ["--model", "mlp", "--epochs", str(EPOCHS), "--set", "model.options.width=32", "--device", "cpu"]
METHOD = ["--controls", "upweight", "--seeds", "0", "--at-epoch", "2", "--batch-size", "16", "--drop-suspect"]
HELD_OUT = ["--set", "data.validation=0.2", "--split", "validation", "--json"]


def photos(folder: Path) -> Path:
    """Two kinds of photo, told by the half that is bright: in most of them, in none, and a few in the wrong folder."""
    rng = np.random.default_rng(0)
    for label, name in enumerate(("cat", "dog")):
        (folder / name).mkdir(parents=True)
        for i in range(60):
            picture = rng.integers(0, 60, (8, 8, 3), dtype=np.uint8)
            half = 1 - label if i % 12 == 1 else label
            if i % 4:
                picture[:, 4 * half : 4 * half + 4] += 190
            Image.fromarray(picture).save(folder / name / f"{i:02}.png")
    return folder


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with photos and the runs of USEFUL on them, suspects shown once."""
    folder = tmp_path_factory.mktemp("method")
    photos(folder / "photos")
    words = ["useful", folder / "photos", *QUICK, *METHOD, *HELD_OUT, "--runs", folder / "runs"]
    assert main(list(map(str, words))) == 0
    return folder


def run_of(trained: Path, method: str) -> Run:
    runs = [Run(path.parent) for path in sorted((trained / "runs").glob("*/recipe.yaml"))]
    return next(run for run in runs if run.recipe["resampling"]["method"] == method)


def told(capsys: pytest.CaptureFixture[str], *words: object, code: int = 0) -> str:
    capsys.readouterr()
    assert main(list(map(str, words))) == code
    said = capsys.readouterr()
    return said.err if code else said.out


def test_a_run_that_showed_suspects_once_is_exported_as_it_was_trained(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(trained, "useful")
    facts = json.loads(told(capsys, "export", run.path, "--as", "csv", "--out", tmp_path / "up.csv", "--json"))
    assert facts["repeated"] < facts["hard"], "these data have suspects among the hard"
    assert facts["with_repeats"] * EPOCHS == run.summary()["examples_seen"]
    with (tmp_path / "up.csv").open() as file:
        rows = list(csv.DictReader(file))
    listed = Counter({int(row["index"]): int(row["repeat"]) for row in rows if row["split"] == "train"})
    told(capsys, "export", run.path, "--as", "indices", "--out", tmp_path / "up.npy")
    assert Counter(np.load(tmp_path / "up.npy").tolist()) == listed
    told(capsys, "export", run.path, "--as", "folder", "--out", tmp_path / "up")
    linked = Counter(int(link.stem.partition("-")[0]) for link in (tmp_path / "up" / "train").glob("*/*"))
    assert linked == listed
    often = json.loads(
        told(capsys, "export", run.path, "--as", "indices", "--factor", 3, "--out", tmp_path / "3.npy", "--json")
    )
    assert often["with_repeats"] == facts["examples"] + 2 * facts["repeated"]


def test_an_exported_csv_is_trained_on_with_its_repeats(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(trained, "useful")
    told(capsys, "export", run.path, "--as", "csv", "--out", tmp_path / "up.csv")
    told(capsys, "train", tmp_path / "up.csv", *QUICK, "--batch-size", 16, "--runs", tmp_path / "runs")
    (again,) = (Run(path.parent) for path in (tmp_path / "runs").glob("*/recipe.yaml"))
    assert again.summary()["examples_seen"] == run.summary()["examples_seen"]


@pytest.mark.parametrize(("form", "name"), [("csv", "up.csv"), ("folder", "up")])
def test_an_exported_training_set_comes_with_the_examples_that_the_run_held_out(
    form: str, name: str, trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(trained, "useful")
    told(capsys, "export", run.path, "--as", form, "--out", tmp_path / name)
    before, after = data_of(run), load(tmp_path / name)
    assert list(after) == list(before) == ["train", "validation"]

    def files(part: Labelled) -> list[Path]:
        assert isinstance(part.inputs, ImageFiles)
        return [(part.inputs.root / each).resolve() for each in part.inputs.names]

    assert sorted(files(after["validation"])) == sorted(files(before["validation"]))
    assert set(files(after.train)) == set(files(before.train))
    assert len(after.train) * EPOCHS == run.summary()["examples_seen"]


def test_classes_keep_the_names_that_the_data_have(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(trained, "useful")
    told(capsys, "export", run.path, "--as", "csv", "--out", tmp_path / "up.csv")
    with (tmp_path / "up.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert {row["label"] for row in rows} == {"cat", "dog"}
    assert all(Path(row["path"]).parent.name == row["label"] for row in rows)
    told(capsys, "export", run.path, "--as", "folder", "--out", tmp_path / "up")
    assert sorted(str(entry.relative_to(tmp_path / "up")) for entry in (tmp_path / "up").glob("*/*")) == [
        f"{split}/{kind}" for split in ("train", "validation") for kind in ("cat", "dog")
    ]
    assert all(link.resolve().parent.name == link.parent.name for link in (tmp_path / "up").glob("*/*/*"))


def test_a_run_that_weighted_losses_repeats_nothing_unless_told(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["export", run_of(trained, "upweight").path, "--as", "indices", "--out", tmp_path / "up.npy"]
    assert "saw every example once" in told(capsys, *words, code=2)
    assert not (tmp_path / "up.npy").exists()
    told(capsys, *words, "--factor", 2)


@pytest.mark.parametrize("method", ["balance:8", "random:8+like-balance"])
def test_a_run_with_factors_that_differ_is_exported_as_it_was_trained(
    method: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "digit-dominoes", *QUICK, "--methods", f"plain,{method}", "--seeds", 0]
    told(capsys, *words, "--at-epoch", 2, "--set", "data.options.size=300", "--runs", tmp_path / "runs")
    run = run_of(tmp_path, method.partition(":")[0])
    told(capsys, "export", run.path, "--as", "indices", "--out", tmp_path / "up.npy")
    times = Counter(Counter(np.load(tmp_path / "up.npy").tolist()).values())
    assert sum(often * num for often, num in times.items()) * EPOCHS == run.summary()["examples_seen"]
    assert len(times) > 2, "one factor for all would be another training set"


def test_a_run_that_divided_weights_by_their_mean_repeats_nothing_unless_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["compare", "digit-dominoes", *QUICK, "--methods", "plain,reweight", "--seeds", 0, "--at-epoch", 2]
    told(capsys, *words, "--set", "data.options.size=300", "--runs", tmp_path / "runs")
    words = ["export", run_of(tmp_path, "reweight").path, "--as", "indices", "--out", tmp_path / "up.npy"]
    assert "saw every example once" in told(capsys, *words, code=2)
    assert not (tmp_path / "up.npy").exists()


def test_a_run_whose_early_run_is_gone_cannot_tell_its_suspects(
    trained: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = run_of(trained, "useful")
    alone = tmp_path / "elsewhere" / run.id
    alone.mkdir(parents=True)
    for name in ("recipe.yaml", "separation.csv"):
        (alone / name).write_bytes((run.path / name).read_bytes())
    said = told(capsys, "export", alone, "--as", "indices", "--out", tmp_path / "up.npy", code=3)
    assert f"there is no run '{run.recipe['resampling']['early']}'" in said


@pytest.mark.parametrize("source", ["nofile.csv", "runs/nothing"])
def test_a_file_that_is_missing_is_not_taken_for_a_run(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    said = told(capsys, "export", source, "--as", "csv", code=3)
    assert f"{source}: there is no such file" in said
    assert "there is no run" not in said


@pytest.mark.parametrize("form", ["csv", "indices"])
def test_a_separation_of_other_data_is_refused(
    form: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{i},{i % 10},{i % 3 == 0:d},0.5\n" for i in range(60))
    Path("s.csv").write_text("index,label,hard,loss\n" + rows)
    said = told(capsys, "export", "s.csv", "--as", form, "--data", "digits", code=3)
    assert "another data set: 60 examples" in said
    assert "digits train has 1,438" in said
    assert [path.name for path in tmp_path.iterdir()] == ["s.csv"]


def test_outputs_numbered_from_zero_belong_to_the_training_rows_of_a_manifest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in range(4):
        Image.new("RGB", (4, 4), (number, 0, 0)).save(f"{number}.png")
    Path("all.csv").write_text("path,label,split\n0.png,cat,test\n1.png,cat,train\n2.png,dog,train\n3.png,dog,train\n")
    Path("s.csv").write_text("index,label,hard,loss\n2,1,1,2\n0,0,0,1\n1,1,0,1\n")
    told(capsys, "export", "s.csv", "--as", "csv", "--data", "all.csv", "--out", "up.csv")
    with Path("up.csv").open() as file:
        rows = [(row["path"], row["label"], row["split"], row["repeat"]) for row in csv.DictReader(file)]
    train = [("3.png", "dog", "train", "2"), ("1.png", "cat", "train", "1"), ("2.png", "dog", "train", "1")]
    assert rows == [*train, ("0.png", "cat", "test", "0")]


def rows_of_photos(folder: Path) -> list[tuple[str, str, str, str]]:
    """Photos with where and by whom they were taken; the second may be unknown."""
    photos(folder / "photos")
    files = sorted((folder / "photos").rglob("*.png"))
    return [
        (f"photos/{file.parent.name}/{file.name}", file.parent.name, ("sea", "land")[i % 2], ("", "7", "08")[i % 3])
        for i, file in enumerate(files)
    ]


def test_an_exported_manifest_keeps_the_attributes(tmp_path: Path) -> None:
    rows = rows_of_photos(tmp_path)
    with (tmp_path / "list.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("path", "label", "place", "person"), *rows])
    (tmp_path / "other").mkdir()
    data = load(tmp_path / "list.csv")
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(len(data.train), 2)) + 3 * np.eye(2)[data.train.labels] * (rng.random((96, 1)) < 0.6)
    np.savez(tmp_path / "logits.npz", logits=logits, labels=data.train.labels.numpy())
    out = tmp_path / "other" / "up.csv"
    assert main(["separate", "--from-logits", str(tmp_path / "logits.npz"), "--out", str(tmp_path / "s.csv")]) == 0
    words = ["export", tmp_path / "s.csv", "--data", tmp_path / "list.csv", "--as", "csv", "--out", out]
    assert main(list(map(str, words))) == 0
    with out.open(newline="") as file:
        written = {row["path"].removeprefix("../"): (row["place"], row["person"]) for row in csv.DictReader(file)}
    assert written == {path: (place, person) for path, _, place, person in rows}
    again = load(out)
    for name in ("place", "person"):
        assert again["test"].values[name] == data["test"].values[name]
        assert again["test"].attribute(name).tolist() == data["test"].attribute(name).tolist()


def test_a_separation_of_another_program_is_exported_with_options_of_the_data(tmp_path: Path) -> None:
    rows = rows_of_photos(tmp_path)
    with (tmp_path / "list.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("file", "label", "place", "index"), *rows])
    labels = np.array([row[1] == "dog" for row in rows]).astype(int)
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(len(labels), 2)) + 3 * np.eye(2)[labels] * (rng.random((len(labels), 1)) < 0.6)
    np.savez(tmp_path / "logits.npz", logits=logits, labels=labels)  # of all: the other program held nothing out
    assert main(["separate", "--from-logits", str(tmp_path / "logits.npz"), "--out", str(tmp_path / "s.csv")]) == 0
    words = ["export", tmp_path / "s.csv", "--data", tmp_path / "list.csv", "--as", "csv", "--out", tmp_path / "up.csv"]
    assert main(list(map(str, words))) == 3  # there is no column `path`
    assert main(list(map(str, [*words, "--set", "path_column=file"]))) == 3
    assert main(list(map(str, [*words, "--set", "path_column=file", "--set", "held_out=0"]))) == 0
    with (tmp_path / "up.csv").open(newline="") as file:
        written = list(csv.DictReader(file))
    assert [row["path"] for row in written] == [row[0] for row in rows]
    assert [row["index"] for row in written] == [str(i) for i in range(len(rows))]  # not the column of that name
