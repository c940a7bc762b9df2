"""A real Ray cluster of two nodes: the same bits, a lost node, no shared folder, and what cannot be."""

import json
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from evenly.errors import SetupError, UsageError
from evenly.recipe import Recipe, Until, from_mapping
from evenly.records import Run
from evenly.sweep import Job, Plan, Where, launch, ray_cluster
from evenly.sweep.launch import JobsFailed
from evenly.training.comparison import Design, compare

ray = pytest.importorskip("ray", reason='needs Ray: pip install "evenly[ray]"')
pytestmark = pytest.mark.xdist_group("ray")  # one cluster for all of them
JOBS = "tests.cluster.jobs"
WAITS = {"until": "go", "seconds": 120.0}
ROOT = Path(__file__).parents[2]
RECIPE = {"data": {"name": "parity", "options": {"dim": 5}}, "model": {"name": "mlp"}, "epochs": 2, "batch_size": 50}


@pytest.fixture(scope="module")
def cluster():
    """Two nodes of one core each."""
    from ray.cluster_utils import Cluster

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{ROOT}:{ROOT / 'src'}")
        patch.setenv("RAY_worker_niceness", "0")  # 15 by default: beside other tests they would hardly run
        made = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
        made.add_node(num_cpus=1)
        ray.init(address=made.address, log_to_driver=False, logging_level="ERROR")
        yield made
        ray.shutdown()
        made.shutdown()


@pytest.fixture
def apart(cluster, tmp_path):
    """A folder of runs that a third node does not see: it has another file system there."""
    runs = tmp_path / "apart"
    runs.mkdir()
    unshared = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(runs)]
    if shutil.which("unshare") is None or subprocess.run([*unshared, "true"], check=False).returncode:
        pytest.skip("a file system that other processes do not see needs root and unshare")
    start = [sys.executable, "-m", "ray.scripts.scripts", "start", f"--address={cluster.address}", "--num-cpus=1"]
    known = len(_alive())
    with (tmp_path / "node.log").open("wb") as log:
        node = subprocess.Popen([*unshared, *start, "--block"], stdout=log, stderr=log)
    _until(lambda: len(_alive()) > known or node.poll() is not None)
    assert node.poll() is None, (tmp_path / "node.log").read_text()
    yield runs
    node.terminate()
    node.wait(60)


def _alive() -> list[str]:
    return [node["NodeID"] for node in ray.nodes() if node["Alive"]]


def _until(holds) -> None:
    deadline = time.monotonic() + 200
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def seeds(*numbers: int) -> Plan:
    return Plan([Job(f"seed {n}", f"{JOBS}:train", {**RECIPE, "seed": n}) for n in numbers])


def weights(runs: Path, name: str) -> bytes:
    return (runs / name / "weights.safetensors").read_bytes()


def test_tasks_on_ray_give_the_bits_of_this_process(cluster, tmp_path):
    here = launch(seeds(0, 1), Where(at_once=1, threads=1), runs=tmp_path / "here")
    there = launch(seeds(0, 1), Where("ray", threads=1), runs=tmp_path / "there")
    assert here == there
    assert all(weights(tmp_path / "here", name) == weights(tmp_path / "there", name) for name in here.values())


def test_where_no_folder_is_shared_runs_come_back_through_the_object_store(cluster, apart, tmp_path):
    here = launch(seeds(0, 1, 2), Where(at_once=1, threads=1), runs=tmp_path / "here")
    assert not ray_cluster.is_shared(ray, Where("ray"), apart)
    there = launch(seeds(0, 1, 2), Where("ray", threads=1), runs=apart)
    assert here == there
    assert all(weights(tmp_path / "here", name) == weights(apart, name) for name in here.values())
    # The same command finds what is done.
    stamps = {name: Run(apart / name).stamps() for name in there.values()}
    assert launch(seeds(0, 1, 2), Where("ray", threads=1), runs=apart) == there
    assert {name: Run(apart / name).stamps() for name in there.values()} == stamps


def test_a_task_whose_process_is_killed_is_tried_again(cluster, tmp_path):
    plan = Plan([Job("killed", f"{JOBS}:die", {"once": "mark"}), Job("other", "evenly.sweep.worker:do_nothing")])
    assert launch(plan, Where("ray", threads=1), runs=tmp_path) == {"killed": "alive", "other": {}}


def test_a_lost_node_costs_nothing_but_time(cluster, tmp_path):
    """The node that trains is killed once there is a checkpoint; its run goes on elsewhere, to the same bits."""
    longer = {**RECIPE, "epochs": 40, "data": {"name": "parity", "options": {"dim": 8, "num_train": 500}}}
    plan = Plan([Job(f"seed {n}", f"{JOBS}:train", {**longer, "seed": n}) for n in range(3)])
    here = launch(plan, Where(at_once=1, threads=1), runs=tmp_path / "here")
    doomed = cluster.add_node(num_cpus=1, resources={"doomed": 1})

    def kill() -> None:
        deadline = time.monotonic() + 200
        while time.monotonic() < deadline and len(list((tmp_path / "there").glob("*/checkpoints/last.*"))) < 3:
            time.sleep(0.05)
        cluster.remove_node(doomed, allow_graceful=False)

    killer = threading.Thread(target=kill)
    killer.start()
    there = launch(plan, Where("ray", threads=1), runs=tmp_path / "there")
    killer.join()
    assert here == there
    assert all(weights(tmp_path / "here", name) == weights(tmp_path / "there", name) for name in here.values())
    begun = sorted(len(Run(tmp_path / "there" / name).stamps()) for name in there.values())
    assert begun == [1, 1, 2]


def test_what_an_actor_that_was_lost_with_its_node_had_begun_goes_on_with_another(cluster, tmp_path, monkeypatch):
    """The cluster knows the lost actor by its name for a while."""
    doomed = cluster.add_node(num_cpus=0)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: SimpleNamespace(get_node_id=lambda: doomed.node_id))
    plan = Plan([Job("one", "evenly.sweep.worker:do_nothing"), Job("slow", f"{JOBS}:wait", WAITS, needs=("one",))])

    def kill() -> None:
        _until(lambda: list(tmp_path.glob("sweep/*/slow.log")))
        cluster.remove_node(doomed, allow_graceful=False)
        (tmp_path / "go").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    assert launch(plan, Where("ray", threads=1), runs=tmp_path) == {"one": {}, "slow": "go"}
    killer.join()


def test_a_node_that_just_went_away_does_not_count(cluster, tmp_path):
    """The cluster may still list it, though nothing answers there."""
    gone = cluster.add_node(num_cpus=1)
    cluster.remove_node(gone, allow_graceful=False)
    assert launch(Plan([Job("one", "evenly.sweep.worker:do_nothing")]), Where("ray", threads=1), runs=tmp_path)


def test_tasks_work_where_the_command_was_given_and_with_its_data(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVENLY_DATA", "/somewhere/else")
    plan = Plan([Job("where", f"{JOBS}:surroundings")])
    assert launch(plan, Where("ray", threads=1), runs="runs")["where"] == [str(tmp_path), "/somewhere/else"]


LEFT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where a shell starts it in the background
from evenly.sweep import Job, Plan, Where, launch
job = Job("slow", "tests.cluster.jobs:begin_once", {"until": "go", "seconds": 120.0})
launch(Plan([job]), Where("ray", address=sys.argv[1], threads=1), runs=sys.argv[2])
"""


def test_runs_that_were_left_on_the_cluster_are_found_by_the_same_command(cluster, tmp_path):
    script = tmp_path / "command.py"
    script.write_text(LEFT)
    runs = tmp_path / "runs"
    given = [sys.executable, str(script), cluster.address, str(runs)]
    command = subprocess.Popen(given, stderr=subprocess.PIPE, text=True)
    _until((runs / "begun").exists)
    command.send_signal(signal.SIGINT)
    told = command.communicate(timeout=120)[1]
    assert "The runs continue in Ray" in told
    plan = Plan([Job("slow", f"{JOBS}:begin_once", WAITS)])
    # The job ends only when this command follows it, and fails if it is begun again.
    result = launch(plan, Where("ray", threads=1), runs=runs, listener=lambda *_: (runs / "go").touch())
    assert result == {"slow": "go"}


CANCELLED = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from evenly.sweep import Job, Plan, Where, launch
job = Job("slow", "tests.cluster.jobs:wait", {"until": "go", "seconds": 120.0})
launch(Plan([job]), Where("ray", address=sys.argv[1], threads=1), runs=sys.argv[2])
"""


def test_a_second_interrupt_cancels_the_runs_and_the_same_command_goes_on(cluster, tmp_path):
    given = [sys.executable, "-c", CANCELLED, cluster.address, str(tmp_path)]
    command = subprocess.Popen(given, stderr=subprocess.PIPE, text=True)
    _until(lambda: list(tmp_path.glob("sweep/*/slow.log")))
    command.send_signal(signal.SIGINT)
    for line in command.stderr:
        if "Ctrl-C again cancels them" in line:
            command.send_signal(signal.SIGINT)
            break
    assert "Cancelled. What is done is kept" in command.communicate(timeout=120)[1]
    assert not ray.util.list_named_actors(all_namespaces=True)
    _until(lambda: ray.available_resources().get("CPU") == ray.cluster_resources()["CPU"])  # nothing runs any more
    (tmp_path / "go").touch()
    plan = Plan([Job("slow", f"{JOBS}:wait", WAITS)])
    assert launch(plan, Where("ray", threads=1), runs=tmp_path) == {"slow": "go"}


def test_the_command_line_on_a_cluster_says_what_it_says_here(cluster, tmp_path):
    words = ["useful", "digit-dominoes", "--model", "mlp", "--epochs", "2", "--at-epoch", "1", "--seeds", "0-1"]
    words += ["--device", "cpu", "--threads-per-run", "1", "--json"]
    found = []
    for on in ("local:1", f"ray:{cluster.address}"):
        given = [sys.executable, "-m", "evenly", *words, "--runs", str(tmp_path / on[:3]), "--on", on]
        found.append(json.loads(subprocess.run(given, capture_output=True, text=True, check=True).stdout))
    assert found[0]["methods"] == found[1]["methods"]
    assert list((tmp_path / "ray" / "sweep").glob("*/state.json"))
    for method in found[0]["methods"]:
        for row in method["runs"].values():
            assert weights(tmp_path / "loc", row["run"]) == weights(tmp_path / "ray", row["run"])


def test_a_failure_ends_only_what_needs_it(cluster, tmp_path):
    plan = Plan(
        [
            Job("bad", f"{JOBS}:fail", {"why": "there are no labels"}),
            Job("after", "evenly.sweep.worker:do_nothing", needs=("bad",)),
            Job("good", "evenly.sweep.worker:do_nothing"),
        ]
    )
    with pytest.raises(JobsFailed, match=r"1 of 3 runs failed, 1 is done(.|\n)*there are no labels(.|\n)*after"):
        launch(plan, Where("ray", threads=1), runs=tmp_path)


def test_a_comparison_on_ray_is_that_of_this_process(cluster, tmp_path):
    recipe = from_mapping(Recipe, {**RECIPE, "epochs": 3})
    design = Design(recipe, ("plain", "useful"), (0, 1), until=Until("epoch", 1))
    here = compare(design, runs=tmp_path / "here", where=Where(at_once=1, threads=1), device="cpu")
    there = compare(design, runs=tmp_path / "there", where=Where("ray", threads=1), device="cpu")
    assert here["methods"] == there["methods"]
    for method in here["methods"]:
        for row in method["runs"].values():
            assert weights(tmp_path / "here", row["run"]) == weights(tmp_path / "there", row["run"])


def test_a_run_that_no_node_can_hold_is_refused_before_anything_runs(cluster, tmp_path):
    with pytest.raises(SetupError, match="needs 64 cores"):
        launch(seeds(0, 1), Where("ray", threads=64), runs=tmp_path)
    assert not list(tmp_path.glob("*/recipe.yaml"))


def test_an_address_where_nothing_listens_is_said_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    with pytest.raises(SetupError, match="no Ray cluster answers"):
        launch(seeds(0, 1), Where("ray", address="127.0.0.1:9"), runs=tmp_path)
    with pytest.raises(UsageError, match="HOST:PORT"):
        launch(seeds(0, 1), Where("ray", address="head"), runs=tmp_path)
