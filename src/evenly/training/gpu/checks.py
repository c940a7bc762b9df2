"""The checks on a real device, one row of the report each; a check that fails does not stop the others.

Training does not need them. They tell, on a machine that the tests never saw, whether the numbers agree with the
CPU's, a stopped run ends with the same bits, and the device is kept busy.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import torch

from evenly import device as devices
from evenly.training.gpu import comparisons, resumption, speed

Row = dict[str, Any]


class Check(NamedTuple):
    """One check of a device: its name, the question, and a function that returns the answer and whether it is right."""

    name: str
    asks: str
    ask: Callable[[torch.device], tuple[str, bool]]


CHECKS: Sequence[Check] = (
    *(
        Check(name, f"{asks}, on the CPU and on the GPU: the largest difference", comparisons.check(make, tolerance))
        for name, (asks, make, tolerance) in comparisons.COMPONENTS.items()
    ),
    Check("resume", "a run that is stopped and resumed ends with the bits of one that is not", resumption.check),
    Check("waits", "how often 50 steps of SGD and of SAM wait for the GPU", speed.waits),
    Check("speed", "steps per second of evenly and of a bare step, compiled where possible", speed.steps_per_second),
    Check("memory", "the most that a run takes on the GPU, and a sentence where it runs out", speed.peak_memory),
)


def ask(device: torch.device, *, only: Sequence[str] = ()) -> Iterator[Row]:
    """The rows of the report, as they become known."""
    for check in CHECKS:
        if only and check.name not in only:
            continue
        try:
            with devices.exact() if check.name in comparisons.COMPONENTS else torch.enable_grad():
                answer, right = check.ask(device)
        except Exception as error:  # any failure of a device or its driver is a finding too
            reason = (str(error).strip() or type(error).__name__).splitlines()[0]
            answer, right = f"{type(error).__name__}: {reason}", False
        yield {"device": str(device), "check": check.name, "found": answer, "right": right}


def devices_to_check(count: int, kind: str) -> list[torch.device]:
    """The devices to check: the first and the last, since code that ignores the number works on the first.

    >>> devices_to_check(4, "cuda"), len(devices_to_check(1, "cuda"))
    ([device(type='cuda', index=0), device(type='cuda', index=3)], 1)
    """
    return [torch.device(kind, index) for index in sorted({0, count - 1})]
