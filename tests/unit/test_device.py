"""Devices by name, float32 that is float32, and memory, on a machine with or without a GPU."""

from pathlib import Path

import pytest
import torch

from evenly import device, memory
from evenly.cli import main
from evenly.errors import SetupError
from evenly.training.deferred import READ_EVERY, DeferredLosses
from evenly.training.tally import Tally


@pytest.mark.parametrize("name", ["cuda:1", "mps", "xpu", "meta"])
def test_a_device_that_is_not_there_is_one_sentence(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device, "accelerator", lambda: (None, 0))
    assert main(["train", "digits", "--device", name, "--runs", str(tmp_path)]) == 4
    said = capsys.readouterr().err
    assert f"--device {name}: this torch sees no GPU" in said
    assert "Traceback" not in said
    assert not list(tmp_path.iterdir())


def test_doctor_says_what_it_would_ask_a_gpu(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(device, "accelerator", lambda: (None, 0))
    assert main(["doctor", "--gpu"]) == 4
    out, err = capsys.readouterr()
    assert "resume" in out
    assert "waits" in out
    assert "sees no GPU" in err


def test_a_build_for_gpus_on_a_machine_without_one_means_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.accelerator, "current_accelerator", lambda *_, **__: torch.device("cuda"))
    monkeypatch.setattr(torch.accelerator, "is_available", lambda: False)
    assert device.choose_device("auto") == torch.device("cpu")


def test_more_processes_than_gpus_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "accelerator", lambda: ("cuda", 2))
    assert device.choose_device("cuda", local=1) == torch.device("cuda:1")
    assert device.choose_device("auto", local=1) == torch.device("cuda:1")
    with pytest.raises(SetupError, match=r"process 2 of this machine: there is no cuda:2; they are cuda:0 to cuda:1"):
        device.choose_device("auto", local=2)


@pytest.mark.parametrize("way", ["older", "newer"])
def test_switches_for_tf32_are_what_they_were_after_an_exact_computation(way: str) -> None:
    before = [switch.fp32_precision for switch in device._switches()]
    try:
        if way == "older":
            torch.set_float32_matmul_precision("high")
        elif not before:
            pytest.skip("this torch has the older switches only")
        else:
            torch.backends.cudnn.conv.fp32_precision = "tf32"
            torch.backends.cuda.matmul.fp32_precision = "tf32"
        chosen = [switch.fp32_precision for switch in device._switches()]
        with device.exact():
            assert not device._allows_tf32("cudnn", "conv")
            assert not device._allows_tf32("cuda", "matmul")
        assert [switch.fp32_precision for switch in device._switches()] == chosen
    finally:
        torch.set_float32_matmul_precision("highest")
        for switch, value in zip(device._switches(), before, strict=True):
            switch.fp32_precision = value


def test_a_budget_of_memory_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVENLY_MEMORY", "0.5")
    assert memory.budget("cpu") == 500_000_000


def test_losses_read_late_are_those_of_each_step_and_name_the_first_that_is_not_finite() -> None:
    late, tally = DeferredLosses(), Tally()
    generator = torch.Generator().manual_seed(0)
    losses = [torch.rand(3, generator=generator) for _ in range(READ_EVERY)]
    losses[17] = torch.tensor([1.0, float("nan"), 1.0])
    for loss_B in losses:
        late.add(loss_B, torch.tensor([[0.0, 1.0]] * 3), torch.tensor([0, 1, 1]), None)
        late.end_step()
    assert late.is_due
    tally._deferred = late
    assert torch.isnan(torch.tensor(tally.settle(now=True)))
    assert READ_EVERY - tally.steps_since == 18
