"""A run killed at any moment and started again ends with the same bits, in real processes."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from evenly.data.batches import Batch
from evenly.errors import DataError, UsageError
from evenly.progress import Bar
from evenly.recipe import Ascent, Data, Model, Recipe
from evenly.records import Run
from evenly.training import checkpoint
from evenly.training.loop import Loop
from evenly.training.train import train

WORDS = ["train", "digits", "--model", "mlp", "--optimizer", "sam", "--epochs", "12", "--set", "model.options.width=64"]
AUGMENTED = ["--set", "augment=[pad-crop:1]", "--device", "cpu"]


def command(runs: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "evenly", *WORDS, *AUGMENTED, "--runs", str(runs), *more]


def weights_and_metrics(runs: Path) -> tuple[dict[str, torch.Tensor], str]:
    (folder,) = [path for path in runs.iterdir() if path.is_dir()]
    return load_file(folder / "weights.safetensors"), (folder / "metrics.jsonl").read_text()


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, torch.Tensor], str]:
    runs = tmp_path_factory.mktemp("whole")
    subprocess.run(command(runs), check=True, capture_output=True)
    return weights_and_metrics(runs)


def wait_for_checkpoint(runs: Path, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 60
    while not list(runs.glob("*/checkpoints/last.safetensors")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)


def assert_same(runs: Path, expected: tuple[dict[str, torch.Tensor], str]) -> None:
    weights, metrics = weights_and_metrics(runs)
    assert metrics == expected[1]
    assert weights.keys() == expected[0].keys()
    assert all(torch.equal(weights[name], expected[0][name]) for name in weights)


def test_killed_again_and_again_it_ends_with_the_same_bits(
    tmp_path: Path, uninterrupted: tuple[dict[str, torch.Tensor], str]
) -> None:
    kills = 0
    for pause in (0.0, 0.15, 0.3):
        process = subprocess.Popen(
            command(tmp_path, "--pace", "0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        wait_for_checkpoint(tmp_path, process)
        time.sleep(pause)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        kills += process.returncode == -signal.SIGKILL
    assert kills >= 1
    subprocess.run(command(tmp_path), check=True, capture_output=True)
    assert_same(tmp_path, uninterrupted)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 75), (signal.SIGINT, 130)])
def test_a_polite_signal_saves_and_says_how_to_go_on(
    number: int, code: int, tmp_path: Path, uninterrupted: tuple[dict[str, torch.Tensor], str]
) -> None:
    process = subprocess.Popen(
        command(tmp_path, "--pace", "0"), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_for_checkpoint(tmp_path, process)
    process.send_signal(number)
    _, talk = process.communicate()
    if process.returncode == 0:
        pytest.skip("the run was over before the signal came")
    assert process.returncode == code
    assert "Traceback" not in talk
    (folder,) = tmp_path.iterdir()
    assert Run(folder).state == "stopped"
    subprocess.run(command(tmp_path), check=True, capture_output=True)
    assert_same(tmp_path, uninterrupted)


def test_the_same_command_again_says_that_it_is_done_and_trains_nothing(tmp_path: Path) -> None:
    first = subprocess.run(command(tmp_path, "--epochs", "1"), check=True, capture_output=True, text=True)
    (folder,) = tmp_path.iterdir()
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    again = subprocess.run(command(tmp_path, "--epochs", "1"), check=True, capture_output=True, text=True)
    assert again.stdout == first.stdout
    assert before == {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


SMALL = Recipe(data=Data("digits"), model=Model("mlp", {"width": 16}), epochs=3, batch_size=256)


class Enough(Exception):
    """Stops a run where a test wants it stopped."""


def interrupted(recipe: Recipe, runs: Path, **options: object) -> Path:
    """A run folder with a checkpoint, stopped after its first epoch."""

    def stop(loop: Loop, history: object) -> bool:
        if history:
            raise Enough
        return False

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "_is_enough", stop)
        with pytest.raises(Enough):
            train(recipe, runs=runs, device="cpu", pace=0, **options)
    (folder,) = runs.iterdir()
    return folder


@pytest.mark.parametrize("rule", ["none", "sam", "asam", "lsam", "gsam", "look", "friendly", "momentum", "random"])
def test_every_rule_and_momentum_resume_to_the_bit(rule: str, tmp_path: Path) -> None:
    recipe = Recipe(**{**vars(SMALL), "ascent": Ascent(rule)})
    whole = train(recipe, runs=tmp_path / "a", device="cpu")
    interrupted(recipe, tmp_path / "b")
    again = train(recipe, runs=tmp_path / "b", device="cpu")
    a, b = (load_file(run.path / "weights.safetensors") for run in (whole, again))
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert whole.metrics() == again.metrics()


def test_the_bar_of_a_resumed_run_knows_what_was_done_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupted(SMALL, tmp_path)
    bars: list[dict[str, float]] = []

    class Noted(Bar):
        def __init__(self, what: str, **settings: float) -> None:
            bars.append(settings)
            super().__init__(what, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr("evenly.training.loop.Bar", Noted)
    train(SMALL, runs=tmp_path, device="cpu")
    assert bars == [{"total": 18, "done": 6}]


class Patience:
    """Ends training at its third judgement, however long the history is."""

    def __init__(self) -> None:
        self.judged: list[int] = []

    def __call__(self, history: list[object]) -> bool:
        self.judged.append(len(history))
        return len(self.judged) == 3


@pytest.mark.parametrize("step", [4, 6, 8])
def test_a_rule_that_counts_epochs_ends_a_resumed_run_where_it_ends_one_without_a_stop(
    step: int, tmp_path: Path
) -> None:
    """An epoch has six steps: the run stops within the first epoch, at its end, and within the second."""
    recipe = Recipe(**{**vars(SMALL), "epochs": 6})
    whole = train(recipe, runs=tmp_path / "a", device="cpu", enough=Patience())
    taken = Loop.take

    def take(loop: Loop, batch: Batch) -> None:
        if loop.step == step:
            raise Enough
        taken(loop, batch)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Loop, "take", take)
        with pytest.raises(Enough):
            train(recipe, runs=tmp_path / "b", device="cpu", pace=0, enough=Patience())
    again = train(recipe, runs=tmp_path / "b", device="cpu", enough=Patience())
    assert [row["epoch"] for row in whole.metrics()] == [1, 2, 3]
    assert again.metrics() == whole.metrics()


def test_adamw_and_batch_norm_resume_to_the_bit(tmp_path: Path) -> None:
    recipe = Recipe(
        data=Data("digits"),
        model=Model("preact-resnet18", {"width": 4}),
        optimizer={"name": "adamw", "lr": 1e-3, "options": {"betas": [0.9, 0.95]}},
        epochs=2,
        batch_size=512,
    )
    whole = train(recipe, runs=tmp_path / "a", device="cpu")
    interrupted(recipe, tmp_path / "b")
    again = train(recipe, runs=tmp_path / "b", device="cpu")
    a, b = (load_file(run.path / "weights.safetensors") for run in (whole, again))
    assert all(torch.equal(a[name], b[name]) for name in a)


def test_other_data_are_another_run_and_the_stopped_one_stays(tmp_path: Path) -> None:
    from evenly.data import load

    folder = interrupted(SMALL, tmp_path)
    before = (folder / "checkpoints" / "last.safetensors").read_bytes()
    other = load("digits") | {"test": load("digits").train}
    made = train(SMALL, runs=tmp_path, splits=other, device="cpu")
    assert made.path != folder
    assert (folder / "checkpoints" / "last.safetensors").read_bytes() == before
    with pytest.raises(UsageError, match="changed data are another run"):
        train(SMALL, runs=tmp_path, splits=other, device="cpu", allow=["data"])


def test_a_truncated_checkpoint_is_named_and_nothing_is_trained(tmp_path: Path) -> None:
    folder = interrupted(SMALL, tmp_path)
    path = folder / "checkpoints" / "last.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"last.safetensors is damaged or truncated"):
        train(SMALL, runs=tmp_path, device="cpu")


def test_a_pickle_in_place_of_a_checkpoint_is_never_executed(tmp_path: Path) -> None:
    import pickle

    class Evil:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.system, (f"touch {tmp_path / 'harm'}",)

    folder = interrupted(SMALL, tmp_path)
    (folder / "checkpoints" / "last.safetensors").write_bytes(pickle.dumps(Evil()))
    with pytest.raises(DataError, match="damaged"):
        train(SMALL, runs=tmp_path, device="cpu")
    assert not (tmp_path / "harm").exists()


def test_a_stranger_safetensors_file_is_no_checkpoint(tmp_path: Path) -> None:
    run = Run.create(tmp_path, {}, "c0ffee")
    checkpoint.save_weights(run, "w.safetensors", {"w": torch.ones(1)})
    with pytest.raises(DataError, match="not a checkpoint of this version of evenly"):
        checkpoint.load(run, "w.safetensors")


def test_a_read_only_folder_is_named_before_training() -> None:
    with pytest.raises(Exception, match=r"cannot make /proc/runs"):
        train(SMALL, runs="/proc/runs", device="cpu")


def test_json_output_has_the_id_the_folder_and_the_metrics(tmp_path: Path) -> None:
    result = subprocess.run(command(tmp_path, "--epochs", "1", "--json"), check=True, capture_output=True, text=True)
    found = json.loads(result.stdout)
    assert Path(found["folder"]).name == found["id"]
    assert found["epoch"] == 1
    assert 0 <= found["test.error"] <= 1
