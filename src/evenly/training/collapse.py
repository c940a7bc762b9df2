"""Training that learned nothing or stopped learning, described with the setting to change and a value to try."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

NEAR_CHANCE = 0.95  # share of the error of guessing: above this a network has learned next to nothing
LEARNED = 0.9  # share of the error of guessing: below this it had learned something
EVIDENT = 0.7  # share of the error of guessing: a random network may be better by luck, but not as good as this
HIGH = 0.5  # share of the error of guessing: a training error that stays above this is high
STANDSTILL = 0.02  # share of the error of guessing: a smaller fall over the last third of training does not count
FEWEST = 6  # with fewer epochs the last third says nothing
TINY_LR = 1e-4  # below this a learning rate is more often too small than too large
LARGE_LR = 0.01  # above this it is more often too large
SHORT = 3  # fewer epochs than this may themselves be the reason
FEW_STEPS = 100  # fewer steps than this may be the reason, whatever the learning rate
LARGE_RHO = 0.5  # above this SAM's radius is as likely at fault as the learning rate


def describe(
    history: Sequence[Mapping[str, Any]],
    *,
    num_classes: int,
    chance: float | None = None,
    rho: float = 0.0,
    lr: float | None = None,
    steps: int | None = None,
    planned: int | None = None,
) -> str | None:
    """A sentence if the training error ended near chance or stopped falling while high; None for a run that learned.

    The training error is taken during an epoch, with augmentation and dropout; the errors of other splits, taken at its
    end, can show that the network has learned nevertheless.

    Parameters
    ----------
    history
        The metrics of every epoch: `train.error`, and where they are known `epoch`, `lr` and the errors of other
        splits, such as `test.error`.
    num_classes
        How many classes there are.
    chance
        The error of always naming the most frequent class; without it all classes count as equally frequent.
    rho
        SAM's radius, if SAM was used.
    lr
        The learning rate of the recipe; without it, the highest in `history`.
    steps
        How many steps were taken in all, where it is known.
    planned
        The epochs of the recipe. A rule that ends a run before them looks for a training error that falls no more: a
        standstill is then no fault, and the remedy is another epoch to separate at.

    Examples
    --------
    >>> row = {"epoch": 8, "lr": 0.1, "train.error": 0.75}
    >>> describe([row] * 8, num_classes=4)
    'learned nothing: the training error ended at 75.0%, and guessing gives 75.0%. Try a lower ...: --lr 0.01.'
    >>> describe([row | {"train.error": 0.2}], num_classes=4) is None
    True
    >>> describe([row] * 3, num_classes=4, steps=6)
    'learned nothing: ... It took only 6 steps. Train for longer: --epochs 50, or with a smaller --batch-size.'
    """
    rows = [row for row in history if isinstance(row.get("train.error"), int | float)]
    if not rows:
        return None
    guessing = 1 - 1 / num_classes if chance is None else chance
    errors = [float(row["train.error"]) for row in rows]
    best = _lowest_evaluated(rows[-1])
    cut_short = planned is not None and len(history) < planned
    what = None
    if best > EVIDENT * guessing:
        what = _at_chance(errors, guessing)
    if what is None and best > HIGH * guessing and not cut_short:
        what = _standstill(errors, _rates(rows), guessing)
    if what is None:
        return None
    if steps is not None and steps < FEW_STEPS and not _fell_back(errors, guessing):
        return f"{what} {_more_steps(steps, len(history), planned if cut_short else None)}"
    return f"{what} {_advice(rows, rho, max(_rates(rows)) if lr is None else lr)}"


def _lowest_evaluated(row: Mapping[str, Any]) -> float:
    """The lowest error on a whole split that was evaluated at the end of an epoch; infinite if none was."""
    names = [name for name in row if name.endswith(".error") and name.count(".") == 1 and name != "train.error"]
    return min((float(row[name]) for name in names if isinstance(row[name], int | float)), default=math.inf)


def _at_chance(errors: Sequence[float], guessing: float) -> str | None:
    last, lowest = errors[-1], min(errors)
    if last < NEAR_CHANCE * guessing:
        return None
    if _fell_back(errors, guessing):
        return (
            f"fell back to guessing: the training error was {_percent(lowest)} after epoch "
            f"{errors.index(lowest) + 1} and ended at {_percent(last)}."
        )
    return f"learned nothing: the training error ended at {_percent(last)}, and guessing gives {_percent(guessing)}."


def _fell_back(errors: Sequence[float], guessing: float) -> bool:
    """Whether a network learned and lost it again: then it had steps enough."""
    return errors[-1] >= NEAR_CHANCE * guessing and min(errors) < LEARNED * guessing


def _standstill(errors: Sequence[float], rates: Sequence[float], guessing: float) -> str | None:
    """Judge only epochs with a high learning rate: little happens once a schedule has lowered it, as it should."""
    fast = [error for error, rate in zip(errors, rates, strict=True) if rate >= max(rates) / 2]
    if len(fast) < FEWEST or errors[-1] <= HIGH * guessing:
        return None
    before = min(fast[: -(len(fast) // 3)])
    if before - min(errors) >= STANDSTILL * guessing:
        return None
    return (
        f"stopped learning: after epoch {errors.index(before) + 1} the training error stayed at "
        f"{_percent(min(errors))} or above, and guessing gives {_percent(guessing)}."
    )


def _rates(rows: Sequence[Mapping[str, Any]]) -> list[float]:
    return [float(row["lr"]) if isinstance(row.get("lr"), int | float) else 0.0 for row in rows]


def _advice(rows: Sequence[Mapping[str, Any]], rho: float, rate: float) -> str:
    radius = f", or a smaller radius than {rho:g}: --rho {float(f'{rho / 10:.1g}'):g}" if rho > LARGE_RHO else ""
    if len(rows) < SHORT:
        return f"That may be too few epochs ({len(rows)}), or another learning rate is needed: --lr auto{radius}."
    if TINY_LR < rate < LARGE_LR or rate <= 0:
        return f"Try another learning rate{f' than {rate:g}' if rate > 0 else ''}: --lr auto{radius}."
    higher = rate <= TINY_LR
    value = float(f"{rate * 10 if higher else rate / 10:.1g}")
    return f"Try a {'higher' if higher else 'lower'} learning rate than {rate:g}: --lr {value:g}{radius}."


def _more_steps(steps: int, epochs: int, planned: int | None) -> str:
    enough = -(-FEW_STEPS * epochs // max(1, steps))
    if planned is not None:
        return f"It took only {steps} steps. Separate later: --at-epoch {min(enough, planned)}."
    return f"It took only {steps} steps. Train for longer: --epochs {enough}, or with a smaller --batch-size."


def _percent(share: float) -> str:
    return f"{share * 100:.1f}%"
