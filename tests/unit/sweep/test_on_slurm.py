"""Requeuing a job of Slurm; tests/cluster runs the rest on a real cluster."""

import signal
import subprocess

import pytest

from evenly.errors import SetupError
from evenly.sweep import on_slurm, slurm_cluster
from evenly.sweep.on_slurm import requeue


def _scontrol_ends_with(code: int):
    def handler(number: int, frame: object) -> None:
        raise subprocess.CalledProcessError(code, ["scontrol", "requeue", "10_1"])

    return handler


def test_a_job_that_slurm_ends_while_it_is_requeued_counts_as_requeued() -> None:
    with pytest.raises(SystemExit):
        requeue(_scontrol_ends_with(-signal.SIGTERM), signal.SIGUSR2)


def test_a_job_that_could_not_be_requeued_fails() -> None:
    with pytest.raises(subprocess.CalledProcessError):
        requeue(_scontrol_ends_with(1), signal.SIGUSR2)


@pytest.fixture
def squeue(tmp_path, monkeypatch):
    """Put a `squeue` before the real one that prints to stdout and stderr and exits with a code."""

    def says(out: str, err: str, code: int) -> None:
        path = tmp_path / "squeue"
        path.write_text(f"#!/bin/sh\necho '{out}'\necho '{err}' >&2\nexit {code}\n")
        path.chmod(0o755)

    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return says


def test_a_failing_squeue_is_no_answer_unless_it_has_forgotten_the_job(squeue) -> None:
    squeue("7_0 RUNNING", "", 0)
    assert slurm_cluster.states(["7_0"]) == {"7_0": "RUNNING"}
    squeue("", "slurm_load_jobs error: Invalid job id specified", 1)
    assert slurm_cluster.states(["7_0"]) == {}
    for error in ("Unable to contact slurm controller (connect failure)", "Socket timed out on send/recv operation"):
        squeue("", f"slurm_load_jobs error: {error}", 1)
        assert slurm_cluster.states(["7_0"]) is None
    assert slurm_cluster.states([]) == {}


def test_jobs_of_an_earlier_command_are_not_submitted_again_while_slurm_does_not_answer(squeue, tmp_path) -> None:
    pytest.importorskip("submitit")
    (tmp_path / on_slurm.SUBMITTED).write_text('{"a": "7_0"}')
    squeue("", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", 1)
    with pytest.raises(SetupError, match="`squeue` does not answer"):
        on_slurm._queued_jobs(tmp_path, ["a"])
    assert on_slurm._queued_jobs(tmp_path, ["b"]) == {}
