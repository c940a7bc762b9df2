"""How learning rate and radius change over training: pure functions of the progress made."""

import math

from evenly.recipe import Ascent, Schedule


def multiplier(schedule: Schedule, *, epoch: float, epochs: int) -> float:
    """The factor on the learning rate after `epoch` of `epochs` epochs; `epoch` may be fractional.

    Warm-up is linear and comes first; a cosine then falls to 0 over the rest (Loshchilov & Hutter, 2017); a
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


def radius(ascent: Ascent, *, part: float, lr_factor: float) -> float:
    """The radius after a part of training, from `rho` to `rho_end`.

    `lr` is GSAM's schedule: ρ falls as the learning rate does, which is `lr_factor` of its largest (Zhuang et al.,
    2022).

    >>> falling = Ascent("sam", 0.2, schedule="linear", rho_end=0.1)
    >>> [round(radius(falling, part=part, lr_factor=1.0), 3) for part in (0, 0.5, 1)]
    [0.2, 0.15, 0.1]
    >>> radius(Ascent("gsam", 0.2, schedule="lr"), part=0.9, lr_factor=0.25)
    0.05
    """
    left = {
        "constant": 1.0,
        "linear": 1.0 - part,
        "cosine": 0.5 * (1 + math.cos(math.pi * part)),
        "lr": lr_factor,
    }[ascent.schedule]
    return ascent.rho_end + (ascent.radius - ascent.rho_end) * left
