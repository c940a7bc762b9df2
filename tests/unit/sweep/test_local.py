"""Jobs in processes of this machine: order, failures, logs, waiting, and the same bits as one after the other."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenly.errors import EvenlyError, SetupError
from evenly.records import Run
from evenly.sweep import Job, Plan, Where, launch
from evenly.sweep.launch import JobsFailed

JOBS = "tests.cluster.jobs"
ROOT = Path(__file__).parents[3]
RECIPE = {"data": {"name": "parity", "options": {"dim": 5}}, "model": {"name": "mlp"}, "epochs": 2, "batch_size": 50}


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Working processes import the jobs of the tests."""
    monkeypatch.syspath_prepend(str(ROOT))
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'src'}")
    yield
    sys.modules.pop(JOBS, None)


def seeds(*numbers: int) -> Plan:
    return Plan([Job(f"seed {n}", f"{JOBS}:train", {**RECIPE, "seed": n}) for n in numbers])


def weights(runs: Path, name: str) -> bytes:
    return (runs / name / "weights.safetensors").read_bytes()


def test_two_at_once_give_the_bits_of_one_after_the_other(tmp_path):
    one = launch(seeds(0, 1, 2), Where(at_once=1, threads=1), runs=tmp_path / "one")
    two = launch(seeds(0, 1, 2), Where(at_once=2, threads=1), runs=tmp_path / "two")
    assert one == two
    assert len(set(one.values())) == 3
    for name in one.values():
        assert weights(tmp_path / "one", name) == weights(tmp_path / "two", name)


def test_a_failure_ends_only_what_needs_it_and_names_run_host_and_log(tmp_path):
    plan = Plan(
        [
            Job("bad", f"{JOBS}:fail", {"why": "there are no labels in photos/"}),
            Job("after bad", "evenly.sweep.worker:nothing", needs=("bad",)),
            Job("good", f"{JOBS}:train", {**RECIPE}),
        ]
    )
    with pytest.raises(JobsFailed) as caught:
        launch(plan, Where(at_once=2, threads=1), runs=tmp_path)
    told = str(caught.value)
    assert "1 of 3 runs failed, 1 is done" in told
    assert "bad on " in told
    assert "there are no labels in photos/" in told
    assert "after bad" in told
    log = next(line.split("log: ")[1] for line in told.splitlines() if "log: " in line)
    assert "looking for the examples" in Path(log).read_text()
    assert [run.state for run in (Run(path) for path in tmp_path.glob("*") if (path / "done").exists())] == ["done"]


def test_a_killed_process_is_an_error_in_words_and_the_same_command_goes_on(tmp_path):
    plan = Plan([Job("killed", f"{JOBS}:die", {"once": "mark"}), Job("other", "evenly.sweep.worker:nothing")])
    with pytest.raises(SetupError, match="most likely for want of memory"):
        launch(plan, Where(at_once=2, threads=1), runs=tmp_path)
    assert launch(plan, Where(at_once=2, threads=1), runs=tmp_path) == {"killed": "alive", "other": {}}


def test_a_run_that_another_command_trains_is_waited_for_and_not_trained_twice(tmp_path):
    both = Plan([Job(f"the same, {n}", f"{JOBS}:train", {**RECIPE, "epochs": 40}) for n in range(2)])
    found = launch(both, Where(at_once=2, threads=1), runs=tmp_path)
    (name,) = set(found.values())
    assert len(Run(tmp_path / name).stamps()) == 1


def test_processes_share_the_cores(tmp_path):
    plan = Plan([Job(f"job {n}", f"{JOBS}:threads") for n in range(2)])
    assert set(launch(plan, Where(at_once=2, threads=1), runs=tmp_path).values()) == {1}


def test_jobs_overlap_in_time(tmp_path):
    plan = Plan([Job(f"job {n}", f"{JOBS}:moments", {"seconds": 1.0}) for n in range(2)])
    (begun_a, ended_a), (begun_b, ended_b) = launch(plan, Where(at_once=2, threads=1), runs=tmp_path).values()
    assert max(begun_a, begun_b) < min(ended_a, ended_b)


def test_a_command_that_is_told_to_stop_lets_its_runs_save_where_they_stand(tmp_path):
    """SIGTERM to the command reaches the processes that work for it, and each saves before it goes."""
    code = f"""
from evenly.sweep import Job, Plan, Where, launch
recipe = {dict(RECIPE, epochs=100_000)!r}
jobs = [Job(f"seed {{n}}", "{JOBS}:train", dict(recipe, seed=n)) for n in range(2)]
if __name__ == "__main__":
    launch(Plan(jobs), Where(at_once=2, threads=1), runs={str(tmp_path)!r})
"""
    script = tmp_path / "command.py"
    script.write_text(code)
    command = subprocess.Popen([sys.executable, str(script)], stderr=subprocess.PIPE, text=True)
    while len(list(tmp_path.glob("*/checkpoints/last.safetensors"))) < 2:
        assert command.poll() is None, command.stderr.read()
        time.sleep(0.05)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/checkpoints/last.safetensors")}
    command.send_signal(signal.SIGTERM)
    told = command.communicate(timeout=120)[1]
    assert "Stopped" in told, told
    logs = "".join(path.read_text() for path in tmp_path.glob("sweep/*/*.log"))
    assert logs.count("stopped after step") == 2, logs
    assert all(path.stat().st_mtime_ns >= moment for path, moment in before.items())
    assert all(Run(path.parents[1]).state == "stopped" for path in before)


def test_gpus_that_are_not_there_are_refused_before_anything_runs(tmp_path):
    with pytest.raises(SetupError, match="this machine has 0"):
        launch(seeds(0, 1), Where(at_once=2, gpus=1), runs=tmp_path)
    assert not list(tmp_path.glob("*/recipe.yaml"))


def test_one_after_the_other_an_error_is_the_jobs_own(tmp_path):
    with pytest.raises(EvenlyError, match="no labels"):
        launch(Plan([Job("bad", f"{JOBS}:fail", {"why": "no labels"})]), Where(at_once=1), runs=tmp_path)
