"""How the learning rate changes over training: a pure function of where training stands."""

import math

from evenly.recipe import Schedule


def multiplier(schedule: Schedule, *, epoch: float, epochs: int) -> float:
    """What the learning rate is multiplied by after `epoch` of `epochs` epochs; `epoch` may be a fraction.

    Warm-up is linear and comes first; a cosine then falls to 0 over what is left (Loshchilov & Hutter, 2017); a
    step schedule multiplies by `factor` at each milestone, a share of all epochs.

    >>> step = Schedule("step", milestones=(0.5, 0.75), factor=0.1)
    >>> [round(multiplier(step, epoch=e, epochs=200), 4) for e in (0, 99.9, 100, 150)]
    [1.0, 1.0, 0.1, 0.01]
    >>> multiplier(Schedule("cosine"), epoch=5, epochs=10)
    0.5
    >>> multiplier(Schedule("constant", warmup_epochs=4), epoch=1, epochs=10)
    0.25
    """
    warmup = schedule.warmup_epochs
    rise = min(1.0, epoch / warmup) if warmup else 1.0
    if schedule.kind == "step":
        # A share times the epochs may miss a whole number by one rounding: 0.07 · 100 is above 7.
        passed = sum(epoch >= share * epochs - 1e-9 for share in schedule.milestones)
        return float(rise * schedule.factor**passed)
    if schedule.kind == "cosine" and epoch >= warmup:
        return 0.5 * (1 + math.cos(math.pi * (epoch - warmup) / (epochs - warmup)))
    return rise
