"""As many digits as tell numbers apart, and no more."""

from collections.abc import Sequence

FEWEST, MOST = 2, 5


def told_apart(values: Sequence[float]) -> list[str]:
    """The numbers with as few significant digits, all alike, as tell apart those that differ; five at most.

    >>> told_apart([1.103, 1.108, 2.0])
    ['1.1', '1.11', '2']
    >>> told_apart([0.1, 2.0])
    ['0.1', '2']
    """
    for digits in range(FEWEST, MOST + 1):
        texts = [f"{value:.{digits}g}" for value in values]
        if len(set(texts)) == len(set(values)):
            break
    return texts if values else []
