"""Errors that are not bugs, each with the exit code it gives a command.

An error says what happened, why, and the line that fixes it. Anything that is not one of these
is a bug in evenly and ends a command with exit code 1 and a traceback.
"""

from collections.abc import Iterable

_MANY = 20  # a longer list does not help someone who mistyped a name


class EvenlyError(Exception):
    """The root of every error that evenly raises on purpose."""

    exit_code = 1


class UsageError(EvenlyError, ValueError):
    """An argument, option or recipe that makes no sense."""

    exit_code = 2


class DataError(EvenlyError, ValueError):
    """A data set that is missing, damaged or unfit for its use."""

    exit_code = 3


class SetupError(EvenlyError):
    """Something this machine lacks: an optional package, a device, a writable folder."""

    exit_code = 4


class Stopped(EvenlyError):
    """Work that stopped early on purpose and continues when the same command is repeated."""

    exit_code = 75


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence that names the nearest known words; if none is near, it lists them all, or three of very many.

    >>> did_you_mean("cifar-10", ["cifar10", "mnist"])
    "Did you mean 'cifar10'?"
    >>> did_you_mean("zzz", ["b", "a"])
    'Known: a, b.'
    >>> did_you_mean("table", [f"fig{i}" for i in range(80)] + ["label"])
    "Did you mean 'label'?"
    >>> did_you_mean("30", [f"fig{i}" for i in range(80)])
    'The nearest of 80: fig30, fig3, fig0.'
    """
    import difflib  # imported only for an error: `evenly --help` need not wait for it

    known = sorted(set(known))
    near = difflib.get_close_matches(word, known, n=2, cutoff=0.6)
    if near:
        return "Did you mean " + " or ".join(map(repr, near)) + "?"
    if len(known) > _MANY:
        return f"The nearest of {len(known)}: {', '.join(difflib.get_close_matches(word, known, n=3, cutoff=0))}."
    return f"Known: {', '.join(known)}." if known else "None are known."
