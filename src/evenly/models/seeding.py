"""Initialisation as a pure function of a generator."""

import contextlib
from collections.abc import Iterator

import torch

from evenly.errors import UsageError


@contextlib.contextmanager
def single_precision() -> Iterator[None]:
    """Within the context, and so in a function that it decorates, new tensors are float32 whatever torch's default is.

    Networks are trained on float32, as all data are given to them.

    >>> torch.set_default_dtype(torch.float64)
    >>> with single_precision():
    ...     weight = torch.nn.Linear(2, 2).weight
    >>> weight.dtype, torch.get_default_dtype()
    (torch.float32, torch.float64)
    >>> torch.set_default_dtype(torch.float32)
    """
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def seeding(rng: torch.Generator | int) -> Iterator[None]:
    """Within the context the global CPU generator is a fresh one made from `rng`; afterwards it is as it was.

    The layers of `torch.nn` draw their first weights from the global generator and take no other. So one number is
    drawn from `rng`, a private state of the global generator is seeded with it, and the caller's state is restored,
    also when something raises. Weights are drawn on the CPU and in float32, whatever torch's defaults, so that a seed
    means the same network everywhere. Only the CPU's generator is seeded: `torch.manual_seed` would reach every GPU's.

    >>> before = torch.get_rng_state()
    >>> with seeding(7):
    ...     a = torch.nn.Linear(2, 2)
    >>> with seeding(7):
    ...     b = torch.nn.Linear(2, 2)
    >>> torch.equal(a.weight, b.weight), torch.equal(before, torch.get_rng_state())
    (True, True)
    """
    seed = _seed(rng)
    with torch.random.fork_rng(devices=[]), torch.device("cpu"), single_precision():
        torch.default_generator.manual_seed(seed)
        yield


def _seed(rng: torch.Generator | int) -> int:
    if isinstance(rng, torch.Generator):
        return int(torch.randint(2**63 - 1, (), generator=rng, device=rng.device))
    if isinstance(rng, bool) or not isinstance(rng, int) or not 0 <= rng < 2**63:
        raise UsageError(
            f"rng: expected a torch.Generator or a whole number from 0 to 2⁶³−1, not {rng!r}. "
            'For example: rng=evenly.rng.generator(0, "init")'
        )
    return rng
