"""Requeuing a job of Slurm; tests/cluster runs the rest on a real cluster."""

import signal
import subprocess

import pytest

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
