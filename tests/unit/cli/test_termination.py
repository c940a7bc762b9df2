"""Signals that arrive while libraries are still being imported end a command with one line and the right code."""

import subprocess
import sys
from pathlib import Path

import pytest

SIGNALLED_AT_THE_IMPORT_OF_TORCH = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which a shell's background jobs lack
class Watch:
    def find_spec(self, name, path=None, target=None):
        if name == "torch":
            os.kill(os.getpid(), signal.Signals[sys.argv[1]])
sys.meta_path.insert(0, Watch())
from evenly.cli import main
sys.exit(main(["train", "digits", "--model", "mlp", "--epochs", "1", "--runs", sys.argv[2]]))
"""


@pytest.mark.parametrize(
    ("name", "codes", "said"),
    [
        ("SIGTERM", {75}, "evenly: stopped; the same command begins again, or continues from what was saved.\n"),
        # Python may end itself by the signal, which a shell reports as 130 too.
        ("SIGINT", {130, -2}, "evenly: interrupted\n"),
    ],
)
def test_a_signal_during_imports_is_answered_by_one_line(name: str, codes: set[int], said: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", SIGNALLED_AT_THE_IMPORT_OF_TORCH, name, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode in codes
    assert result.stderr == said


def test_processes_forked_by_a_command_end_by_the_signal_without_a_word() -> None:
    code = """
import os, signal
from evenly.cli.termination import ending_plainly
with ending_plainly():
    child = os.fork()
    if not child:
        signal.raise_signal(signal.SIGTERM)
    print(os.waitpid(child, 0)[1])
assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
"""
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.stdout, result.stderr, result.returncode) == ("15\n", "", 0)
