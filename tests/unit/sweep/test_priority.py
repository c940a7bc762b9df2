"""Low priority against real processes: within a session, and between sessions."""

import subprocess
import sys
from pathlib import Path

import pytest

from evenly.sweep import priority

ENABLED = Path("/proc/sys/kernel/sched_autogroup_enabled")

LOWERED = """
import multiprocessing, os
from evenly.sweep.priority import lower_priority

def values():
    # The file is empty for a process that no session was ever given to, as under some container runtimes.
    group = open("/proc/self/autogroup").read().split() if os.path.exists("/proc/self/autogroup") else []
    return os.nice(0), group[-1] if group else "none"

if __name__ == "__main__":
    lower_priority()
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        print(*values(), *pool.apply(values))
"""


def lowered(tmp_path: Path, *, own_session: bool) -> list[str]:
    script = tmp_path / "lowered.py"
    script.write_text(LOWERED)
    command = [sys.executable, str(script)]
    done = subprocess.run(command, start_new_session=own_session, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_the_process_and_its_workers_have_the_lowest_nice_value(tmp_path: Path) -> None:
    nice, _, of_worker, _ = lowered(tmp_path, own_session=False)
    assert (nice, of_worker) == ("19", "19")


@pytest.mark.skipif(
    not ENABLED.exists() or ENABLED.read_text().strip() != "1", reason="this system does not group processes by session"
)
def test_a_session_of_its_own_is_lowered_and_that_of_the_terminal_is_not(tmp_path: Path) -> None:
    before = priority.AUTOGROUP.read_text()
    assert lowered(tmp_path, own_session=True)[1::2] == ["19", "19"]
    lowered(tmp_path, own_session=False)
    assert priority.AUTOGROUP.read_text() == before
