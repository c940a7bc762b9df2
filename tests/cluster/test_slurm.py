"""A real Slurm cluster of one node: the same bits, a killed task, and what cannot be."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.cluster import one_node_slurm

from evenly.errors import SetupError, UsageError
from evenly.sweep import Job, Plan, Where, check_available, launch, on_slurm, slurm_cluster
from evenly.sweep.launch import JobsFailed

pytest.importorskip("submitit", reason='needs submitit: pip install "evenly[slurm]"')
pytestmark = [
    pytest.mark.skipif(bool(one_node_slurm.missing()), reason=one_node_slurm.missing() or "there"),
    pytest.mark.xdist_group("slurm"),  # one cluster for all of them
]
JOBS = "tests.cluster.jobs"
ROOT = Path(__file__).parents[2]
RECIPE = {"data": {"name": "parity", "options": {"dim": 5}}, "model": {"name": "mlp"}, "epochs": 2, "batch_size": 50}


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    """A cluster, and the environment that finds it."""
    with one_node_slurm.cluster(tmp_path_factory.mktemp("slurm")) as environment:
        kept = dict(os.environ)
        os.environ.update(environment | {"PYTHONPATH": f"{ROOT}:{ROOT / 'src'}"})
        yield environment
        os.environ.clear()
        os.environ.update(kept)


def seeds(*numbers: int, **more: object) -> Plan:
    return Plan([Job(f"seed {n}", f"{JOBS}:train", {**RECIPE, "seed": n, **more}) for n in numbers])


def weights(runs: Path, name: str) -> bytes:
    return (runs / name / "weights.safetensors").read_bytes()


def test_an_array_on_slurm_gives_the_bits_of_this_process(slurm, tmp_path):
    here = launch(seeds(0, 1), Where(at_once=1, threads=1), runs=tmp_path / "here")
    there = launch(seeds(0, 1), Where("slurm", threads=1), runs=tmp_path / "there")
    assert here == there
    assert all(weights(tmp_path / "here", name) == weights(tmp_path / "there", name) for name in here.values())


def test_a_killed_array_task_is_named_and_the_same_command_ends_with_the_same_bits(slurm, tmp_path):
    longer = {"epochs": 30, "data": {"name": "parity", "options": {"dim": 8, "num_train": 500}}}
    plan = seeds(0, 1, **longer)
    here = launch(plan, Where(at_once=1, threads=1), runs=tmp_path / "here")
    killed = threading.Thread(target=_signal_once_training, args=(tmp_path / "there", "KILL"))
    killed.start()
    with pytest.raises(JobsFailed, match=r"seed \d.* on .*: Slurm job \d+_\d+ was cancelled"):
        launch(plan, Where("slurm", threads=1), runs=tmp_path / "there")
    killed.join()
    there = launch(plan, Where("slurm", threads=1), runs=tmp_path / "there")
    assert here == there
    assert all(weights(tmp_path / "here", name) == weights(tmp_path / "there", name) for name in here.values())


def test_a_task_whose_process_is_killed_on_its_node_is_submitted_again(slurm, tmp_path):
    plan = Plan([Job("killed", f"{JOBS}:die", {"once": "mark"}), Job("other", "evenly.sweep.worker:do_nothing")])
    assert launch(plan, Where("slurm", threads=1), runs=tmp_path) == {"killed": "alive", "other": {}}


def test_no_job_is_lost_while_the_controller_does_not_answer(slurm, tmp_path, monkeypatch):
    """The job fails if it is begun again; it ends only after `squeue` has failed for longer than results may take."""
    monkeypatch.setattr(on_slurm, "GRACE", 0.1)
    silent = tmp_path / "silent.conf"
    configuration = Path(slurm["SLURM_CONF"]).read_text()
    silent.write_text(re.sub(r"SlurmctldPort=\d+", "SlurmctldPort=1\nMessageTimeout=1", configuration))
    states, asked = slurm_cluster.states, []

    def ask(ids):
        if not (tmp_path / "begun").exists() or len(asked) == 2:
            return states(ids)
        os.environ["SLURM_CONF"] = str(silent)
        asked.append(states(ids))
        if len(asked) == 2:
            os.environ["SLURM_CONF"] = slurm["SLURM_CONF"]
            (tmp_path / "go").touch()
        return asked[-1]

    monkeypatch.setattr(slurm_cluster, "states", ask)
    plan = Plan([Job("slow", f"{JOBS}:begin_once", {"until": "go", "seconds": 120.0})])
    assert launch(plan, Where("slurm", threads=1), runs=tmp_path) == {"slow": "go"}
    assert asked == [None] * 2
    assert slurm_cluster.states(["999999_0"]) == {}  # A job that Slurm has forgotten is an answer.


def _signal_once_training(runs: Path, name: str, *, num: int = 1) -> None:
    """Send a signal to whatever is in the queue as soon as `num` runs have a checkpoint."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and len(list(runs.glob("*/checkpoints/last.safetensors"))) < num:
        time.sleep(0.05)
    subprocess.run(["scancel", f"--signal={name}", "--user=root"], check=False)


def test_a_job_that_is_warned_of_its_time_limit_saves_is_queued_again_and_ends_with_the_same_bits(slurm, tmp_path):
    longer = {"epochs": 50, "data": {"name": "parity", "options": {"dim": 8, "num_train": 500}}}
    plan = seeds(0, 1, **longer)
    here = launch(plan, Where(at_once=1, threads=1), runs=tmp_path / "here")
    warned = threading.Thread(target=_warn_and_hurry, args=(tmp_path / "there",))
    warned.start()
    there = launch(plan, Where("slurm", threads=1), runs=tmp_path / "there")
    warned.join()
    assert here == there
    assert all(weights(tmp_path / "here", name) == weights(tmp_path / "there", name) for name in here.values())
    logs = "".join(path.read_text() for path in (tmp_path / "there").glob("sweep/*/*.log"))
    assert "stopped after step" in logs
    numbers = json.loads(next((tmp_path / "there").glob("sweep/*/slurm.json")).read_text())
    assert len({number.partition("_")[0] for number in numbers.values()}) == 1  # queued again, not submitted again


def test_jobs_that_were_left_are_waited_for_by_the_same_command_and_not_submitted_twice(slurm, tmp_path):
    """Ctrl-C leaves the jobs in Slurm; a cancelled one is told, and the same command goes on with it."""
    plan = Plan([Job("slow", f"{JOBS}:begin_once", {"until": "go", "seconds": 120.0})])
    script = tmp_path / "command.py"
    script.write_text(LEFT)
    runs = tmp_path / "runs"
    command = subprocess.Popen([sys.executable, str(script), str(runs)], stderr=subprocess.PIPE, text=True)
    _until((runs / "begun").exists)
    command.send_signal(signal.SIGINT)
    told = command.communicate(timeout=120)[1]
    assert "The runs continue in Slurm" in told
    assert "RUNNING" in _queue()
    # The job ends only when this command follows it, and fails if it is begun again.
    result = launch(plan, Where("slurm", threads=1), runs=runs, listener=lambda *_: (runs / "go").touch())
    assert result == {"slow": "go"}
    numbers = json.loads(next(runs.glob("sweep/*/slurm.json")).read_text())
    assert len(numbers) == 1


CANCELLED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from evenly.sweep import Job, Plan, Where, launch
job = Job("slow", "tests.cluster.jobs:wait", {"until": "go", "seconds": 120.0})
launch(Plan([job]), Where("slurm", threads=1), runs=sys.argv[1])
"""


def test_a_second_interrupt_cancels_the_jobs_and_the_same_command_goes_on(slurm, tmp_path):
    command = subprocess.Popen([sys.executable, "-c", CANCELLED, str(tmp_path)], stderr=subprocess.PIPE, text=True)
    _until(lambda: any(json.loads(path.read_text())["running"] for path in tmp_path.glob("sweep/*/state.json")))
    command.send_signal(signal.SIGINT)
    for line in command.stderr:
        if "Ctrl-C again cancels them" in line:
            command.send_signal(signal.SIGINT)
            break
    assert "Cancelled. What is done is kept" in command.communicate(timeout=120)[1]
    _until(lambda: not _queue())
    (tmp_path / "go").touch()
    plan = Plan([Job("slow", f"{JOBS}:wait", {"until": "go", "seconds": 120.0})])
    assert launch(plan, Where("slurm", threads=1), runs=tmp_path) == {"slow": "go"}


def test_the_command_line_on_slurm_says_what_it_says_here(slurm, tmp_path):
    found = []
    for on in ("local:1", "slurm"):
        folder = tmp_path / on[:5]
        words = ["reproduce", "springer2024/fig2", "--scale", "smoke", "--seeds", "0", "--threads-per-run", "1"]
        words += ["--json", "--on", on, "--runs", str(folder / "runs"), "--ledger", str(folder / "claims")]
        given = [sys.executable, "-m", "evenly", *words]
        (row,) = json.loads(subprocess.run(given, capture_output=True, text=True, check=True).stdout)
        found.append({name: row[name] for name in ("key", "seeds", "claims", "verdict")})
    assert found[0] == found[1]
    assert list((tmp_path / "slurm" / "runs" / "sweep").glob("*/slurm.json"))


def test_a_cancelled_task_is_named_with_its_log_and_the_same_command_ends_it(slurm, tmp_path):
    waits = Job("slow", f"{JOBS}:wait", {"until": "go", "seconds": 120.0})
    plan = Plan([waits, Job("other", "evenly.sweep.worker:do_nothing")])

    def cancel() -> None:
        _until(lambda: list(tmp_path.glob("sweep/*/slow.log")))
        numbers = json.loads(next(tmp_path.glob("sweep/*/slurm.json")).read_text())
        subprocess.run(["scancel", numbers["slow"]], check=False)

    cancelled = threading.Thread(target=cancel)
    cancelled.start()
    with pytest.raises(JobsFailed, match=r"1 of 2 runs failed, 1 is done(.|\n)*slow.*was cancelled(.|\n)*slow.log"):
        launch(plan, Where("slurm", threads=1), runs=tmp_path)
    cancelled.join()
    (tmp_path / "go").touch()
    assert launch(plan, Where("slurm", threads=1), runs=tmp_path) == {"slow": "go", "other": {}}


def test_what_no_node_holds_is_refused_before_anything_is_submitted(slurm, tmp_path):
    with pytest.raises(SetupError, match="needs 64 cores, and the largest node has 2"):
        launch(seeds(0, 1), Where("slurm", threads=64), runs=tmp_path)
    with pytest.raises(SetupError, match=r"needs 900.0 GB of memory, and the largest node has 4.2"):
        launch(seeds(0, 1), Where("slurm", memory=900), runs=tmp_path)
    with pytest.raises(SetupError, match=r"needs 7.0 GB of memory"):
        check_available(Where("slurm"), memory=7 * 10**9)
    with pytest.raises(SetupError, match=r"examples alone need 3.0 GB. Give --memory 4"):
        check_available(Where("slurm", memory=1), memory=3 * 10**9)


def test_more_jobs_than_one_array_holds_go_into_several(slurm, tmp_path, monkeypatch):
    assert slurm_cluster.longest_array() == 1000
    monkeypatch.setattr(slurm_cluster, "longest_array", lambda: 2)
    plan = Plan([Job(f"job {n}", "evenly.sweep.worker:do_nothing", {"n": n}) for n in range(3)])
    assert launch(plan, Where("slurm", threads=1), runs=tmp_path)["job 2"] == {"n": 2}
    numbers = json.loads(next(tmp_path.glob("sweep/*/slurm.json")).read_text())
    assert len({number.partition("_")[0] for number in numbers.values()}) == 2


def _warn_and_hurry(runs: Path) -> None:
    """Warn the jobs of their limit; Slurm holds what was queued again for two minutes, unless it is told otherwise.

    Both must train by then: a job that still starts is killed by the signal, and would be submitted again.
    """
    _signal_once_training(runs, "USR2", num=2)
    deadline = time.monotonic() + 120
    command = ["squeue", "--noheader", "--array", "--format=%i %r"]
    while time.monotonic() < deadline:
        rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
        for number, reason in (row.split(maxsplit=1) for row in rows):
            if reason == "BeginTime":
                subprocess.run(["scontrol", "update", f"JobId={number}", "StartTime=now"], check=False)
        if not rows:
            return
        time.sleep(0.5)


LEFT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell starts it in the background
from evenly.sweep import Job, Plan, Where, launch
job = Job("slow", "tests.cluster.jobs:begin_once", {"until": "go", "seconds": 120.0})
launch(Plan([job]), Where("slurm", threads=1), runs=sys.argv[1])
"""


def _queue() -> str:
    command = ["squeue", "--noheader", "--format=%T"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _until(holds) -> None:
    deadline = time.monotonic() + 120
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_a_failure_names_the_run_and_its_log(slurm, tmp_path):
    plan = Plan(
        [Job("bad", f"{JOBS}:fail", {"why": "there are no labels"}), Job("good", "evenly.sweep.worker:do_nothing")]
    )
    with pytest.raises(JobsFailed, match=r"1 of 2 runs failed, 1 is done(.|\n)*bad on (.|\n)*there are no labels"):
        launch(plan, Where("slurm", threads=1), runs=tmp_path)


def test_an_unknown_partition_is_named_before_anything_is_submitted(slurm, tmp_path):
    with pytest.raises(UsageError, match="Did you mean 'main'"):
        launch(seeds(0, 1), Where("slurm", address="mian"), runs=tmp_path)
