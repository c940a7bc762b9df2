"""The examples for other people's frameworks run and train."""

import runpy
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[2]
pytestmark = pytest.mark.filterwarnings("ignore")


def said(name: str, capsys: pytest.CaptureFixture[str]) -> list[str]:
    runpy.run_path(str(PROJECT / "examples" / name), run_name="__main__")
    return capsys.readouterr().out.strip().splitlines()


def test_lightning(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pytorch_lightning")
    _, sam = said("lightning_sam.py", capsys)[-2:]
    assert "after 200 steps" in sam
    assert float(sam.split()[1]) < 12


def test_transformers(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("transformers")
    last = said("transformers_sam.py", capsys)[-1]
    assert "48 steps" in last
    assert float(last.split(": ")[-1].split(" %")[0]) < 40


def test_timm(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("timm")
    lines = said("timm_sam.py", capsys)
    assert float(lines[-1].split("error ")[1].split(" %")[0]) < 30
    assert float(lines[-1].split("loss ")[1].split(",")[0]) < float(lines[0].split("loss ")[1].split(",")[0])
