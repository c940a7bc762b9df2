"""Two gloo processes train as one does: same batches, same step, bit-equal replicas."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch.utils._python_dispatch import TorchDispatchMode

from evenly.records import Run
from evenly.training.distributed import World

WORDS = ["train", "digits", "--model", "mlp", "--epochs", "2", "--batch-size", "96", "--lr", "0.05", "--device", "cpu"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
NO_DROPOUT = ["--set", "model.options.dropout=0.0", "--set", "model.options.width=64"]


def command(processes: int, runs: Path, *more: str) -> list[str]:
    launch = [sys.executable, "-m"]
    if processes > 1:
        # Port 0: each test has a rendezvous of its own.
        launch += ["torch.distributed.run", "--nproc-per-node", str(processes), "--rdzv-backend", "c10d"]
        launch += ["--rdzv-endpoint", "localhost:0", "-m"]
    return [*launch, "evenly", *WORDS, *NO_DROPOUT, "--runs", str(runs), "--json", *more]


def run(processes: int, runs: Path, *more: str) -> dict[str, object]:
    result = subprocess.run(command(processes, runs, *more), capture_output=True, text=True, env=ENVIRONMENT)
    assert result.returncode == 0, result.stderr[-3000:]
    found: dict[str, object] = json.loads(result.stdout)
    return found


def weights(found: dict[str, object]) -> dict[str, torch.Tensor]:
    return load_file(Path(str(found["folder"])) / "weights.safetensors")


@pytest.mark.parametrize(("optimizer", "dropout"), [("sgd", 0.0), ("sam", 0.0), ("gsam", 0.5)])
def test_two_processes_end_where_one_does(optimizer: str, dropout: float, tmp_path: Path) -> None:
    more = ["--optimizer", optimizer, "--set", f"model.options.dropout={dropout}"]
    one, two = (run(n, tmp_path / str(n), *more) for n in (1, 2))
    assert one["id"] == two["id"]
    assert one["examples_seen"] == two["examples_seen"]
    assert two["train.loss"] == pytest.approx(one["train.loss"], rel=1e-4)
    a, b = weights(one), weights(two)
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=1e-3, atol=1e-5)


def test_sharded_parameters_end_where_whole_ones_do(tmp_path: Path) -> None:
    one = run(1, tmp_path / "one")
    two = run(2, tmp_path / "two", "--set", "sharded=true")
    a, b = weights(one), weights(two)
    assert a.keys() == b.keys()
    for name in a:
        torch.testing.assert_close(a[name], b[name], rtol=1e-3, atol=1e-5)


def test_a_sharded_run_that_is_told_to_stop_goes_on_to_the_same_end(tmp_path: Path) -> None:
    words = ("--set", "sharded=true", "--optimizer", "adamw", "--lr", "0.001", "--epochs", "10")
    process = subprocess.Popen(
        command(2, tmp_path, *words, "--pace", "0"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=ENVIRONMENT,
    )
    while not list(tmp_path.glob("*/checkpoints/last.safetensors")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    stopped = Run.open(next(tmp_path.iterdir()))
    assert stopped.state == "stopped"
    assert len(stopped.metrics()) < 10
    again = run(2, tmp_path, *words)
    whole = run(2, tmp_path / "whole", *words)
    assert again["train.loss"] == whole["train.loss"]
    assert all(torch.equal(weights(whole)[name], weights(again)[name]) for name in weights(whole))


class _LargestTensor(TorchDispatchMode):
    """Notes the size of the largest tensor that is made."""

    nbytes = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        self.nbytes = max(self.nbytes, made.nbytes if isinstance(made, torch.Tensor) else 0)
        return made


def test_comparing_replicas_takes_little_memory_beside_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda *_: None)
    network = torch.nn.Linear(1024, 8192)
    with _LargestTensor() as largest:
        World(size=2).check_replicas(network)
    assert largest.nbytes <= network.weight.nbytes


def test_replicas_that_differ_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even in a number without dimensions: the other process has one more in its last byte."""

    def other(values: torch.Tensor, how: Any) -> None:
        assert len(values) == 2
        values[-1] += how == torch.distributed.ReduceOp.MAX

    network = torch.nn.ParameterList([torch.zeros(3), torch.zeros(())])
    monkeypatch.setattr(torch.distributed, "all_reduce", lambda *_: None)
    World(size=2).check_replicas(network)
    monkeypatch.setattr(torch.distributed, "all_reduce", other)
    with pytest.raises(RuntimeError, match="the replicas of the model differ"):
        World(size=2).check_replicas(network)


_OWN_RULE = """
import os, sys
from evenly.recipe import Data, Model, Recipe
from evenly.training.train import train

def enough(history):
    return os.environ["RANK"] == "0" and len(history) == 2

small = Recipe(data=Data("digits"), model=Model("mlp", {"width": 16}), epochs=4, batch_size=512)
train(small, runs=sys.argv[1], device="cpu", enough=enough)
"""


def test_one_process_decides_for_all_when_training_is_enough(tmp_path: Path) -> None:
    """Errors of other processes may differ in a digit, and processes that part ways abort the run."""
    (tmp_path / "program.py").write_text(_OWN_RULE)
    words = ["--nproc-per-node", "2", "--rdzv-backend", "c10d", "--rdzv-endpoint", "localhost:0"]
    words += [str(tmp_path / "program.py"), str(tmp_path / "runs")]
    launch = [sys.executable, "-m", "torch.distributed.run", *words]
    result = subprocess.run(launch, capture_output=True, text=True, env=ENVIRONMENT, timeout=300)
    assert result.returncode == 0, result.stderr[-3000:]
    (folder,) = (tmp_path / "runs").iterdir()
    assert len(Run(folder).metrics()) == 2


def test_another_number_of_processes_is_refused_on_resume(tmp_path: Path) -> None:
    from evenly.recipe import Data, Model, Recipe
    from evenly.recipe import Optimizer as Settings
    from evenly.training.loop import Loop
    from evenly.training.train import train

    recipe = Recipe(
        data=Data("digits"),
        model=Model("mlp", {"dropout": 0.0, "width": 64}),
        optimizer=Settings(lr=0.05),
        epochs=2,
        batch_size=96,
    )

    def stop(loop: Loop, history: list[object]) -> bool:
        if history:
            raise KeyboardInterrupt
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "_is_enough", stop)
        with pytest.raises(KeyboardInterrupt):
            train(recipe, runs=tmp_path, device="cpu", pace=0)
    with pytest.raises(AssertionError, match=r"world was 1 and is 2.*--allow world"):
        run(2, tmp_path)
    assert run(2, tmp_path, "--allow", "world")["epoch"] == 2


PARTED = """
import os
from evenly.data import load
from evenly.recipe import Recipe
from evenly.training.train import train
splits = load("parity", dim=5, seed=int(os.environ["RANK"]))
train(Recipe(epochs=1), runs=os.environ["RUNS"], splits=splits, device="cpu")
"""


def test_processes_that_see_different_data_are_refused_before_anything_is_made(tmp_path: Path) -> None:
    (tmp_path / "parted.py").write_text(PARTED)
    words = command(2, tmp_path)
    launch = [*words[: words.index("evenly") - 1], str(tmp_path / "parted.py")]
    environment = {**ENVIRONMENT, "RUNS": str(tmp_path / "runs")}
    result = subprocess.run(launch, capture_output=True, text=True, env=environment)
    assert result.returncode != 0
    assert "the processes of this run do not see the same data or code" in result.stderr
    assert not (tmp_path / "runs").exists()
