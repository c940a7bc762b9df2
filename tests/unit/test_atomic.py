import errno
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from evenly import atomic
from evenly.errors import SetupError, UsageError


def write_half(target: Path, error: Exception) -> None:
    with atomic.replacing(target, "w") as file:
        file.write("ha")
        raise error


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "result.txt"
    target.write_text("old")
    with pytest.raises(RuntimeError):
        write_half(target, RuntimeError())
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_written_file_has_the_permissions_of_an_ordinary_one(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("x")
    atomic.write_text(tmp_path / "ours", "x")
    modes = {stat.S_IMODE(os.stat(tmp_path / name).st_mode) for name in ("plain", "ours")}
    assert len(modes) == 1


def test_json_is_written_with_its_folder_and_reads_back(tmp_path: Path) -> None:
    atomic.write_json(tmp_path / "a" / "b.json", {"ρ": 0.1})
    assert json.loads((tmp_path / "a" / "b.json").read_text()) == {"ρ": 0.1}


def test_a_folder_that_is_a_file_is_named_in_the_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SetupError, match=r"cannot write .*file/inner"):
        atomic.write_text(tmp_path / "file" / "inner", "x")


def test_a_full_disk_is_named_and_nothing_half_written_stays(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=r"model.bin: No space left on device. Free some space"):
        write_half(tmp_path / "model.bin", OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    assert list(tmp_path.iterdir()) == []


TREE = """
import os, signal, sys
from pathlib import Path
from evenly import atomic
with atomic.replacing_tree(sys.argv[1]) as site:
    site.mkdir()
    (site / "index.html").write_text("new")
    if len(sys.argv) > 2:
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_tree_takes_its_name_when_it_is_whole_and_leftovers_go_with_the_next(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("old")
    assert subprocess.run([sys.executable, "-c", TREE, str(site), "killed"]).returncode == -9
    assert (site / "index.html").read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2, "what the killed writer left"
    assert subprocess.run([sys.executable, "-c", TREE, str(site)]).returncode == 0
    assert (site / "index.html").read_text() == "new"
    assert list(tmp_path.iterdir()) == [site]


def test_a_tree_that_cannot_take_its_name_leaves_the_old_one(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("old")
    with pytest.raises(SetupError), atomic.replacing_tree(site):
        pass  # nothing was written that could be renamed
    assert [str(path.relative_to(tmp_path)) for path in sorted(tmp_path.rglob("*"))] == ["site", "site/index.html"]


def test_a_tree_whose_writer_was_killed_between_its_renames_comes_back(tmp_path: Path) -> None:
    work = tmp_path / ".site.0.part"
    (work / "old").mkdir(parents=True)
    (work / "old" / "index.html").write_text("old")
    with pytest.raises(RuntimeError), atomic.replacing_tree(tmp_path / "site"):
        raise RuntimeError
    assert (tmp_path / "site" / "index.html").read_text() == "old"
    assert list(tmp_path.iterdir()) == [tmp_path / "site"]


def test_two_writers_of_one_tree_do_not_touch_each_others_work(tmp_path: Path) -> None:
    with atomic.replacing_tree(tmp_path / "a") as first:
        first.write_text("first")
        with atomic.replacing_tree(tmp_path / "a") as second:
            second.write_text("second")
        assert (tmp_path / "a").read_text() == "second"
        assert first.read_text() == "first"
    assert (tmp_path / "a").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


@pytest.mark.parametrize("path", ["", ".", "..", "/", "a/.."])
def test_a_path_without_a_name_is_refused(path: str) -> None:
    with pytest.raises(UsageError, match="and not a name to write to"):
        atomic.write_text(path, "text")
    with pytest.raises(UsageError, match="and not a name to write to"), atomic.replacing_tree(path):
        pass
