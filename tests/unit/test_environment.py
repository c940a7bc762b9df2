"""Stamps: what they hold, what they never hold, and how two differ."""

import getpass
import json
import os
import platform
import socket
import stat
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import torch

import evenly
from evenly import environment


def git(folder: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=Somebody", "-c", "user.email=some@body", "-c", "commit.gpgsign=false"]
    command = ["git", "-C", str(folder), *identity, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "--quiet")
    (folder / "a.txt").write_text("a")
    git(folder, "add", "a.txt")
    git(folder, "commit", "--quiet", "-m", "first")
    monkeypatch.chdir(folder)
    return folder


def test_a_stamp_is_plain_json_with_versions_machine_and_time() -> None:
    stamp = environment.stamp(data="0123456789abcdef")
    assert json.loads(json.dumps(stamp)) == stamp
    assert stamp["evenly"] == evenly.__version__
    assert stamp["python"].split()[1] == platform.python_version()
    assert stamp["libraries"]["torch"] == torch.__version__
    assert stamp["libraries"]["numpy"] == np.__version__
    assert stamp["threads"] == torch.get_num_threads()
    assert isinstance(stamp["devices"], list)
    assert stamp["cpus"] == os.cpu_count()
    assert stamp["cpu"]
    assert stamp["data"] == "0123456789abcdef"
    assert timedelta() <= datetime.now(UTC) - datetime.fromisoformat(stamp["time"]) < timedelta(minutes=1)


def test_a_stamp_does_not_import_torch_but_knows_its_version() -> None:
    code = (
        "import sys, json; from evenly import environment; s = environment.stamp();"
        "print(json.dumps(s)); sys.exit('torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    stamp = json.loads(result.stdout)
    assert stamp["libraries"]["torch"] == torch.__version__
    assert stamp["threads"] is None
    assert stamp["devices"] is None


def test_a_stamp_holds_nothing_personal() -> None:
    text = json.dumps(environment.stamp())
    for secret in (socket.gethostname(), getpass.getuser(), str(Path.home()), str(Path.cwd()), sys.prefix):
        if len(secret) > 3:  # "a" or "/" would be found anywhere
            assert secret not in text
    assert '"/' not in text


def test_the_working_directory_tells_its_revision_and_whether_tracked_files_changed(repository: Path) -> None:
    head = git(repository, "rev-parse", "HEAD")
    (repository / "runs").mkdir()
    (repository / "runs" / "new.txt").write_text("untracked results are no change")
    assert environment.stamp()["working_directory"] == {"revision": head, "dirty": False}
    (repository / "a.txt").write_text("b")
    assert environment.stamp()["working_directory"] == {"revision": head, "dirty": True}


def test_asking_leaves_no_trace_in_the_repository(repository: Path) -> None:
    os.utime(repository / "a.txt", (0, 0))  # git status would refresh its index for this
    before = (repository / ".git" / "index").read_bytes()
    assert environment.stamp()["working_directory"]["dirty"] is False
    assert (repository / ".git" / "index").read_bytes() == before


def test_variables_of_gits_hooks_do_not_mislead(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    git(other, "init", "--quiet")
    head = git(repository, "rev-parse", "HEAD")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    assert environment.stamp()["working_directory"]["revision"] == head


def test_no_repository_an_empty_one_and_no_git_are_none(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    empty, bare = tmp_path / "empty", tmp_path / "bare"
    empty.mkdir()
    bare.mkdir()
    git(empty, "init", "--quiet")
    monkeypatch.chdir(empty)
    assert environment.stamp()["working_directory"] is None
    monkeypatch.chdir(bare)
    assert environment.stamp()["working_directory"] is None
    monkeypatch.chdir(repository)
    monkeypatch.setenv("PATH", str(bare))
    stamp = environment.stamp()
    assert stamp["working_directory"] is None
    assert stamp["source"] is None


def test_a_git_that_hangs_is_not_waited_for(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = tmp_path / "git"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(slow.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert environment._output(["git", "status"], seconds=0.2) is None


def test_the_source_is_named_only_if_evenly_itself_is_tracked(
    repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A virtual environment often lies inside a user's repository: its revision is not evenly's.
    copy = repository / ".venv" / "evenly"
    copy.mkdir(parents=True)
    (copy / "__init__.py").write_text("")
    monkeypatch.setattr(evenly, "__file__", str(copy / "__init__.py"))
    assert environment.stamp()["source"] is None
    git(repository, "add", "-f", ".venv")
    git(repository, "commit", "--quiet", "-m", "second")
    assert environment.stamp()["source"] == {"revision": git(repository, "rev-parse", "HEAD"), "dirty": False}


def test_a_stamp_does_not_differ_from_one_taken_later() -> None:
    assert environment.difference(environment.stamp() | {"time": "then"}, environment.stamp()) == []


def test_differences_are_named_by_path_with_both_values() -> None:
    was = {"time": "a", "cpus": 2, "libraries": {"torch": "2.6.0", "numpy": "2.0"}, "devices": ["A100"], "source": None}
    now = {"time": "b", "libraries": {"torch": "2.13.0", "numpy": "2.0"}, "devices": [], "source": {"dirty": True}}
    assert environment.difference(was, now) == [
        "cpus: 2 → none",
        "libraries.torch: 2.6.0 → 2.13.0",
        "devices: A100 → none",
        "source.dirty: none → True",
    ]
