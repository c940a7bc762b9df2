"""`evenly advise`: what an early network shows, what the atlas says of it, and when nothing can be said."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.unit.papers.atlas.test_page import KEYS, whole_row

from evenly.cli import main
from evenly.cli.advise import _command
from evenly.papers.atlas import task_list
from evenly.papers.atlas.advice import Advice
from evenly.recipe import Data, Model, Optimizer, Recipe, to_mapping
from evenly.training.signs import Sign

ASKED = ["digit-dominoes", "--model", "mlp", "--epochs", "6", "--set", "size=200", "--set", "model.options.width=32"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("runs")


def advised(capsys: pytest.CaptureFixture[str], *words: str, runs: Path) -> dict:
    capsys.readouterr()
    assert main(["advise", *words, "--runs", str(runs), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_it_abstains_where_the_atlas_is_empty_and_says_what_to_run(
    runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", *ASKED, "--runs", str(runs), "--ledger", str(tmp_path)]) == 0
    told = capsys.readouterr().err
    assert "No advice from the atlas" in told
    assert "evenly reproduce atlas" in told
    assert "evenly compare digit-dominoes" in told
    assert "1. " in told  # signs need no atlas


def test_near_a_task_it_ranks_cures_and_names_their_controls(
    runs: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The features of the early network are given to a task: advice comes from there, with a command that runs."""
    empty = advised(capsys, *ASKED, "--ledger", "nowhere", runs=runs)
    rows = [whole_row(key, {"useful8+noise": -14.0}) for key in KEYS]
    for each in rows:
        for name, value in empty["features"].items():
            each["quantities"][f"early.{name}"] = dict.fromkeys(map(str, range(20, 30)), value)
    monkeypatch.setattr(task_list, "atlas_rows", lambda ledger: rows)
    found = advised(capsys, *ASKED, runs=runs)
    assert not found["abstains"]
    assert found["ranking"][0]["cure"] == "useful8+noise"
    assert found["tested"] == {"tasks": 3, "good": 3}
    methods = found["next"].partition("--methods ")[2].split()[0].split(",")
    assert methods[:2] == ["plain", "useful:8+noise:0.2"]
    assert {"random:8+noise:0.2", "steps:8", "batch", "augment-all:noise:0.2"} <= set(methods)
    assert found["next"].endswith("--split balanced")  # where the gain was seen
    assert main([*found["next"].split()[1:], "--dry-run", "--runs", str(runs)]) == 0
    assert main(["advise", *ASKED, "--runs", str(runs)]) == 0
    assert "USEFUL ×8, noise on the hard" in capsys.readouterr().out


def test_a_run_is_advised_on_as_it_was_trained(runs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = advised(capsys, *ASKED, "--ledger", "nowhere", runs=runs)
    again = advised(capsys, found["run"][:8], "--ledger", "nowhere", runs=runs)
    assert again["features"] == found["features"]
    assert again["next"] == found["next"]
    assert again["next"].startswith("evenly compare digit-dominoes --epochs 6 --lr 0.1 --set data.options.size=200")
    assert main([*again["next"].split()[1:], "--dry-run", "--runs", str(runs)]) == 0
    assert [set(sign) for sign in found["signs"]] == [{"seen", "advice", "methods"}] * len(found["signs"])
    assert main(["advise", found["run"], "--epochs", "9", "--runs", str(runs)]) == 2
    assert "has a recipe already" in capsys.readouterr().err


def test_the_features_need_no_group_labels_and_are_those_of_the_early_network(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = advised(capsys, *ASKED, "--ledger", "nowhere", runs=runs)
    assert set(found["features"]) >= {"hard_share", "distinctness", "agreement", "disagreement", "hard_error_later"}
    assert 0 < found["features"]["hard_share"] < 1
    assert found["epochs"] == 3


def test_data_that_no_cure_is_for_are_refused_before_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import numpy as np

    pictures = np.random.default_rng(0).integers(0, 255, (40, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "one.npz", inputs=pictures, labels=np.zeros(40, dtype=np.int64))
    assert main(["advise", str(tmp_path / "one.npz"), "--model", "mlp", "--runs", str(tmp_path / "runs")]) == 3
    assert "class" in capsys.readouterr().err
    np.savez(tmp_path / "real.npz", inputs=pictures, labels=np.linspace(0, 1, 40))
    assert main(["advise", str(tmp_path / "real.npz"), "--model", "mlp", "--runs", str(tmp_path / "runs")]) == 3
    assert main(["advise", "digits", "--model", "mlp", "--epochs", "2", "--runs", str(tmp_path / "runs")]) == 2
    assert "--epochs 4" in capsys.readouterr().err
    assert not (tmp_path / "runs").exists()


def test_odd_data_are_remarked_on_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labels = np.array([0] * 30 + [1] * 30 + [2])
    inputs = np.random.default_rng(0).normal(labels[:, None], 1.0, (61, 4)).astype(np.float32)
    np.savez(tmp_path / "d.npz", inputs=inputs, labels=labels)
    words = [str(tmp_path / "d.npz"), "--model", "mlp", "--epochs", "4", "--batch-size", "16"]
    assert main(["advise", *words, "--runs", str(tmp_path / "runs")]) == 0
    told = " ".join(capsys.readouterr().err.split())
    assert told.count("has one training example") == 1
    assert told.count("a fifth of every class with two examples or more is held out") == 1


def test_data_that_do_not_exist_are_answered_as_by_every_other_verb(
    runs: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["advise", "digit-domino", "--model", "mlp"]) in (2, 3)
    assert "digit-dominoes" in capsys.readouterr().err
    assert main(["advise", "3f2a", "--runs", str(runs)]) == 2
    assert f"there is no run '3f2a' in {runs}" in capsys.readouterr().err
    assert main(["advise"]) == 2
    assert torch.is_grad_enabled()


def test_the_comparison_that_is_advised_is_of_the_data_as_they_were_given() -> None:
    recipe = Recipe(data=Data("my photos/", {"size": [32, 32], "skip_broken": True}), model=Model("convnet"))
    command = shlex.split(_command(recipe, Advice({}), [], balanced=True))
    assert command[:5] == ["evenly", "compare", "my photos/", "--model", "convnet"]
    assert {"data.options.size=[32, 32]", "data.options.skip_broken=true"} <= set(command)


def test_the_comparison_tests_what_the_signs_advise() -> None:
    sign = Sign("None of 2 classes falls into two clusters.", "try SAM or a smaller batch.", ("sam", "batch"))
    command = _command(Recipe(), Advice({}), [sign], balanced=False)
    assert "--methods plain,sam,batch " in command
    assert "--methods plain,useful,random,batch " in _command(Recipe(), Advice({}), [], balanced=False)


def test_the_comparison_that_is_advised_repeats_every_setting(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    adam = Optimizer("adamw", lr=0.002)
    recipe = Recipe(data=Data("digit-dominoes", {"size": 200}), optimizer=adam, epochs=6, clip_norm=1.0, seed=3)
    command = shlex.split(_command(recipe, Advice({}), [], balanced=True))
    assert main([*command[1:], "--dry-run", "--json", "--runs", str(tmp_path)]) == 0
    plain = json.loads(capsys.readouterr().out)["recipes"]["plain"]["recipe"]
    assert plain == json.loads(json.dumps(to_mapping(replace(recipe, seed=0))))
