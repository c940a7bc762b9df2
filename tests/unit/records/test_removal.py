"""Only what evenly made is ever deleted, by its own ID, directly in the folder of runs."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from evenly.environment import stamp
from evenly.errors import SetupError, UsageError
from evenly.records import Run
from evenly.records.removal import refusal, remove


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder of runs beside something precious, with one run in it."""
    (tmp_path / "precious").mkdir()
    (tmp_path / "precious" / "thesis.txt").write_text("years of work")
    run = Run.create(tmp_path / "runs", {"epochs": 1}, "c0ffee000001", environment=stamp())
    run.finish({"test.error": 0.1})
    return tmp_path / "runs"


def contents(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_a_run_is_removed_with_everything_in_it(root: Path):
    remove(root, "c0ffee000001")
    assert contents(root) == []


@pytest.mark.parametrize(
    "name", ["../precious", "../../precious", "", ".", "..", "/", "c0ffee000001/../../precious", "c0ffee000001/",
             "C0FFEE000001", "c0ffee", "c0ffee000001\n", "c0ffee00000*", "missing", 3, None, ["c0ffee000001"], {}]
)  # fmt: skip
def test_whatever_is_not_the_id_of_a_run_there_is_refused(root: Path, name: object):
    before = contents(root.parent)
    with pytest.raises(UsageError):
        remove(root, name)
    assert contents(root.parent) == before


def test_an_absolute_path_is_refused(root: Path):
    with pytest.raises(UsageError, match="no path"):
        remove(root, str(root.parent / "precious"))
    assert (root.parent / "precious" / "thesis.txt").exists()


def test_a_link_to_a_run_is_refused_and_links_inside_are_not_followed(root: Path, tmp_path: Path):
    (root / "c0ffee000002").symlink_to(root / "c0ffee000001")
    with pytest.raises(UsageError, match="is a link"):
        remove(root, "c0ffee000002")
    (root / "c0ffee000001" / "inside").symlink_to(tmp_path / "precious")
    remove(root, "c0ffee000001")
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "years of work"
    assert not (root / "c0ffee000001").exists()


@pytest.mark.parametrize("left_out", ["recipe.yaml", "environment.json"])
def test_a_folder_of_someone_else_is_refused(root: Path, left_out: str):
    (root / "c0ffee000001" / left_out).unlink()
    assert f"no {left_out}" in str(refusal(root, "c0ffee000001"))


@pytest.mark.parametrize("stamps", ["[]", "{}", '[{"torch": 1}]', "[" * 100_000, "not JSON", '[["evenly"]]'])
def test_a_folder_without_the_stamp_of_evenly_is_refused(root: Path, stamps: str):
    (root / "c0ffee000001" / "environment.json").write_text(stamps)
    with pytest.raises(UsageError, match="no stamp of evenly's"):
        remove(root, "c0ffee000001")
    assert (root / "c0ffee000001" / "done").exists()


def test_a_lock_that_is_a_link_is_not_written_through(root: Path, tmp_path: Path):
    lock = root / "c0ffee000001" / "lock"
    lock.unlink(missing_ok=True)
    lock.symlink_to(tmp_path / "precious" / "thesis.txt")
    with pytest.raises(UsageError, match="is a link"):
        remove(root, "c0ffee000001")
    assert (tmp_path / "precious" / "thesis.txt").read_text() == "years of work"


HOLDING = """
import sys
from evenly.records import Run
run = Run(sys.argv[1])
run.write_json("x.json", 1)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_run_that_another_process_writes_is_refused(root: Path):
    words = [sys.executable, "-c", HOLDING, str(root / "c0ffee000001")]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(SetupError, match="being written by another process"):
            remove(root, "c0ffee000001")
        assert json.loads((root / "c0ffee000001" / "done").read_text())
        process.communicate("")
    remove(root, "c0ffee000001")


KILLED = """
import os, signal, sys
from evenly.records.removal import remove
real, left = os.unlink, 2

def unlink(*arguments, **keywords):
    global left
    left -= 1
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    real(*arguments, **keywords)

os.unlink = unlink
remove(sys.argv[1], "c0ffee000001")
"""


def test_a_removal_that_is_killed_leaves_no_run_and_is_ended_by_the_next(root: Path):
    Run.create(root, {"epochs": 2}, "c0ffee000002", environment=stamp()).finish({})
    assert subprocess.run([sys.executable, "-c", KILLED, str(root)]).returncode == -9
    assert not (root / "c0ffee000001").exists(), "there, or not there, and never in half"
    assert contents(root)[0] == ".c0ffee000001.removed"
    (root / ".notes.removed").mkdir()
    remove(root, "c0ffee000002")
    assert contents(root) == [".notes.removed"], "of another name: not ours"
