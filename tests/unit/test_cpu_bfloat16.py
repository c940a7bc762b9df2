"""bfloat16 on a processor that announces more than it can do is refused, not tried."""

from pathlib import Path

import pytest
import torch

from evenly import cpu_bfloat16
from evenly.cli import main
from evenly.errors import SetupError
from evenly.training.evaluate import autocast


def test_a_processor_whose_bfloat16_ends_the_process_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(cpu_bfloat16.LIMIT, raising=False)
    monkeypatch.setattr(torch.cpu, "_is_amx_tile_supported", lambda: True)
    monkeypatch.setattr(cpu_bfloat16, "_PRODUCT", "import os, signal; os.kill(os.getpid(), signal.SIGILL)")
    command = ["train", "digits", "--device", "cpu", "--set", "precision=bf16", "--runs", str(tmp_path)]
    assert main(command) == 4
    assert f"{cpu_bfloat16.LIMIT}={cpu_bfloat16.WITHOUT_AMX}" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
    with pytest.raises(SetupError, match="announces AMX"):
        autocast("cpu", "bf16")
    monkeypatch.setattr(cpu_bfloat16, "_PRODUCT", "pass")
    cpu_bfloat16.check_bfloat16_on_cpu()
