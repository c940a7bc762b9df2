"""How many examples a toy distribution is asked for."""

from evenly.errors import UsageError


def require_counts(**counts: int) -> None:
    """Refuse numbers of examples below 0, by name.

    >>> require_counts(num_train=-5)
    Traceback (most recent call last):
    evenly.errors.UsageError: num_train = -5 is a number of examples: give 0 or more.
    """
    for name, count in counts.items():
        if count < 0:
            raise UsageError(f"{name} = {count} is a number of examples: give 0 or more.")
