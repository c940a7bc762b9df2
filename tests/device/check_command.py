"""The command line on the pretended device, as a person with two GPUs would use it."""

import json
from pathlib import Path
from typing import Any

import pretended
import pytest

from evenly import device as devices
from evenly.cli import main
from evenly.records import Run

Captured = pytest.CaptureFixture[str]
SMALL = ["--model", "mlp", "--set", "model.options.width=16", "--epochs", "2"]


def said(words: list[str], capsys: Captured) -> Any:
    assert main([*words, "--json"]) == 0, capsys.readouterr().err
    return json.loads(capsys.readouterr().out)


def trained(where: Path, capsys: Captured, *more: str) -> Path:
    words = ["train", "digit-dominoes", *SMALL, "--device", "cuda:1", "--runs", str(where), *more]
    return Path(said(words, capsys)["folder"])


def test_a_run_is_trained_in_half_precision_and_measured_where_it_is_told(tmp_path: Path, capsys: Captured) -> None:
    folder = trained(tmp_path, capsys, "--optimizer", "sam")
    recipe = Run(folder).recipe
    assert (recipe["precision"], recipe["channels_last"]) == ("bf16", True)
    assert Run(folder).stamps()[-1]["device"]["kind"] == "cuda:1"
    words = ["measure", str(folder), "sharpness", "probing", "--examples", "60"]
    here, there = (said([*words, "--device", where], capsys) for where in ("cpu", "cuda:1"))
    for name in ("lambda_max", "eigenvalues", "trace", "l1", "easy", "hard"):
        assert there[name] == pytest.approx(here[name], rel=1e-4), name
    with pretended.with_memory(20_000):
        assert main([*words, "--device", "cuda:0"]) == 4
    assert "cuda:0 ran out of memory. Measure on fewer examples, such as --examples 30" in capsys.readouterr().err


def test_settings_that_are_named_are_not_chosen(tmp_path: Path, capsys: Captured) -> None:
    folder = trained(tmp_path, capsys, "--set", "precision=fp32", "--set", "channels_last=false")
    assert (Run(folder).recipe["precision"], Run(folder).recipe["channels_last"]) == ("fp32", False)


def test_a_gpu_before_ampere_trains_in_fp16(tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices.torch.cuda, "get_device_capability", lambda _=None: (7, 5))
    assert Run(trained(tmp_path, capsys)).recipe["precision"] == "fp16"


def test_useful_separates_and_trains_on_the_device(tmp_path: Path, capsys: Captured) -> None:
    words = ["useful", "digit-dominoes", *SMALL, "--seeds", "0", "--at-epoch", "1", "--device", "cuda:1"]
    said([*words, "--runs", str(tmp_path)], capsys)
    runs = [Run(path.parent) for path in tmp_path.glob("*/recipe.yaml")]
    assert {run.stamps()[-1]["device"]["kind"] for run in runs} == {"cuda:1"}


@pytest.mark.parametrize("verb", ["train", "useful", "separate"])
def test_the_command_line_needs_no_float64_on_the_device(
    verb: str, tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    devices._has_float64.cache_clear()
    more = {"train": [], "useful": ["--seeds", "0", "--at-epoch", "1"], "separate": ["--at-epoch", "1"]}[verb]
    try:
        with pretended.without_float64():
            said([verb, "digit-dominoes", *SMALL, *more, "--device", "cuda", "--runs", str(tmp_path)], capsys)
    finally:
        devices._has_float64.cache_clear()
