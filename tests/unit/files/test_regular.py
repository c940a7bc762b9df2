"""What is no regular file is refused, and never waited for."""

import os
import socket
from pathlib import Path

import pytest

from evenly.cli import main
from evenly.data.fetch.unpack import unpack
from evenly.errors import DataError


@pytest.mark.parametrize("name", ["x.npz", "m.csv", "m.parquet", "class/f.png"])
@pytest.mark.parametrize("kind", ["pipe", "folder", "socket"])
def test_what_is_no_regular_file_is_refused_and_never_waited_for(
    tmp_path: Path, name: str, kind: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the names of sockets are short
    path = Path(name)
    path.parent.mkdir(exist_ok=True)
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    given = "." if name == "class/f.png" else name
    assert main(["data", "verify", f"./{given}"]) == 3
    assert main(["train", f"./{given}", "--model", "mlp", "--epochs", "1"]) == 3
    said = capsys.readouterr().err
    assert "Traceback" not in said
    if kind == "pipe":
        assert f"{path.name} is a named pipe, not a regular file" in said


def test_archives_and_separations_that_are_pipes_are_not_waited_for(tmp_path: Path) -> None:
    for name in ("a.zip", "a.tar", "a.gz", "a.tar.gz"):
        os.mkfifo(tmp_path / name)
        with pytest.raises(DataError, match="is a named pipe"):
            unpack(tmp_path / name, tmp_path / "out")
