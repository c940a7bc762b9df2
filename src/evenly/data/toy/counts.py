"""A check of how many examples a toy distribution is asked for."""

from evenly import memory
from evenly.errors import UsageError


def require_counts(values: int, **counts: int) -> None:
    """Refuse numbers of examples below 0, by name, and examples of so many values that memory does not hold.

    >>> require_counts(2, num_train=-5)
    Traceback (most recent call last):
    evenly.errors.UsageError: num_train = -5 is a number of examples: give 0 or more.
    """
    for name, count in counts.items():
        if count < 0:
            raise UsageError(f"{name} = {count} is a number of examples: give 0 or more.")
        what = f"{name} = {count:,} examples of {values:,} numbers"
        memory.require(4 * values * count, what, "Give fewer, or smaller ones.", verb="need")
