"""What can go wrong that is not a bug: each error knows the exit code of the command it ends.

An error says what happened, why, and the line that fixes it. Anything that is not one of these
is a bug in evenly and ends a command with exit code 1 and a traceback.
"""

from collections.abc import Iterable


class EvenlyError(Exception):
    """The root of every error that evenly raises on purpose."""

    exit_code = 1


class UsageError(EvenlyError, ValueError):
    """An argument, option or recipe that cannot be meant."""

    exit_code = 2


class DataError(EvenlyError, ValueError):
    """A data set that is missing, damaged or unfit for what is asked of it."""

    exit_code = 3


class SetupError(EvenlyError):
    """Something this machine lacks: an optional package, a device, a writable folder."""

    exit_code = 4


class Stopped(EvenlyError):
    """Work that ended early on purpose and continues when the same command is given again."""

    exit_code = 75


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence that names the nearest known words, or lists them all when none is near.

    >>> did_you_mean("cifar-10", ["cifar10", "mnist"])
    "Did you mean 'cifar10'?"
    >>> did_you_mean("zzz", ["b", "a"])
    'Known: a, b.'
    """
    import difflib  # only when something is wrong: `evenly --help` need not wait for it

    known = sorted(set(known))
    near = difflib.get_close_matches(word, known, n=2, cutoff=0.6)
    if near:
        return "Did you mean " + " or ".join(map(repr, near)) + "?"
    return f"Known: {', '.join(known)}." if known else "None are known."
