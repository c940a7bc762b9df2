"""Names that cannot be, folders that cannot be read or made, and bytes that are no text: an answer, not a traceback."""

import os
from pathlib import Path

import pytest

from evenly.cli import main
from evenly.records import Run
from evenly.records.query import runs

LONG = "a" * 300
Captured = pytest.CaptureFixture[str]


@pytest.mark.parametrize(
    "words",
    [
        ["runs", "show", LONG],
        ["report", LONG],
        ["train", f"{LONG}.npz"],
        ["report", f"{LONG}/b"],
        ["predict", LONG, "x.png"],
    ],
)
def test_a_name_longer_than_any_file_can_have_is_not_there(words: list[str], tmp_path: Path, capsys: Captured) -> None:
    Run.create(tmp_path, {"seed": 0}, "b1").close()
    assert main([*words, "--runs", str(tmp_path)]) in (2, 3, 4)
    assert "evenly: " in capsys.readouterr().err


@pytest.mark.parametrize("words", [["report", "--claims", "--out"], ["report", "--atlas", "--out"]])
def test_a_site_below_a_file_is_refused(words: list[str], tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").write_text("x")
    assert main([*words, str(tmp_path / "file" / "site")]) == 4
    assert "cannot write" in capsys.readouterr().err


def test_a_ledger_below_a_file_is_refused_before_anything_is_measured(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "file").write_text("x")
    asked = ["reproduce", "chang2025/fig1c", "--scale", "smoke", "--runs", str(tmp_path / "runs")]
    assert main([*asked, "--ledger", str(tmp_path / "file" / "x")]) == 4
    assert "cannot write" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_a_ledger_without_rows_is_not_called_sound(tmp_path: Path, capsys: Captured) -> None:
    assert main(["reproduce", "--judge", "--ledger", str(tmp_path / "nowhere")]) == 2
    assert "there are no rows in" in capsys.readouterr().err


@pytest.mark.parametrize("since", ["0001-01-01", "9999-12-31T23:59"])
def test_a_date_at_the_end_of_the_calendar_is_an_answer(since: str, tmp_path: Path, capsys: Captured) -> None:
    Run.create(tmp_path, {"seed": 0}, "b1").close()
    assert main(["runs", "--runs", str(tmp_path), "--since", since]) in (0, 2)


def test_an_experiment_that_is_not_there_cannot_be_cited(capsys: Captured) -> None:
    assert main(["cite", "springer2024/fig2"]) == 0
    assert main(["cite", "springer2024/fig999"]) == 2
    assert "there is no experiment 'springer2024/fig999'" in capsys.readouterr().err


def test_a_run_folder_that_cannot_be_read_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("a1", "b1"):
        Run.create(tmp_path, {"seed": 0}, name).close()
    (tmp_path / "a1").chmod(0)
    if os.access(tmp_path / "a1", os.R_OK):  # root may read everything
        exists = Path.exists

        def refusing(path: Path) -> bool:
            if path.parent.name == "a1":
                raise PermissionError(13, "Permission denied")
            return exists(path)

        monkeypatch.setattr(Path, "exists", refusing)
    try:
        assert [run.id for run in runs(tmp_path)] == ["b1"]
        assert "a1: it cannot be read: Permission denied" in caplog.text
        assert Run.open("b", tmp_path).id == "b1"
    finally:
        (tmp_path / "a1").chmod(0o700)


def test_a_page_of_a_folder_whose_name_is_no_text_is_written(tmp_path: Path) -> None:
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/r\xff"))
    for name in ("a1", "b1"):
        Run.create(folder, {"seed": 0}, name).close()
    assert main(["report", str(folder), "--out", str(tmp_path / "page.html")]) == 0
    assert "Experiments in" in (tmp_path / "page.html").read_text()
