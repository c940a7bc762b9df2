"""Everything that runs on a GPU runs here on a pretended one, in processes that know it from the start.

`check_*.py` hold the tests themselves; each file is a session of pytest of its own, since a device cannot appear in a
process that has looked for one before.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CHECKS = sorted(HERE.glob("check_*.py"))


@pytest.fixture(scope="session")
def device() -> None:
    """The device, built; or a skip that says why it cannot be."""
    built = subprocess.run([sys.executable, str(HERE / "pretended/build.py")], capture_output=True, text=True)
    if built.returncode == 77:
        pytest.skip(built.stdout.strip())
    assert built.returncode == 0, built.stderr


@pytest.mark.parametrize("path", CHECKS, ids=lambda path: path.stem.removeprefix("check_"))
def test_all_holds_on_the_pretended_device(path: Path, device: None) -> None:
    command = [sys.executable, "-m", "pytest", "-p", "pretended.plugin", "-p", "no:xdist", "-p", "no:cacheprovider"]
    folders = os.pathsep.join(filter(None, [str(HERE), os.environ.get("PYTHONPATH", "")]))
    environment = os.environ | {"PYTHONPATH": folders, "OMP_NUM_THREADS": "1"}
    environment.pop("PYTEST_ADDOPTS", None)
    result = subprocess.run([*command, "-q", str(path)], capture_output=True, text=True, env=environment)
    assert result.returncode == 0, result.stdout[-6000:] + result.stderr[-2000:]
