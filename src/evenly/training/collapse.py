"""Training that learned nothing, or stopped learning: said in words, with the setting to change and a value to try."""

from collections.abc import Mapping, Sequence
from typing import Any

NEAR_CHANCE = 0.95  # of the error of guessing: above this a network has learned nothing to speak of
LEARNED = 0.9  # of the error of guessing: below this it had learned something
HIGH = 0.5  # of the error of guessing: a training error that stays above this is high
STANDSTILL = 0.02  # of the error of guessing: a smaller fall over the last third of training is none
FEWEST = 6  # epochs of which the last third says anything
TINY_LR = 1e-4  # below this a learning rate is more often too small than too large
LARGE_RHO = 0.5  # above this a radius of SAM is as likely at fault as the learning rate


def describe(
    history: Sequence[Mapping[str, Any]], *, num_classes: int, chance: float | None = None, rho: float = 0.0
) -> str | None:
    """A sentence if the training error ended near chance or stopped falling high up; None for a run that learned.

    Parameters
    ----------
    history
        The metrics of every epoch: `train.error`, and `epoch` and `lr` where they are known.
    num_classes
        How many classes there are.
    chance
        The error of always naming the most frequent class; without it all classes count as equally frequent.
    rho
        The radius of SAM, where one was used.

    Examples
    --------
    >>> row = {"epoch": 8, "lr": 0.1, "train.error": 0.75}
    >>> describe([row], num_classes=4)
    'learned nothing: the training error ended at 75.0 %, and guessing gives 75.0 %. Try a lower ...: --lr 0.01.'
    >>> describe([row | {"train.error": 0.2}], num_classes=4) is None
    True
    """
    rows = [row for row in history if isinstance(row.get("train.error"), int | float)]
    if not rows:
        return None
    guessing = 1 - 1 / num_classes if chance is None else chance
    what = _symptom([float(row["train.error"]) for row in rows], guessing)
    return f"{what} {_advice(rows, rho)}" if what is not None else None


def _symptom(errors: Sequence[float], guessing: float) -> str | None:
    last, lowest = errors[-1], min(errors)
    if last >= NEAR_CHANCE * guessing:
        if lowest < LEARNED * guessing:
            return (
                f"fell back to guessing: the training error was {_percent(lowest)} after epoch "
                f"{errors.index(lowest) + 1} and ended at {_percent(last)}."
            )
        return (
            f"learned nothing: the training error ended at {_percent(last)}, and guessing gives {_percent(guessing)}."
        )
    before = min(errors[: -(len(errors) // 3) or None])
    if len(errors) >= FEWEST and last > HIGH * guessing and before - lowest < STANDSTILL * guessing:
        return (
            f"stopped learning: after epoch {errors.index(before) + 1} the training error stayed at "
            f"{_percent(lowest)} or above, and guessing gives {_percent(guessing)}."
        )
    return None


def _advice(rows: Sequence[Mapping[str, Any]], rho: float) -> str:
    # A schedule ends low: the highest rate is the one that a person sets.
    rate = max((float(row["lr"]) for row in rows if isinstance(row.get("lr"), int | float)), default=0.0)
    if rate <= 0:
        return "Try another learning rate: --lr auto."
    higher = rate <= TINY_LR
    value = float(f"{rate * 10 if higher else rate / 10:.1g}")
    radius = f", or a smaller radius than {rho:g}: --rho {float(f'{rho / 10:.1g}'):g}" if rho > LARGE_RHO else ""
    return f"Try a {'higher' if higher else 'lower'} learning rate than {rate:g}: --lr {value:g}{radius}."


def _percent(share: float) -> str:
    return f"{share * 100:.1f} %"
