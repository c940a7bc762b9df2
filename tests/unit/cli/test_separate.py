"""`evenly separate` says what speaks against a separation, wherever the outputs come from."""

from pathlib import Path

import numpy as np
import pytest

from evenly.cli import main

CLOUDS = "not fall into two clusters"


@pytest.mark.parametrize("source", ["training", "file"])
def test_remarks_are_said_once(source: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    np.savez(tmp_path / "logits.npz", logits=np.random.default_rng(0).normal(size=(300, 2)), labels=np.arange(300) % 2)
    data = ["parity", "--set", "data.options.dim=8", "--set", "data.options.num_train=300", "--at-epoch", "1"]
    where = [*data, "--epochs", "2", "--device", "cpu", "--runs", str(tmp_path / "runs")]
    words = where if source == "training" else ["--from-logits", str(tmp_path / "logits.npz")]
    assert main(["separate", *words, "--out", str(tmp_path / "separation.csv")]) == 0
    assert " ".join(capsys.readouterr().err.split()).count(CLOUDS) == 1
