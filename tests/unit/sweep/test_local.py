"""Jobs in processes of this machine: order, failures, logs, waiting, and the same bits as one after the other."""

import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from evenly import memory
from evenly.errors import EvenlyError, SetupError
from evenly.records import Run
from evenly.sweep import Job, Plan, Where, launch, local, worker
from evenly.sweep.launch import JobsFailed

JOBS = "tests.cluster.jobs"
NOTHING = "evenly.sweep.worker:do_nothing"
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
            Job("after bad", "evenly.sweep.worker:do_nothing", needs=("bad",)),
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


def test_a_killed_process_loses_its_job_alone_and_the_same_command_tries_it_again(tmp_path):
    jobs = [Job(f"job {n}", NOTHING) for n in range(4)]
    plan = Plan([Job("killed", f"{JOBS}:die", {"once": "mark"}), *jobs, Job("after", NOTHING, needs=("killed",))])
    with pytest.raises(JobsFailed, match=r"1 of 6 runs failed, 4 are done") as caught:
        launch(plan, Where(at_once=2, threads=1), runs=tmp_path)
    told = str(caught.value)
    assert f"killed on {socket.gethostname()}: its process ended with signal 9, most likely for want of memory" in told
    assert "killed.log" in told
    assert "need one of these: after" in told
    assert caught.value.exit_code == 4
    again = launch(plan, Where(at_once=2, threads=1), runs=tmp_path)
    assert (again["killed"], again["after"]) == ("alive", {})


def test_a_run_that_another_command_trains_is_waited_for_and_not_trained_twice(tmp_path):
    both = Plan([Job(f"the same, {n}", f"{JOBS}:train", {**RECIPE, "epochs": 40}) for n in range(2)])
    found = launch(both, Where(at_once=2, threads=1), runs=tmp_path)
    (name,) = set(found.values())
    assert len(Run(tmp_path / name).stamps()) == 1


def test_processes_share_the_cores(tmp_path):
    plan = Plan([Job(f"job {n}", f"{JOBS}:threads") for n in range(2)])
    assert set(launch(plan, Where(at_once=2, threads=1), runs=tmp_path).values()) == {1}


COMMAND = """
import sys
from evenly.sweep import Job, Plan, Where, launch
recipe, seeds = {recipe!r}, sys.argv[1].split(",")
jobs = [Job(f"seed {{n}}", "tests.cluster.jobs:train", dict(recipe, seed=int(n))) for n in seeds]
if __name__ == "__main__":
    print(launch(Plan(jobs), Where(at_once=2, threads=1), runs=sys.argv[2]))
"""


def test_two_commands_with_overlapping_plans_train_each_run_once(tmp_path):
    script = tmp_path / "command.py"
    script.write_text(COMMAND.format(recipe=dict(RECIPE, epochs=40)))
    runs = tmp_path / "runs"
    commands = [
        subprocess.Popen([sys.executable, str(script), seeds, str(runs)], stdout=subprocess.PIPE, text=True)
        for seeds in ("0,1,2", "2,1,3")
    ]
    told = [eval(command.communicate(timeout=240)[0]) for command in commands]
    assert [command.returncode for command in commands] == [0, 0]
    assert told[0]["seed 1"] == told[1]["seed 1"]
    found = [Run(path.parent) for path in runs.glob("*/done")]
    assert [len(run.stamps()) for run in found] == [1, 1, 1, 1]


def test_jobs_of_several_processes_do_not_share_files_on_a_host_with_a_dotted_name(tmp_path, monkeypatch):
    monkeypatch.setattr(socket, "gethostname", lambda: "node1.cluster.org")
    first, second = worker._exchange_files(tmp_path), worker._exchange_files(tmp_path)
    assert len({*first, *second}) == 4
    assert all(path.name.startswith(".node1.cluster.org-") for path in (*first, *second))


def test_a_run_of_two_processes_ends_like_one_and_tells_its_errors(tmp_path):
    job = Job("two", f"{JOBS}:train", {**RECIPE})
    found = launch(Plan([job]), Where(at_once=1, devices=2, threads=1), runs=tmp_path)
    assert (tmp_path / found["two"] / "done").is_file()
    for late in ("0", "1"):  # whichever process is the slower one
        bad = Plan([Job("bad", f"{JOBS}:fail", {"why": "there are no labels in photos/", "late": late})])
        with pytest.raises(JobsFailed, match="no labels in photos/") as caught:
            launch(bad, Where(at_once=1, devices=2, threads=1), runs=tmp_path)
        assert caught.value.exit_code == 3
    assert not list((tmp_path / "sweep").glob(".*"))


def test_two_processes_of_a_run_save_where_they_stand_when_the_command_is_told_to_stop(tmp_path):
    script = tmp_path / "command.py"
    code = COMMAND.format(recipe=dict(RECIPE, epochs=100_000)).replace("at_once=2", "at_once=1, devices=2")
    script.write_text(code)
    runs = tmp_path / "runs"
    command = subprocess.Popen([sys.executable, str(script), "0", str(runs)], stderr=subprocess.PIPE, text=True)
    while not list(runs.glob("*/checkpoints/last.safetensors")):
        assert command.poll() is None, command.stderr.read()
        time.sleep(0.05)
    command.send_signal(signal.SIGTERM)
    command.communicate(timeout=120)
    (run,) = (Run(path.parents[1]) for path in runs.glob("*/checkpoints/last.safetensors"))
    assert run.state == "stopped"
    assert "stopped after step" in "".join(path.read_text() for path in runs.glob("sweep/*/*.log"))


@pytest.mark.parametrize(
    ("named", "num", "seen"),
    [
        ("-1", 0, []),
        ("NoDevFiles", 0, []),
        ("0", 0, []),
        ("", 0, []),
        ("4, 5", 2, ["4", "5"]),
        ("0,-1,1", 1, ["0"]),
        (None, 2, ["0", "1"]),
    ],
)
def test_names_of_gpus_count_only_if_the_gpus_are_there(monkeypatch, named, num, seen):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    if num != torch.cuda.device_count():  # This machine may have none to count.
        monkeypatch.setattr(torch.cuda, "device_count", lambda: num)
    assert local._gpus() == seen
    assert local.resolve_where(Where()).gpus == min(len(seen), 1)


def test_a_machine_with_gpus_gives_one_to_each_run_unless_told_otherwise(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    assert (local.resolve_where(Where()).at_once, local.resolve_where(Where()).gpus) == (4, 1)
    assert local.resolve_where(Where(devices=2)).at_once == 2
    assert local.resolve_where(Where(gpus=0)).at_once == local.usable_cores()
    with pytest.raises(SetupError, match=r"8 runs at once of 1 x 1 GPUs need 8, and this machine has 4.*local:4"):
        local.resolve_where(Where(at_once=8))


def test_each_process_sees_its_own_gpus(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,5,6,7")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 4)
    plan = Plan([Job(f"job {n}", f"{JOBS}:visible_gpus", {"seconds": 2.0}) for n in range(2)])
    seen = launch(plan, Where(at_once=2, gpus=1, devices=1, threads=1), runs=tmp_path)
    assert sorted(seen.values()) == ["4", "5"]


def test_more_runs_at_once_than_the_memory_holds_are_refused(monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    left = memory.free("cpu")
    with pytest.raises(SetupError, match=r"3 runs at once need .* GB of memory at least.*Give --on local:2"):
        local.resolve_where(Where(at_once=3), memory=int(left / 2.4))
    with pytest.raises(SetupError, match="smaller examples"):
        local.resolve_where(Where(), memory=2 * left)
    assert local.resolve_where(Where(), memory=int(left / 1.4)).at_once == 1


def test_jobs_overlap_in_time(tmp_path):
    pairs = [("one", "two"), ("two", "one")]
    jobs = [Job(mine, f"{JOBS}:meet", {"mine": mine, "other": other, "seconds": 120.0}) for mine, other in pairs]
    assert launch(Plan(jobs), Where(at_once=2, threads=1), runs=tmp_path) == dict(pairs)


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
    with pytest.raises(SetupError, match="need 2, and this machine has 0"):
        launch(seeds(0, 1), Where(at_once=2, gpus=1), runs=tmp_path)
    assert not list(tmp_path.glob("*/recipe.yaml"))


def test_one_after_the_other_an_error_is_the_jobs_own(tmp_path):
    with pytest.raises(EvenlyError, match="no labels"):
        launch(Plan([Job("bad", f"{JOBS}:fail", {"why": "no labels"})]), Where(at_once=1), runs=tmp_path)
