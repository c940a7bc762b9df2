"""The additions that CONTRIBUTING.md shows are complete: one file and one line each, and evenly has them everywhere.

The blocks of CONTRIBUTING.md are written into a copy of the package, and another process looks for them in Python, on
the command line, on a run's page and in the tables of the documentation.
"""

import importlib
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import evenly

PROJECT = Path(__file__).parents[2]
GUIDE = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCK = re.compile(
    r"^`(src/evenly/\S+?)`(?:, after `(.+?)`)?.*?\n\n```(?:python|text)\n(.*?)^```", re.MULTILINE | re.DOTALL
)
SECTIONS = dict(re.findall(r"^### (.*?)\n(.*?)(?=^##)", GUIDE, re.MULTILINE | re.DOTALL))
FOUND_BY_FILE_NAME = {"An experiment"}

SHOWS = """
import contextlib, io, sys
from pathlib import Path
from evenly.cli import main

def prints(*words):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        assert not main(list(words)), out.getvalue()
    return out.getvalue()

import torch, evenly
from torch import nn
from evenly.data import load
from evenly.models import build
w = nn.Parameter(torch.tensor([3.0, 4.0]))
evenly.HalfSAM([w], rho=0.5).backward(lambda: (w**2).sum() / 2)
assert torch.allclose(w.grad, torch.tensor([3.15, 4.2])), w.grad
assert load("rings").train.classes == ("inner", "outer")
assert build("linear", input_shape=(2,), num_classes=2, rng=0).head.in_features == 2
numbers = evenly.measure(build("linear", input_shape=(2,), num_classes=2, rng=0), load("rings"), "weight_norm",
                         rng=torch.Generator().manual_seed(0))
assert numbers["weight_norm"] > 0

usage = prints("train", "--help")
assert "halfsam" in usage and "linear" in usage, usage
assert "weight_norm" in prints("measure", "--help")
assert "rings" in prints("data", "list")

prints("train", "rings", "--model", "linear", "--optimizer", "halfsam", "--epochs", "1", "--device", "cpu")
(run,) = [path for path in Path("runs").iterdir() if (path / "done").exists()]
assert "weight_norm" in prints("measure", run.name, "weight_norm")
prints("report", run.name, "--out", "page.html")
page = Path("page.html").read_text()
assert all(word in page for word in ("halfsam", "rings", "linear", "‖w‖")), "the page lacks an addition"

from evenly.training.ensemble import Ensemble
models = [build("disentangled", input_shape=(4,), num_classes=2, rng=0) for _ in range(2)]
both = Ensemble(models, load("spirals").train, lr=0.01, rule=["halfsam", "sam"], rho=[0.2, 0.1], batch_size=5, seeds=0)
both.run(5)
assert all(torch.allclose(v[0], v[1]) for v in both.parameters().values())
"""

TABLES = """
import importlib.util
spec = importlib.util.spec_from_file_location("tables", "docs/tables.py")
tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tables)
lists = {name: make() for name, make in tables.LISTS.items()}
assert "`HalfSAM` | `halfsam`" in lists["rules"]
assert "`rings` | toy" in lists["data-sets"]
assert "`linear`" in lists["models"]
assert "`weight_norm`" in lists["measurements"]
"""

EXPERIMENT = """
import contextlib, io
from evenly.cli import main
from evenly.papers.catalogue import find
assert find("chang2025/fig9").title == "Figure 9: thresholds"
out = io.StringIO()
with contextlib.redirect_stdout(out):
    assert main(["reproduce", "--list"]) == 0
    assert main(["reproduce", "chang2025/fig9", "--scale", "smoke", "--ledger", "claims", "--runs", "runs"]) == 0
    assert main(["report", "--claims", "--ledger", "claims", "--out", "site"]) == 0
assert "chang2025/fig9" in out.getvalue(), out.getvalue()
from pathlib import Path
assert "The sharper minimum has the lower threshold" in Path("site/chang2025-fig9.html").read_text()
"""


def add(section: str, package: Path) -> None:
    """Write the file of a section of CONTRIBUTING.md, and insert its line."""
    blocks = BLOCK.findall(SECTIONS[section])
    assert [bool(anchor) for _, anchor, _ in blocks] == ([False] if section in FOUND_BY_FILE_NAME else [False, True])
    for name, anchor, code in blocks:
        path = package / name.removeprefix("src/evenly/")
        if not anchor:
            assert not path.exists()
            assert len(code.splitlines()) <= 60
            path.write_text(code)
        else:
            assert len(code.splitlines()) == 1
            text = path.read_text()
            assert text.count(f"{anchor}\n") == 1
            path.write_text(text.replace(f"{anchor}\n", f"{anchor}\n{code}"))


def run(code: str, folder: Path) -> None:
    environment = {"PYTHONPATH": str(folder), "PATH": "", "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with a copy of the package and of the script that fills the documentation's tables."""
    shutil.copytree(Path(evenly.__file__).parent, tmp_path / "evenly", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "docs").mkdir()
    shutil.copy(PROJECT / "docs" / "tables.py", tmp_path / "docs")
    return tmp_path


def test_the_guide_shows_one_addition_of_each_kind() -> None:
    assert list(SECTIONS) == ["A SAM rule", "A data set", "A model", "A diagnostic", "An experiment"]


def test_one_file_and_one_line_are_enough_everywhere(copy: Path) -> None:
    for section in SECTIONS.keys() - FOUND_BY_FILE_NAME:
        add(section, copy / "evenly")
    run(SHOWS, copy)
    run(TABLES, copy)


def test_an_experiment_is_one_file(copy: Path) -> None:
    if hasattr(importlib.import_module("evenly.papers.chang2025"), "EXPERIMENTS"):
        pytest.skip("this paper still lists its experiments itself")
    add("An experiment", copy / "evenly")
    run(EXPERIMENT, copy)
