"""A real Slurm cluster of one node: the same bits, a killed task, and what cannot be."""

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from tests.cluster import one_node_slurm

from evenly.errors import UsageError
from evenly.sweep import Job, Plan, Where, launch
from evenly.sweep.launch import JobsFailed

pytest.importorskip("submitit", reason='needs submitit: pip install "evenly[slurm]"')
pytestmark = pytest.mark.skipif(bool(one_node_slurm.missing()), reason=one_node_slurm.missing() or "there")
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


def test_a_killed_array_task_is_submitted_again_and_ends_with_the_same_bits(slurm, tmp_path):
    longer = {"epochs": 30, "data": {"name": "parity", "options": {"dim": 8, "num_train": 500}}}
    plan = seeds(0, 1, **longer)
    here = launch(plan, Where(at_once=1, threads=1), runs=tmp_path / "here")
    killed = threading.Thread(target=_kill_once_training, args=(tmp_path / "there",))
    killed.start()
    there = launch(plan, Where("slurm", threads=1), runs=tmp_path / "there")
    killed.join()
    assert here == there
    assert all(weights(tmp_path / "here", name) == weights(tmp_path / "there", name) for name in here.values())


def _kill_once_training(runs: Path) -> None:
    """Kill whatever is in the queue as soon as a checkpoint is there."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and not list(runs.glob("*/checkpoints/last.safetensors")):
        time.sleep(0.1)
    subprocess.run(["scancel", "--signal=KILL", "--user=root"], check=False)


def test_a_failure_names_the_run_and_its_log(slurm, tmp_path):
    plan = Plan(
        [Job("bad", f"{JOBS}:fail", {"why": "there are no labels"}), Job("good", "evenly.sweep.worker:nothing")]
    )
    with pytest.raises(JobsFailed, match=r"1 of 2 runs failed, 1 are done(.|\n)*bad on (.|\n)*there are no labels"):
        launch(plan, Where("slurm", threads=1), runs=tmp_path)


def test_an_unknown_partition_is_named_before_anything_is_submitted(slurm, tmp_path):
    with pytest.raises(UsageError, match="Did you mean 'main'"):
        launch(seeds(0, 1), Where("slurm", address="mian"), runs=tmp_path)
