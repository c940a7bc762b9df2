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


def outputs_of_two_groups(path: Path) -> None:
    """300 examples of two classes: half of each is predicted clearly, half weakly, and a tenth wrongly."""
    labels = np.arange(300) % 2
    margin = np.where(np.arange(300) // 2 % 2, 4.0, 0.5) + np.random.default_rng(0).normal(scale=0.05, size=300)
    margin[::10] *= -1
    np.savez(path, logits=np.stack([-margin, margin], 1) * (2 * labels[:, None] - 1), labels=labels)


def test_separating_among_the_right_leaves_out_what_is_predicted_wrongly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs_of_two_groups(tmp_path / "logits.npz")
    hard = {}
    for among in ("all", "right"):
        words = ["separate", "--from-logits", str(tmp_path / "logits.npz"), "--among", among]
        assert main([*words, "--out", str(tmp_path / f"{among}.npz")]) == 0
        hard[among] = np.load(tmp_path / f"{among}.npz")["hard"]
    assert not hard["right"][::10].any()
    assert hard["all"][::10].any()
    assert capsys.readouterr().err.count("30 of 300 examples are predicted wrongly") == 1


@pytest.mark.parametrize(("setting", "advice"), [("among=right", "use --among"), ("factor=8", "leave it out")])
def test_settings_of_the_training_that_follows_are_refused(
    setting: str, advice: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["separate", "digits", "--set", f"resampling.{setting}", "--runs", str(tmp_path / "runs")]
    assert main([*words, "--out", str(tmp_path / "s.csv")]) == 2
    said = capsys.readouterr().err
    assert f"resampling.{setting}" in said
    assert advice in said
    assert not (tmp_path / "runs").exists()
