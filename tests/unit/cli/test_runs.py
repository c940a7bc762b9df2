"""`evenly runs` over what training leaves, also when it is damaged."""

import json
from pathlib import Path

import pytest

from evenly.cli import main
from evenly.records import Run


def test_a_done_run_with_torn_metrics_tells_its_own_epoch_and_the_error_of_the_split_it_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    runs = str(tmp_path / "runs")
    words = ["train", "digit-dominoes", "--model", "mlp", "--epochs", "3", "--set", "model.options.width=8"]
    assert main([*words, "--device", "cpu", "--runs", runs]) == 0
    (folder,) = Path(runs).iterdir()
    lines = (folder / "metrics.jsonl").read_bytes().splitlines(keepends=True)
    (folder / "metrics.jsonl").write_bytes(b"".join(lines[:2]) + lines[2][:20])
    capsys.readouterr()
    assert main(["runs", "--runs", runs, "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["epoch"] == 3
    assert row["test error"] == json.loads((folder / "done").read_text())["test.error"]
    assert main(["measure", folder.name, "rank", "--runs", runs, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["epoch"] == 3
    summary = json.loads((folder / "done").read_text())
    del summary["test.error"]
    (folder / "done").write_text(json.dumps(summary | {"validation.error": 0.125}))
    assert main(["runs", "--runs", runs]) == 0
    out, err = capsys.readouterr()
    assert "12.50 v" in out
    assert "1 run in" in err


def test_a_run_whose_metrics_something_else_changed_does_not_hide_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for seed, name in enumerate(("a0", "b1")):
        with Run.create(tmp_path, {"seed": seed}, name) as run:
            run.log(epoch=1, **{"train.error": 0.5})
            run.log(epoch=2, **{"train.error": 0.25})
    lines = (tmp_path / "a0" / "metrics.jsonl").read_text().splitlines()
    (tmp_path / "a0" / "metrics.jsonl").write_text("\n".join(["{torn", lines[1]]) + "\n")
    assert main(["runs", "--runs", str(tmp_path), "--json"]) == 0
    out, err = capsys.readouterr()
    assert [row["id"] for row in json.loads(out)] == ["b1"]
    assert "Left out a0" in err
    assert "line 1" in err


def test_a_name_in_a_strangers_recipe_does_not_reach_the_terminal_as_a_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Run.create(tmp_path, {"data": {"name": "d\x1b[2J\x1b]0;owned\x07\u202enpz"}}, "a0") as run:
        run.finish({"epoch": 1})
    for words in (["runs"], ["runs", "show", "a0"]):
        assert main([*words, "--runs", str(tmp_path)]) == 0
        out, err = capsys.readouterr()
        assert not set("\x1b\x07\u202e") & set(out + err)
