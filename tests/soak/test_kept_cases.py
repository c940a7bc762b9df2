"""Every input that once broke a reader is read again, by every command that reads such files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.skipif(sys.platform != "linux", reason="the soak watches processes through /proc")
def test_inputs_that_broke_something_once_are_answered_with_a_sentence() -> None:
    # In a process of its own, which has done no arithmetic and may be forked.
    packages = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    done = subprocess.run(
        [sys.executable, "-m", "soak", "--replay"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": packages},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found: dict[str, list[str]] = json.loads(done.stdout)
    assert len(found) == len(list((ROOT / "soak" / "cases").glob("*.json")))
    broken = {name: wrong for name, wrong in found.items() if wrong}
    assert not broken, json.dumps(broken, indent=1)
