"""Run folders survive what happens to processes and disks: kills, races, forks, full and read-only disks."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from evenly.errors import SetupError
from evenly.records import Run, lines

MAPPING = {"optimizer": {"lr": 0.1}, "seed": 0}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return Run.create(tmp_path, MAPPING, "c0ffee")


def python(code: str, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, text=True)


def wait_for(path: Path, *, size: int = 1) -> None:
    give_up = time.monotonic() + 30
    while not path.exists() or path.stat().st_size < size:
        assert time.monotonic() < give_up, f"{path} did not grow"
        time.sleep(0.01)


def test_a_process_killed_while_logging_leaves_every_line_it_logged(tmp_path: Path) -> None:
    code = """
import sys
from evenly.records import Run
run = Run.create(sys.argv[1], {"seed": 0}, "c0ffee")
for step in range(10**9):
    run.log(step=step, loss=0.5, pad="x" * 500)
    print(step, flush=True)
"""
    writer = python(code, str(tmp_path))
    wait_for(tmp_path / "c0ffee" / "metrics.jsonl", size=50_000)
    assert Run.open("c0ffee", tmp_path).state == "running"
    os.kill(writer.pid, signal.SIGKILL)
    told = writer.communicate()[0].split("\n")[:-1]
    run = Run.open("c0ffee", tmp_path)
    assert run.state == "stopped"
    steps = [row["step"] for row in run.metrics()]
    assert steps == list(range(len(steps)))
    assert len(steps) >= len(told) > 50
    with Run.create(tmp_path, {"seed": 0}, "c0ffee") as run:
        run.log(step=len(steps))
    assert [row["step"] for row in run.metrics()] == list(range(len(steps) + 1))


def test_two_processes_cannot_write_one_run(run: Run, tmp_path: Path) -> None:
    code = """
import sys
from evenly.errors import EvenlyError
from evenly.records import Run
try:
    Run.create(sys.argv[1], {"optimizer": {"lr": 0.1}, "seed": 0}, "c0ffee")
except EvenlyError as error:
    print(error.exit_code, error)
"""
    said = python(code, str(tmp_path)).communicate()[0]
    assert said.startswith("4 ")  # nothing is wrong with the command
    assert f"is being written by another process (number {os.getpid()} on {os.uname().nodename})" in said
    run.log(epoch=1)
    run.close()
    assert python(code, str(tmp_path)).communicate()[0] == ""


def test_of_many_processes_that_start_at_once_one_gets_the_run(tmp_path: Path) -> None:
    code = """
import sys, time
from evenly.errors import SetupError
from evenly.records import Run
try:
    run = Run.create(sys.argv[1], {"seed": 0}, "c0ffee")
    run.log(winner=True)
    print("won", flush=True)
    time.sleep(60)
except SetupError:
    print("lost")
"""
    racers = [python(code, str(tmp_path)) for _ in range(3)]
    try:
        wait_for(tmp_path / "c0ffee" / "metrics.jsonl")
        first = [racer.stdout.readline().strip() for racer in racers if racer.stdout]
    finally:
        for racer in racers:
            racer.kill()
            racer.communicate()
    assert sorted(first) == ["lost", "lost", "won"]
    assert Run.open("c0ffee", tmp_path).metrics() == [{"winner": True}]


def test_a_forgotten_run_gives_back_its_lock(tmp_path: Path) -> None:
    Run.create(tmp_path, MAPPING, "c0ffee")
    gc.collect()
    assert Run.open("c0ffee", tmp_path).state == "new"


def test_a_forked_child_does_not_give_back_its_parents_lock(run: Run, tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        run.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert Run.open("c0ffee", tmp_path).state == "running"


def test_a_line_that_does_not_fit_on_the_disk_is_taken_back(tmp_path: Path) -> None:
    # A limit on the size of files fails the write half-way, as a full disk does.
    code = """
import resource, signal, sys
from pathlib import Path
from evenly.errors import SetupError
from evenly.records import lines
path = Path(sys.argv[1])
lines.append(path, {"epoch": 1})
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
try:
    lines.append(path, {"epoch": 2, "pad": "x" * 1000})
except SetupError as error:
    print(error)
"""
    path = tmp_path / "metrics.jsonl"
    said = python(code, str(path)).communicate()[0]
    assert f"cannot write {path}: File too large. Files may not grow that large here: raise the limit" in said
    assert path.read_bytes() == b'{"epoch": 1}\n'


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_is_the_machines_fault() -> None:
    with pytest.raises(SetupError, match="cannot write /dev/full: "):
        lines.append(Path("/dev/full"), {"epoch": 1})


def test_a_place_that_cannot_hold_a_folder_is_the_machines_fault(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("a file")
    with pytest.raises(SetupError, match=r"cannot make .*: Not a directory. Choose a writable folder for runs"):
        Run.create(tmp_path / "runs", MAPPING, "c0ffee")


@pytest.fixture
def unprivileged() -> Iterator[None]:
    """Root may write anywhere, so that for a test of permissions it becomes somebody else."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    yield
    os.seteuid(before)


@pytest.mark.usefixtures("unprivileged")
def test_a_read_only_run_is_read_but_not_written() -> None:
    with tempfile.TemporaryDirectory() as root:  # not tmp_path, into which nobody else may look
        run = Run.create(root, MAPPING, "c0ffee")
        run.log(epoch=1)
        run.close()
        (run.path / "lock").unlink()
        (run.path / "metrics.jsonl").chmod(0o444)
        run.path.chmod(0o555)
        seen = Run.open("c0ffee", root)
        assert (seen.state, seen.metrics(), seen.recipe) == ("stopped", [{"epoch": 1}], MAPPING)
        for write in (lambda: seen.log(epoch=2), lambda: seen.finish({}), lambda: Run.create(root, MAPPING, "c0ffee")):
            with pytest.raises(SetupError, match=r"cannot write .*: Permission denied. Choose a writable folder"):
                write()
        with pytest.raises(SetupError, match=r"cannot make .*: Permission denied. Choose a writable folder"):
            Run.create(run.path, MAPPING, "deadbeef")
        assert sorted(path.name for path in run.path.iterdir()) == ["metrics.jsonl", "recipe.yaml"]
        run.path.chmod(0o755)


def test_a_lock_that_is_a_link_is_refused_and_its_target_untouched(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("text")
    run = Run.create(tmp_path, MAPPING, "c0ffee")
    run.close()
    (run.path / "lock").unlink()
    (run.path / "lock").symlink_to(target)
    with pytest.raises(SetupError, match="lock is a link"):
        Run.create(tmp_path, MAPPING, "c0ffee")
    assert target.read_text() == "text"
    assert run.state == "new"


def test_metrics_that_are_a_link_are_not_written_through(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("no line end")
    run = Run.create(tmp_path, MAPPING, "c0ffee")
    (run.path / "metrics.jsonl").symlink_to(target)
    with pytest.raises(SetupError, match="cannot write"):
        run.log(epoch=1)
    run.close()
    with pytest.raises(SetupError, match="cannot write"):
        Run.create(tmp_path, MAPPING, "c0ffee")
    assert target.read_text() == "no line end"
