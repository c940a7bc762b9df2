"""What a step asks of a device, counted on the pretended one of the tests: times mean nothing there, counts do.

Each ratio is counted in a process of its own, which has the device from its start.
"""

import functools
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.harness import Missing, benchmark

TESTS = Path(__file__).parents[1] / "tests" / "device"
_UNAVAILABLE = 77


@functools.cache
def counted(what: str) -> dict[str, float]:
    built = subprocess.run([sys.executable, str(TESTS / "pretended/build.py")], capture_output=True, text=True)
    if built.returncode == _UNAVAILABLE:
        raise Missing(built.stdout.strip())
    folders = os.pathsep.join(filter(None, [str(TESTS), os.environ.get("PYTHONPATH", "")]))
    command = [sys.executable, "-m", "pretended.steps", what]
    result = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": folders})
    if result.returncode:
        raise RuntimeError(result.stderr[-2000:])
    found: dict[str, float] = json.loads(result.stdout)
    return found


@benchmark("device-sgd", claim="operations of an SGD step over a bare one, ResNet-18", at_most=1.15, repeats=1)
def sgd() -> Iterator[float]:
    found = counted("none")
    yield found["operations"] / found["bare"]


@benchmark("device-sam", claim="operations of a step of SAM over two bare passes, ResNet-18", at_most=1.10, repeats=1)
def sam() -> Iterator[float]:
    found = counted("sam")
    yield found["operations"] / found["bare"]


@benchmark("device-waits-sgd", claim="waits for the device in fifty steps of SGD", at_most=1.0, repeats=1)
def waits_of_sgd() -> Iterator[float]:
    yield counted("none")["waits"]


@benchmark("device-waits-sam", claim="waits for the device in fifty steps of SAM", at_most=1.0, repeats=1)
def waits_of_sam() -> Iterator[float]:
    yield counted("sam")["waits"]


@benchmark(
    "device-crop-host",
    claim="bytes the host makes to crop and resize 128 images of 256 to 224 pixels on a device, over dense weights",
    at_most=0.1,
    repeats=1,
)
def crop() -> Iterator[float]:
    found = counted("crop")
    yield found["made"] / found["dense"]
