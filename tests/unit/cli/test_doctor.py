"""What `evenly doctor` says of packages that are there and cannot be used."""

import json
import os
import subprocess
import sys
from pathlib import Path

from evenly.cli.doctor import summary


def test_doctor_names_a_package_that_is_installed_and_does_not_import(tmp_path: Path) -> None:
    (tmp_path / "timm").mkdir()
    (tmp_path / "timm" / "__init__.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')\n")
    (tmp_path / "timm-9.9.dist-info").mkdir()
    (tmp_path / "timm-9.9.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: timm\nVersion: 9.9\n")
    found = subprocess.run(
        [sys.executable, "-m", "evenly", "doctor", "--json"],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
    )
    assert found.returncode == 0  # an extra that nobody has asked for is no trouble
    state = {row["package"]: row["state"] for row in json.loads(found.stdout)["packages"]}["timm"]
    assert state.startswith("9.9, which does not import (operator torchvision::nms does not exist): reinstall")


def test_doctor_does_not_say_that_all_is_here_under_a_package_that_does_not_import() -> None:
    broken = {"package": "timm", "state": "9.9, which does not import (why): reinstall it", "for": "timm models"}
    missing = {"package": "pyarrow", "state": 'missing: pip install "evenly[parquet]"', "for": "Parquet manifests"}
    assert summary([missing]) == "All that is needed is here."
    told = summary([broken, missing])
    assert told == "evenly itself works. timm is installed but cannot be imported: timm models cannot be used."
