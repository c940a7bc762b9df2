"""When to separate: after the epoch at which the gain in training error starts to shrink.

A rule is called after every epoch with all training errors so far: `errors[0]` before the first epoch (chance:
1 − 1/classes), `errors[t]` after epoch t. It never looks ahead and has no state, so a run that resumes with its
recorded errors makes the same decision.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from evenly.errors import UsageError

MAX_ACCURACY = 0.99


class SeparationRule(Protocol):
    """A rule that says, after an epoch, whether to separate now."""

    def __call__(self, errors: Sequence[float]) -> bool:
        """Whether the moment has come, now or earlier, given the training errors so far."""


@dataclass(frozen=True)
class GainShrinks:
    """The moment at which the training error stops falling quickly (Nguyen et al., 2024, section 4 and figure 11).

    With m_t the lowest error up to epoch t, the gain is g_t = (m_{t−w} − m_t)/w over the last w = `window` epochs. The
    moment has come at the first t > w where g_t ≤ `below` · max_{s ≤ t} g_s, once the error has fallen by the
    fraction `learned` of its initial value: before that there is no gain that could shrink. The paper gives no rule,
    only epochs chosen by their results; a tenth of the greatest gain over two epochs comes close to these.

    The rule uses the lowest error so far, so that one bad epoch does not look like the end of learning, and the
    greatest gain rather than the first, so that it waits for a network that starts slowly.

    >>> curve = [0.9, 0.6, 0.42, 0.31, 0.25, 0.21, 0.19, 0.18, 0.172]
    >>> first(GainShrinks(), curve)
    7
    """

    window: int = 2
    below: float = 0.1
    learned: float = 0.1

    def __post_init__(self) -> None:
        if self.window < 1:
            raise UsageError(f"window={self.window}: the gain is measured over at least one epoch; 2 is usual.")
        for name, value in (("below", self.below), ("learned", self.learned)):
            if not 0 < value < 1:
                raise UsageError(f"{name}={value} is a fraction: give a number between 0 and 1.")

    def __call__(self, errors: Sequence[float]) -> bool:
        """Whether the moment has come, now or earlier."""
        lowest = _lowest(_check(errors))
        greatest = 0.0
        for t in range(self.window, len(lowest)):
            gain = (lowest[t - self.window] - lowest[t]) / self.window
            greatest = max(greatest, gain)
            has_learned = lowest[t] <= (1 - self.learned) * lowest[0]
            if t > self.window and has_learned and gain <= self.below * greatest:
                return True
        return False


@dataclass(frozen=True)
class AtEpoch:
    """The moment after a given epoch.

    >>> first(AtEpoch(2), [0.9, 0.5, 0.4, 0.3])
    2
    """

    epoch: int

    def __post_init__(self) -> None:
        if self.epoch < 1:
            raise UsageError(
                f"epoch={self.epoch}: separate after the first epoch or later; before it nothing is learned."
            )

    def __call__(self, errors: Sequence[float]) -> bool:
        """Whether that epoch is over."""
        return len(errors) > self.epoch


def at_fraction(fraction: float, *, epochs: int) -> AtEpoch:
    """The moment after a part of all epochs, rounded, at least one; 0.05 to 0.1 is usual.

    >>> at_fraction(0.04, epochs=200), at_fraction(0.05, epochs=8)
    (AtEpoch(epoch=8), AtEpoch(epoch=1))
    """
    if not 0 < fraction <= 1:
        raise UsageError(f"fraction={fraction} is a part of the {epochs} epochs: give a number above 0, at most 1.")
    return AtEpoch(max(round(fraction * epochs), 1))


def first(rule: SeparationRule, errors: Sequence[float]) -> int | None:
    """The first epoch of a recorded curve at which the moment has come; None if it has not.

    >>> first(GainShrinks(), [0.9, 0.5, 0.3]) is None
    True
    """
    for epoch in range(1, len(errors)):
        if rule(errors[: epoch + 1]):
            return epoch
    return None


def _lowest(errors: Sequence[float]) -> list[float]:
    lowest: list[float] = []
    for error in errors:
        lowest.append(min(error, lowest[-1]) if lowest else error)
    return lowest


def _check(errors: Sequence[float]) -> list[float]:
    values = [float(error) for error in errors]
    for epoch, error in enumerate(values):
        if not 0 <= error <= 1:
            raise UsageError(
                f"training error {error} after epoch {epoch}: errors are shares from 0 to 1. Divide per cent by 100."
            )
    if not values:
        raise UsageError("no training errors: begin with the error before the first epoch, 1 − 1/classes.")
    return values
