"""`evenly predict` names the classes of new images; `--from` goes on from a run."""

import csv
import io
import json
import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from evenly.cli import main
from evenly.records import Run

SMALL = ["--model", "mlp", "--epochs", "1", "--batch-size", "8", "--device", "cpu", "--set", "model.options.width=16"]


def picture(path: Path, seed: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    pixels = np.random.default_rng(seed).integers(0, 255, (8, 8, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(path)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    for name in ("a", "b, c"):
        for i in range(10):
            picture(home / "photos" / name / f"{i}.png", seed=i)
    assert main(["train", str(home / "photos"), *SMALL, "--runs", str(home / "runs"), "--json"]) == 0
    return home


@pytest.fixture(scope="module")
def run(home: Path) -> str:
    (folder,) = (path for path in (home / "runs").iterdir() if (path / "done").exists())
    return str(folder)


def test_rows_hold_file_class_and_probability(run: str, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", run, str(home / "photos"), "--device", "cpu"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert len(rows) == 20
    assert list(rows[0]) == ["file", "class", "probability"]
    assert all(row["class"] in ("a", "b, c") and 0.5 <= float(row["probability"]) <= 1 for row in rows)


def test_a_file_is_written_whole_and_never_over_another(
    run: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "predictions.csv"
    words = ["predict", run, str(home / "photos" / "a"), "--out", str(out), "--device", "cpu", "--probabilities"]
    assert main(words) == 0
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert len(rows) == 10
    assert all(abs(float(row["p(a)"]) + float(row["p(b, c)"]) - 1) < 1e-5 for row in rows)
    assert "10 images" in capsys.readouterr().err
    assert main(words) == 2
    assert main([*words, "--force"]) == 0


def test_broken_files_are_named_counted_and_left_out(
    run: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    picture(tmp_path / "new" / "good.png")
    (tmp_path / "new" / "bad.jpg").write_bytes(b"\xff\xd8 no image")
    words = ["predict", run, str(tmp_path / "new"), "--device", "cpu", "--json"]
    assert main(words) == 3
    said = capsys.readouterr()
    assert [row["file"] for row in json.loads(said.out)] == [str(tmp_path / "new" / "good.png")]
    assert f"left out: {tmp_path / 'new' / 'bad.jpg'}" in said.err
    assert "1 file does not decode and has no row" in said.err
    assert main([*words, "--skip-broken"]) == 0
    capsys.readouterr()
    written = [*words, "--out", str(tmp_path / "rows.csv")]
    assert main(written) == 3
    assert "--skip-broken --force" in capsys.readouterr().err  # the file is there by now
    assert main([*written, "--skip-broken", "--force"]) == 0
    capsys.readouterr()
    assert main(["predict", run, str(tmp_path / "new" / "bad.jpg"), "--skip-broken"]) == 3


def test_training_goes_on_from_a_run_and_the_run_is_another(
    run: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["train", str(home / "photos"), "--epochs", "1", "--batch-size", "8", "--device", "cpu", "--json"]
    assert main([*words, "--from", run, "--lr", "1e-9", "--runs", str(tmp_path)]) == 0
    done = Run(json.loads(capsys.readouterr().out)["folder"])
    assert done.recipe["model"]["options"] == {"width": 16}
    assert done.recipe["model"]["weights"] == str(Path(run).resolve() / "weights.safetensors")
    assert done.identity is not None
    assert "first weights" in done.identity["given"]
    from safetensors.torch import load_file

    before, after = (load_file(Path(folder) / "weights.safetensors") for folder in (run, done.path))
    assert all((before[name] - after[name]).abs().max() < 1e-4 for name in before)


def test_the_run_to_go_on_from_is_found_by_its_id_in_the_folder_of_runs(run: str, home: Path) -> None:
    words = ["train", str(home / "photos"), "--from", Path(run).name[:6], "--batch-size", "8", "--device", "cpu"]
    assert main([*words, "--runs", str(home / "runs"), "--dry-run"]) == 0


def test_another_model_than_that_of_the_run_is_refused(
    run: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", str(home / "photos"), "--from", run, "--model", "convnet", "--dry-run"]) == 2
    assert "gives the weights of a mlp, which do not fit a convnet" in capsys.readouterr().err


def test_training_goes_on_from_an_exported_folder_and_not_from_another_programs(
    run: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "export"
    assert main(["export", run, "--as", "hub", "--out", str(folder)]) == 0
    capsys.readouterr()
    words = ["train", str(home / "photos"), "--from", str(folder), "--epochs", "1", "--batch-size", "8"]
    words += ["--device", "cpu", "--lr", "1e-9", "--runs", str(tmp_path / "runs"), "--json"]
    assert main(words) == 0
    done = Run(json.loads(capsys.readouterr().out)["folder"])
    assert done.recipe["model"]["options"] == {"width": 16}
    from safetensors.torch import load_file

    before, after = (
        load_file(Path(file)) for file in (f"{run}/weights.safetensors", done.path / "weights.safetensors")
    )
    assert all((before[name] - after[name]).abs().max() < 1e-4 for name in before)
    (folder / "config.json").write_text('{"architectures": ["ResNetForImageClassification"]}')
    assert main(words) == 3
    said = capsys.readouterr().err
    assert f"--model M --set model.weights={folder / 'model.safetensors'}" in said


def test_a_file_whose_name_is_no_text_has_its_row(run: str, tmp_path: Path) -> None:
    odd = tmp_path / "photos" / os.fsdecode(b"caf\xe9.png")
    picture(tmp_path / "x.png")
    odd.parent.mkdir()
    os.rename(tmp_path / "x.png", odd)
    out = tmp_path / "out.csv"
    assert main(["predict", run, str(odd.parent), "--device", "cpu", "--out", str(out)]) == 0
    assert b"caf\xe9.png," in out.read_bytes()


def test_a_pipe_is_not_replaced_by_a_file(
    run: str, home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    asked = ["predict", run, str(home / "photos"), "--device", "cpu", "--out", str(pipe), "--force"]
    assert main(asked) == 2
    assert "is a pipe, a socket or a device" in capsys.readouterr().err
    assert pipe.is_fifo()
