"""`evenly report` on the command line: a page, or what is wrong and the line that fixes it."""

import json
import socket
from pathlib import Path

import pytest

from evenly.cli import main
from evenly.recipe import Recipe, digest, to_mapping
from evenly.records import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    recipe = Recipe(epochs=2)
    with Run.create(tmp_path / "runs", to_mapping(recipe), digest(recipe)) as made:
        made.log(epoch=2, **{"test.error": 0.25})
        made.finish({"test.error": 0.25})
    return made


def test_the_page_is_written_and_its_path_printed(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    assert main(["report", run.id[:5], "--runs", str(tmp_path / "runs"), "--out", str(out)]) == 0
    said = capsys.readouterr()
    assert said.out == f"{out}\n"
    assert "25.00% error on test" in said.err
    assert out.read_text().startswith("<!doctype html>")


def test_json_tells_what_is_on_the_page(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(run.path), "--out", str(tmp_path / "a.html"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["sections"] == ["curves", "run"]
    assert told["command"] == "evenly train digits --epochs 2 --lr 0.1 --set schedule.kind=step"


def test_a_page_that_exists_is_kept_unless_forced(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "page.html"
    out.write_text("mine")
    assert main(["report", str(run.path), "--out", str(out)]) == 2
    assert "--force" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert main(["report", str(run.path), "--out", str(out), "--force"]) == 0
    assert out.read_text() != "mine"


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        ([], 2, "the folder of all runs: evenly report "),
        (["nope"], 2, "there is no run 'nope'"),
        (["RUN", "--sections", "geometry"], 3, "evenly measure RUN sharpness"),
        (["RUN", "--sections", "geometri"], 2, "Did you mean 'geometry'"),
        (["RUN", "--out", "page.png"], 2, "--out page.html"),
        (["RUN", "--out", "."], 2, "is a folder"),
        (["RUN", "--port", "80"], 2, "is for --serve"),
        (["RUN", "--serve", "--out", "a.html"], 2, "writes no file"),
        (["nope", "--serve"], 2, "there is no run 'nope'"),
    ],
)
def test_what_cannot_be_meant_is_said(
    words: list[str],
    code: int,
    told: str,
    run: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", *(str(run.path) if word == "RUN" else word for word in words)]) == code
    assert told.replace("RUN", str(run.path)) in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["runs"]


def test_a_port_in_use_is_an_error_of_the_machine(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert main(["report", "--serve", str(run.path), "--port", str(port)]) == 4
    assert f"port {port} is in use" in capsys.readouterr().err


def test_a_damaged_summary_is_named(run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (run.path / "done").write_text("{")
    assert main(["report", str(run.path), "--out", str(tmp_path / "a.html")]) == 3
    assert "done is not JSON" in capsys.readouterr().err
    assert not (tmp_path / "a.html").exists()


def test_the_default_page_is_drawn_anew_unless_it_is_not_ours(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["report", str(run.path)]) == 0
    (tmp_path / "report.html").write_text("<p>my notes</p>")
    assert main(["report", str(run.path)]) == 2
    assert (tmp_path / "report.html").read_text() == "<p>my notes</p>"
    assert "report.html exists" in capsys.readouterr().err
