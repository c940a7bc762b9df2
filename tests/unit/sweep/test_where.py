"""`--on` and its companions: what is meant is understood, what is not is answered with what would be."""

import pytest

from evenly.errors import UsageError
from evenly.sweep import Where, parse


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("local", Where("local")),
        ("local:4", Where("local", at_once=4)),
        ("ray", Where("ray")),
        ("ray:head:6379", Where("ray", address="head:6379")),
        ("ray://head:10001", Where("ray", address="ray://head:10001")),
        ("slurm", Where("slurm")),
        ("slurm:gpu", Where("slurm", address="gpu")),
    ],
)
def test_each_engine_is_understood(text, expected):
    assert parse(text) == expected


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"text": "slrum"}, "Did you mean 'slurm'"),
        ({"text": "local:two"}, "--on local:2"),
        ({"text": "local:0"}, "1 or more"),
        ({"text": "local", "time": "4:00:00"}, "--time is for Slurm"),
        ({"text": "ray", "account": "A"}, "--account is for Slurm"),
        ({"text": "slurm", "time": "soon"}, "4:00:00"),
        ({"text": "local", "devices": 0}, "--devices-per-run 0"),
        ({"text": "local", "gpus": -1}, "--gpus -1"),
        ({"text": "local", "threads": 0}, "--threads-per-run 0"),
    ],
)
def test_what_cannot_be_meant_is_answered_with_what_can(given, told):
    with pytest.raises(UsageError, match=told):
        parse(**given)


@pytest.mark.parametrize(
    ("time", "minutes"),
    [
        ("90", 90),
        ("4:00:00", 240),
        ("1-00:00:00", 1440),
        ("30:00", 30),
        ("2-12", 3600),
        ("0:30", 1),
        ("1-12:30", 2190),
        ("1-12:30:01", 2191),
        ("0-01", 60),
    ],
)
def test_time_limits_are_read_as_slurm_reads_them(time, minutes):
    assert parse("slurm", time=time).minutes == minutes


@pytest.mark.parametrize("time", ["0", "0:00", "4h", "1:2:3:4", "-5", ""])
def test_what_is_no_time_limit_is_refused(time):
    with pytest.raises(UsageError, match="expected a limit such as"):
        parse("slurm", time=time)
