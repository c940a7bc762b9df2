"""The questions of `evenly doctor --gpu`, and the sentences about devices and memory, on the pretended device."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pretended
import pytest
import torch

from evenly.cli import main
from evenly.recipe import Ascent, Data, Model, Recipe
from evenly.records import Run
from evenly.training.build import build_parts, load_data
from evenly.training.distributed import World
from evenly.training.gpu import checks, comparisons, speed
from evenly.training.interruption import Interruption
from evenly.training.loop import Loop
from evenly.training.train import train

TINY = Recipe(data=Data("digit-dominoes"), model=Model("mlp", {"width": 16, "dropout": 0.0}), epochs=1, batch_size=60)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The questions about speed, of a network that a processor can answer for."""
    monkeypatch.setattr(speed, "RECIPE", replace(speed.RECIPE, model=Model("mlp"), batch_size=8))
    monkeypatch.setattr(checks, "CHECKS", [check for check in checks.CHECKS if check.name not in ("vit", "resnet")])
    monkeypatch.setattr(comparisons, "EXAMPLES", 3)
    monkeypatch.setattr(speed, "STEPS", 3)
    monkeypatch.setattr(speed, "WARM", 1)
    monkeypatch.setattr(torch, "compile", lambda model: model)


@pytest.mark.usefixtures("small")
def test_every_question_is_answered_on_the_first_and_the_last_device(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--gpu", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [facts["kind"] for facts in report["devices"]] == ["cuda:0", "cuda:1"]
    assert {row["check"] for row in report["checks"]} == {check.name for check in checks.CHECKS}
    assert all(row["right"] for row in report["checks"]), report["checks"]


def test_a_component_that_differs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    with pretended.with_tf32():
        torch.backends.cuda.matmul.allow_tf32 = True
        try:
            found, right = comparisons.check(comparisons.COMPONENTS["mlp"][1], 1e-4)(torch.device("cuda"))
        finally:
            torch.backends.cuda.matmul.allow_tf32 = False
    assert not right, found
    broken = comparisons.check(lambda device: torch.ones(2) * (1 if device.type == "cpu" else 2), 1e-4)
    assert broken(torch.device("cuda")) == ("1.0e+00 (allowed: 1e-04)", False)


def test_copies_that_come_too_late_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    ask = comparisons.check(comparisons.COMPONENTS["copies"][1], 0.0)
    with pretended.with_late_copies():
        assert ask(torch.device("cuda")) == ("the same bits", True)
        monkeypatch.setattr(comparisons, "upload", lambda tensor, device: tensor.to(device, non_blocking=True))
        assert ask(torch.device("cuda")) == ("other bits", False)


def test_a_failure_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: torch.device) -> tuple[str, bool]:
        raise RuntimeError("no kernel image is available\nfor execution")

    monkeypatch.setattr(checks, "CHECKS", [checks.Check("broken", "…", fail)])
    (row,) = checks.ask(torch.device("cuda"))
    assert (row["found"], row["right"]) == ("RuntimeError: no kernel image is available", False)


@pytest.mark.parametrize("name", ["cuda:2", "cuda:9", "mps", "xpu", "meta"])
def test_a_device_that_is_not_there_is_a_sentence(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", "digits", "--device", name, "--runs", str(tmp_path)]) == 4
    said = capsys.readouterr().err
    assert f"--device {name}" in said
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


def test_running_out_of_memory_is_a_sentence_with_the_batch_to_try(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide = ["train", "digits", "--model", "mlp", "--batch-size", "64", "--runs", str(tmp_path), "--device", "cuda:1"]
    with pretended.with_memory(3_000_000):
        assert main([*wide, "--set", "model.options.width=3000"]) == 4
    said = capsys.readouterr().err
    assert "cuda:1 ran out of memory. With batch_size=64, try --batch-size 32, or --accumulate 2, which" in said


@pytest.mark.parametrize("rule", ["none", "sam", "gsam"])
@pytest.mark.parametrize("device", ["cpu", "cuda:1"])
def test_a_batch_in_parts_gives_the_same_step(rule: str, device: str, tmp_path: Path) -> None:
    whole, parts = (replace(TINY, ascent=Ascent(rule, 0.05), accumulate=num) for num in (1, 3))
    a, b = (train(recipe, runs=tmp_path, device=device).metrics()[-1] for recipe in (whole, parts))
    assert a["train.loss"] == pytest.approx(b["train.loss"], rel=1e-4)
    assert a["test.loss"] == pytest.approx(b["test.loss"], rel=1e-4)


def test_a_batch_in_parts_takes_less_memory(tmp_path: Path) -> None:
    peaks = []
    for num in (1, 8):
        recipe = replace(TINY, model=Model("convnet"), batch_size=256, accumulate=num)
        parts = build_parts(recipe, world=World.join("cuda:0"), splits=load_data(recipe))
        loop, batch = Loop(parts, Run(tmp_path), Interruption()), next(parts.batches.epoch(0))
        before = torch.cuda.memory_allocated(0)
        torch.cuda.reset_peak_memory_stats(0)
        loop.take(batch)
        peaks.append(torch.cuda.max_memory_allocated(0) - before)
    assert peaks[1] < 0.5 * peaks[0], peaks


@pytest.mark.parametrize("rule", ["none", "sam"])
def test_half_precision_trains_with_a_scaler_and_resumes_to_the_same_bits(rule: str, tmp_path: Path) -> None:
    from evenly.training.gpu import resumption

    recipe = replace(resumption.RECIPE, precision="fp16", ascent=Ascent(rule, 0.05))
    kept = resumption.RECIPE
    try:
        resumption.RECIPE = recipe
        assert resumption.check(torch.device("cuda:1")) == ("the same bits", True)
    finally:
        resumption.RECIPE = kept
    losses = [train(replace(TINY, precision=p), runs=tmp_path, device="cuda").metrics()[-1]["train.loss"]
              for p in ("fp32", "fp16")]  # fmt: skip
    assert losses[1] == pytest.approx(losses[0], rel=0.05)


def test_determinism_is_switched_on_for_a_run_and_off_after_it(tmp_path: Path) -> None:
    seen: list[Any] = []

    def note(_: Any) -> bool:
        seen.append((torch.are_deterministic_algorithms_enabled(), torch.backends.cudnn.benchmark))
        return True

    for deterministic in (True, False):
        train(replace(TINY, deterministic=deterministic, epochs=2), runs=tmp_path, device="cuda", enough=note)
    assert set(seen) == {(True, False), (False, True)}
    assert not torch.are_deterministic_algorithms_enabled()
    assert not torch.backends.cudnn.benchmark
